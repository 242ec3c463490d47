"""SigmoidCrossEntropyLoss: the loss of many yes-or-no questions at once."""

import math
from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import register
from ...proto import LossParameter
from ..activation.sigmoid import sigmoid_forward
from .loss_layer import LossLayer, Normaliser


@register
class SigmoidCrossEntropyLoss(LossLayer):
    """loss = -1/Z sum [t log p + (1 - t) log(1 - p)], with p = sigmoid(x) and targets t.

    dx = w/Z (p - t), 0 for ignored targets, w the loss weight.

    Shapes
        bottom 0 x: N x ...; bottom 1 t: as many values, from 0 to 1; top loss: a scalar

    Options (loss_param)
        ignore_label: targets of this value do not count
        normalization: Z, the first size (BATCH_SIZE, the default here), the targets that count (VALID), all
        (FULL), 1 (NONE).
    """

    type = "SigmoidCrossEntropyLoss"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.loss_param
        self.ignore = param.ignore_label if param.HasField("ignore_label") else None
        self.normaliser = Normaliser(self, LossParameter.BATCH_SIZE)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        super().reshape(bottom, top)
        x, t = bottom
        if x.count != t.count:
            self.fail(
                f"bottom {x.name!r} has shape {x.shape} and {t.name!r} {t.shape}; expected as many values in both"
            )
        self.p = self.xp.empty(x.count, self.dtype)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, t = bottom[0].data.reshape(-1), bottom[1].data.reshape(-1)
        sigmoid_forward(self.backend, x, self.p)
        losses = self.xp.logaddexp(x, 0) - x * t
        valid = x.size
        self.counts = None if self.ignore is None else self._counts(t)
        if self.counts is not None:
            losses *= self.counts
            if self.normaliser.counts_valid:
                valid = int(self.counts.sum())
        outer = bottom[0].shape[0] if bottom[0].shape else 1
        self.divisor = self.normaliser(outer, math.prod(bottom[0].shape[1:]), valid)
        top[0].data[...] = losses.sum() / self.divisor

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        self.no_gradient_for(propagate_down, bottom, 1)
        if propagate_down[0]:
            dx = bottom[0].diff.reshape(-1)
            self.xp.subtract(self.p, bottom[1].data.reshape(-1), out=dx)
            dx *= top[0].diff / self.divisor
            if self.counts is not None:
                dx *= self.counts

    def _counts(self, t: Any) -> Any:
        """Which targets, cut to whole numbers, are not the one ignored."""
        return t.astype(self.xp.int64) != self.ignore
