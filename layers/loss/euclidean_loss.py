"""EuclideanLoss: the loss of regression."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import register
from .loss_layer import LossLayer


@register
class EuclideanLoss(LossLayer):
    """loss = 1/(2N) sum (a - b)^2.

    da = w/N (a - b), db = -da, w the loss weight.

    Shapes
        bottoms a, b: N x ..., as many values in each; both have a gradient
        top loss: a scalar.
    """

    type = "EuclideanLoss"

    def allow_force_backward(self, bottom_index: int) -> bool:
        return True

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        super().reshape(bottom, top)
        a, b = bottom
        if a.count != b.count:
            self.fail(
                f"bottom {a.name!r} has shape {a.shape} and bottom {b.name!r} {b.shape};"
                " expected as many values in both"
            )
        self.N = a.shape[0] if a.shape else 1
        self.difference: Any = self.xp.empty(a.count, self.dtype)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        a, b = bottom[0].data.reshape(-1), bottom[1].data.reshape(-1)
        self.xp.subtract(a, b, out=self.difference)
        top[0].data[...] = self.difference.dot(self.difference) / (2 * self.N)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        scale = top[0].diff / self.N
        for blob, sign, wanted in zip(bottom, (1, -1), propagate_down, strict=True):
            if wanted:
                self.xp.multiply(self.difference, sign * scale, out=blob.diff.reshape(-1))
