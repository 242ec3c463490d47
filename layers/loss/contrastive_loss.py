"""ContrastiveLoss: pulls pairs of like items together and pushes others apart."""

import math
from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import register
from .loss_layer import LossLayer

NEAR = 1e-4  # added to distances that are divided by, as in Caffe


@register
class ContrastiveLoss(LossLayer):
    """loss = 1/(2N) sum_n [s d^2 + (1 - s) max(m - d, 0)^2], with d = ||a_n - b_n||, s = 1 for a like pair.

    da = w/N (a - b) for a like pair, -w/N (m - d) (a - b) / (d + 1e-4) for another with d < m, 0 beyond;
    db = -da.  With ``legacy_version``: max(m - d^2, 0) in place of the square, and da = -w/N (a - b).

    Hadsell, Chopra and LeCun, "Dimensionality Reduction by Learning an Invariant Mapping", CVPR 2006.

    Shapes
        bottoms 0, 1: a, b, N x C; bottom 2: s, N, 0 or 1; top loss: a scalar

    Options (contrastive_loss_param)
        margin: m (1); legacy_version (false).
    """

    type = "ContrastiveLoss"
    bottoms = (3, 3)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.contrastive_loss_param
        self.margin, self.legacy = param.margin, param.legacy_version

    def allow_force_backward(self, bottom_index: int) -> bool:
        return bottom_index != 2

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        super().reshape(bottom, top)
        a, b, like = bottom
        if a.shape != b.shape:
            self.fail(f"bottom {a.name!r} has shape {a.shape} and {b.name!r} {b.shape}; expected the same")
        if not a.shape or like.count != a.shape[0]:
            self.fail(f"bottom {like.name!r} has shape {like.shape}, expected one number for each pair of {a.shape}")
        self.rows = a.shape[0], math.prod(a.shape[1:])

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        N, _ = self.rows
        self.difference = (bottom[0].data - bottom[1].data).reshape(self.rows)
        self.is_like = bottom[2].data.reshape(N, 1) != 0
        square = (self.difference * self.difference).sum(axis=1, keepdims=True)
        self.distance = self.xp.sqrt(square)
        self.short_of = self.xp.maximum(self.margin - (square if self.legacy else self.distance), 0)
        unlike = self.short_of if self.legacy else self.short_of * self.short_of
        top[0].data[...] = self.xp.where(self.is_like, square, unlike).sum() / (2 * N)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        self.no_gradient_for(propagate_down, bottom, 2)
        scale = top[0].diff / self.rows[0]
        push = self.short_of > 0 if self.legacy else self.short_of / (self.distance + NEAR)
        pull = self.xp.where(self.is_like, scale, -scale * push)
        for blob, sign, wanted in zip(bottom, (1, -1), propagate_down, strict=False):
            if wanted:
                self.xp.multiply(self.difference, sign * pull, out=blob.diff.reshape(self.rows))
