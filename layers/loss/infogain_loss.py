"""InfogainLoss: a softmax loss in which some mistakes weigh more than others."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...framework.blob import Blob
from ...framework.layer import register
from ...proto import BlobProto, blob_to_array, read_binary
from ..activation.softmax import softmax_forward
from .loss_layer import LOG_THRESHOLD
from .softmax_with_loss import SoftmaxWithLoss


@register
class InfogainLoss(SoftmaxWithLoss):
    """loss = -1/Z sum_n sum_k H(l_n, k) log p_n(k), with p = softmax(x) over the classes, l the labels.

    dx_k = w/Z (p_k sum_j H(l, j) - H(l, k)), 0 for ignored labels, w the loss weight.  With the unit matrix
    as H it is SoftmaxWithLoss.  Probabilities below 1e-20 count as 1e-20.

    Shapes
        bottom 0 x: scores, N... x K x ..., the classes along ``axis``
        bottom 1 l: labels from 0 to K - 1, as many as x has values without the axis
        bottom 2 H (optional): K x K values, what predicting column k is worth where row l is right
        top 0 loss: a scalar; top 1 p (optional): probabilities, as x

    Options
        infogain_loss_param.source: a binary BlobProto with H, if it is no bottom; infogain_loss_param.axis (1)
        loss_param: ignore_label and normalization as SoftmaxWithLoss has them.

    Raises LayerError for a label out of range, or an H of another size.
    """

    type = "InfogainLoss"
    bottoms = (2, 3)
    smooths_labels = False

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        super().layer_setup(bottom, top)
        source = self.param.infogain_loss_param.source
        if len(bottom) == 3:
            return
        if not source:
            self.fail("H is missing: give a third bottom, or infogain_loss_param { source: a binary BlobProto }")
        H = blob_to_array(read_binary(source, BlobProto))
        self.H = self.backend.to_device(np.asarray(H, self.dtype))

    def allow_force_backward(self, bottom_index: int) -> bool:
        return bottom_index == 0

    def class_axis(self) -> int:
        return self.param.infogain_loss_param.axis

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        super().reshape(bottom, top)
        K, shape = self.rows[1], bottom[2].shape if len(bottom) == 3 else self.H.shape
        if shape[-2:] != (K, K) or any(size != 1 for size in shape[:-2]):
            self.fail(f"H has shape {shape}, expected {(K, K)} for the classes of bottom {bottom[0].name!r}")

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.read_labels(bottom[1])
        x, p = bottom[0].data.reshape(self.rows), self.probability.data.reshape(self.rows)
        softmax_forward(self.backend, x, p)
        logarithms = self.xp.log(self.xp.maximum(p, LOG_THRESHOLD))
        top[0].data[...] = -(self._worth(bottom) * logarithms).sum() / self.divisor

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        for index in range(1, len(bottom)):
            self.no_gradient_for(propagate_down, bottom, index)
        if not propagate_down[0]:
            return
        p, dx = self.probability.data.reshape(self.rows), bottom[0].diff.reshape(self.rows)
        worth = self._worth(bottom)
        self.xp.multiply(p, worth.sum(axis=1, keepdims=True), out=dx)
        dx -= worth
        dx *= top[0].diff / self.divisor
        if len(top) == 2:
            self.add_through_probability(top[1], dx)

    def _worth(self, bottom: Sequence[Blob]) -> Any:
        """H(l, k) as an array (outer, K, inner), 0 for ignored labels."""
        K = self.rows[1]
        H = (bottom[2].data if len(bottom) == 3 else self.H).reshape(K, K)
        worth = self.xp.moveaxis(H[self.labels], -1, 1)
        return worth if self.ignore is None else worth * (self.labels >= 0)[:, None]
