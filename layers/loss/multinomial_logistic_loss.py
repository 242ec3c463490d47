"""MultinomialLogisticLoss: the loss of given probabilities."""

import math
from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import register
from ..common.indices import index_values
from .hinge_loss import check_one_label_each
from .loss_layer import LOG_THRESHOLD, LossLayer


@register
class MultinomialLogisticLoss(LossLayer):
    """loss = -1/N sum_n log p_n(l_n), with given probabilities p and labels l.

    dp = -w/N / p at the label, 0 elsewhere, w the loss weight.  SoftmaxWithLoss, which has the softmax in it,
    is steadier.  Probabilities below 1e-20 count as 1e-20.

    Shapes
        bottom 0 p: N x K; bottom 1 l: labels from 0 to K - 1, N; top loss: a scalar

    Raises LayerError for a label out of range.
    """

    type = "MultinomialLogisticLoss"

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        super().reshape(bottom, top)
        check_one_label_each(self, bottom)
        self.rows = bottom[0].shape[0], math.prod(bottom[0].shape[1:])

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        N, K = self.rows
        labels = index_values(self, bottom[1], K, "label").reshape(N)
        self.at_label = self.xp.arange(N), labels
        self.p = self.xp.maximum(bottom[0].data.reshape(self.rows)[self.at_label], LOG_THRESHOLD)
        top[0].data[...] = -self.xp.log(self.p).sum() / N

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        self.no_gradient_for(propagate_down, bottom, 1)
        if propagate_down[0]:
            dp = bottom[0].diff.reshape(self.rows)
            dp.fill(0)
            dp[self.at_label] = -top[0].diff / self.rows[0] / self.p
