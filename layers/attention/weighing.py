"""Weighing: the weights alpha = softmax(scores) kept, and the sum of values that they give."""

from typing import Any

from ...framework.backend import Backend
from .attend import WeightDropout, masked_softmax
from .visible import Visible


class Weighing:
    """alpha = softmax(scores) over the keys that each query sees; context = D(alpha) v, with D dropout.

    dv = D(alpha)^T d_context;  d_alpha = D(d_context v^T) + what comes from alpha itself;
    d_scores = alpha (d_alpha - sum alpha d_alpha).
    """

    def __init__(self, backend: Backend):
        self.backend, self.xp = backend, backend.xp

    def forward(
        self, scores: Any, v: Any, visible: Visible, dropout: WeightDropout | None, context: Any
    ) -> Any:  # fmt: skip
        """scores (N x H x T x S) become the weights alpha, which are given back; v S x N x H x e."""
        T, S = scores.shape[2:]
        masked_softmax(self.xp, scores, visible.shown(self.xp, slice(0, T), S))
        self.alpha, self.factors, dropped = scores, None, scores
        if dropout is not None:
            self.factors = dropout.factors(self.backend, slice(0, T), scores)
            dropped = scores * self.factors
        context[...] = self.xp.matmul(dropped, v.transpose(1, 2, 0, 3)).transpose(2, 0, 1, 3)
        return scores

    def backward(self, v: Any, d_context: Any, d_alpha: Any, dv: Any) -> Any:
        """The gradient of the scores (N x H x T x S), from those of the context and of alpha (T x N x H x S or None).

        dv is overwritten, unless it is None.
        """
        xp, slopes = self.xp, d_context.transpose(1, 2, 0, 3)
        d_scores = xp.matmul(slopes, v.transpose(1, 2, 3, 0))
        dropped = self.alpha
        if self.factors is not None:
            dropped = self.alpha * self.factors
            d_scores *= self.factors
        if dv is not None:
            dv[...] = xp.matmul(dropped.transpose(0, 1, 3, 2), slopes).transpose(2, 0, 1, 3)
        if d_alpha is not None:
            d_scores += d_alpha.transpose(1, 2, 0, 3)
        d_scores -= (self.alpha * d_scores).sum(axis=-1, keepdims=True)
        d_scores *= self.alpha
        return d_scores
