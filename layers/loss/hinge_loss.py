"""HingeLoss: the loss of a one-against-all support vector machine."""

import math
from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import register
from ...proto import HingeLossParameter
from ..common.indices import index_values
from .loss_layer import LossLayer


@register
class HingeLoss(LossLayer):
    """loss = 1/N sum m (L1) or 1/N sum m^2 (L2), with m = max(0, 1 - s x), s = 1 at the label, -1 elsewhere.

    dx = -w/N s where m > 0 (L1), -2w/N s m (L2), w the loss weight.

    Shapes
        bottom 0 x: scores, N x K; bottom 1: labels from 0 to K - 1, N; top loss: a scalar

    Options (hinge_loss_param)
        norm: L1 (the default) or L2.

    Raises LayerError for a label out of range.
    """

    type = "HingeLoss"

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        super().reshape(bottom, top)
        check_one_label_each(self, bottom)
        self.rows = bottom[0].shape[0], math.prod(bottom[0].shape[1:])

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        N, K = self.rows
        labels = index_values(self, bottom[1], K, "label").reshape(N, 1)
        is_label = labels == self.xp.arange(K)
        self.signs = self.xp.where(is_label, self.dtype.type(1), self.dtype.type(-1))
        self.margins = self.xp.maximum(1 - self.signs * bottom[0].data.reshape(self.rows), 0)
        squared = self.param.hinge_loss_param.norm == HingeLossParameter.L2
        top[0].data[...] = (self.margins * self.margins if squared else self.margins).sum() / N

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        self.no_gradient_for(propagate_down, bottom, 1)
        if propagate_down[0]:
            scale, dx = -top[0].diff / self.rows[0], bottom[0].diff.reshape(self.rows)
            if self.param.hinge_loss_param.norm == HingeLossParameter.L2:
                self.xp.multiply(self.signs, 2 * self.margins * scale, out=dx)
            else:
                self.xp.multiply(self.signs, (self.margins > 0) * scale, out=dx)


def check_one_label_each(layer: LossLayer, bottom: Sequence[Blob]) -> None:
    """Raise LayerError unless bottom 1 has one label for each item of bottom 0."""
    scores, labels = bottom[:2]
    if not scores.shape or labels.count != scores.shape[0]:
        layer.fail(
            f"bottom {labels.name!r} has shape {labels.shape}, expected one label for each item of"
            f" {scores.name!r}, of shape {scores.shape}"
        )
