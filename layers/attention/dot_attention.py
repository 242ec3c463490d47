"""DotAttention: softmax(scale q k^T) v, with its weights or without."""

from typing import Any

from ...framework.backend import Backend
from .attend import attention_backward, attention_forward, draw_dropout
from .visible import Visible
from .weighing import Weighing


class DotAttention:
    """context = D(softmax(scale q k^T)) v over the keys that each query sees, for each head; D is dropout.

    Where the weights are asked for they are kept; else neither pass holds more than a few queries' weights.
    """

    def __init__(self, backend: Backend, scale: float, dropout_ratio: float):
        self.backend, self.scale, self.dropout_ratio = backend, scale, dropout_ratio
        self.weighing = Weighing(backend)
        self.log_sums: Any = None

    def forward(self, q: Any, k: Any, v: Any, visible: Visible, context: Any, weights: Any = None) -> None:
        """Write context (T x N x H x e) and, if wanted, weights (T x N x H x S).

        q T x N x H x d, k S x N x H x d, v S x N x H x e.
        """
        (T, N, heads), S = q.shape[:3], len(k)
        self.visible = visible
        self.dropout = draw_dropout(self.backend, self.dropout_ratio, T * N * heads * S)
        if weights is None:
            if self.log_sums is None or self.log_sums.shape != (T, N, heads):
                self.log_sums = self.backend.xp.empty((T, N, heads), q.dtype)
            attention_forward(
                self.backend, q, k, v, self.scale, visible, self.dropout, context, self.log_sums
            )  # fmt: skip
            return
        scores = self.backend.xp.matmul(q.transpose(1, 2, 0, 3), k.transpose(1, 2, 3, 0))
        scores *= self.scale
        weights[...] = self.weighing.forward(scores, v, visible, self.dropout, context).transpose(2, 0, 1, 3)

    def backward(
        self, q: Any, k: Any, v: Any, context: Any, d_context: Any, d_weights: Any, dq: Any, dk: Any, dv: Any
    ) -> None:
        """Overwrite dq, dk and dv; ``d_weights`` is None where forward kept no weights."""
        if d_weights is None:
            attention_backward(
                self.backend, q, k, v, self.scale, self.visible, self.dropout, context, self.log_sums,
                d_context, dq, dk, dv,
            )  # fmt: skip
            return
        xp = self.backend.xp
        d_scores = self.weighing.backward(v, d_context, d_weights, dv)
        d_scores *= self.scale
        dq[...] = xp.matmul(d_scores, k.transpose(1, 2, 0, 3)).transpose(2, 0, 1, 3)
        dk[...] = xp.matmul(d_scores.transpose(0, 1, 3, 2), q.transpose(1, 2, 0, 3)).transpose(2, 0, 1, 3)
