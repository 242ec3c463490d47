"""AdditiveAttention: softmax(w^T tanh(q + k)) v."""

from typing import Any

from ...framework.backend import Backend
from .attend import draw_dropout, query_blocks
from .visible import Visible
from .weighing import Weighing


class AdditiveAttention:
    """scores[t, s] = sum over K of w tanh(q_t + k_s); context = D(softmax(scores)) v, with D dropout.

    The T x S weights are kept; the T x S x K hyperbolic tangents are made again in backward.

    Bahdanau, Cho and Bengio, "Neural Machine Translation by Jointly Learning to Align and Translate", ICLR 2015.
    """

    def __init__(self, backend: Backend, w: Any, dropout_ratio: float):
        self.backend, self.xp, self.w, self.dropout_ratio = backend, backend.xp, w, dropout_ratio
        self.weighing = Weighing(backend)

    def forward(self, q: Any, k: Any, v: Any, visible: Visible, context: Any, weights: Any = None) -> None:
        """Write context (T x N x 1 x e) and, if wanted, weights (T x N x 1 x S).

        q T x N x 1 x K, k S x N x 1 x K, v S x N x 1 x e.
        """
        (T, N), S = q.shape[:2], len(k)
        scores = self.xp.empty((N, 1, T, S), q.dtype)
        for queries in query_blocks(q, k, q.shape[3]):
            scores[:, 0, queries] = self.xp.matmul(self.curves(q, k, queries), self.w.data)
        dropout = draw_dropout(self.backend, self.dropout_ratio, T * N * S)
        alpha = self.weighing.forward(scores, v, visible, dropout, context)
        if weights is not None:
            weights[...] = alpha.transpose(2, 0, 1, 3)

    def backward(
        self, q: Any, k: Any, v: Any, context: Any, d_context: Any, d_weights: Any, dq: Any, dk: Any, dv: Any
    ) -> Any:
        """Overwrite dq, dk and dv; gives the gradient of w (K).  ``d_weights`` may be None."""
        d_scores = self.weighing.backward(v, d_context, d_weights, dv)[:, 0]
        dk[...] = 0
        dw = self.xp.zeros(self.w.shape, q.dtype)
        for queries in query_blocks(q, k, q.shape[3]):
            curves, slopes = self.curves(q, k, queries), d_scores[:, queries]
            dw += self.xp.matmul(slopes.reshape(-1), curves.reshape(-1, len(dw)))
            self.xp.multiply(curves, curves, out=curves)
            self.xp.subtract(1, curves, out=curves)
            curves *= slopes[..., None]
            curves *= self.w.data
            dq[queries, :, 0] = curves.sum(axis=2).transpose(1, 0, 2)
            dk[:, :, 0] += curves.sum(axis=1).transpose(1, 0, 2)
        return dw

    def curves(self, q: Any, k: Any, queries: slice) -> Any:
        """tanh(q + k) for some queries and all keys, N x queries x S x K."""
        sums = q[queries, :, 0].transpose(1, 0, 2)[:, :, None] + k[:, :, 0].transpose(1, 0, 2)[:, None]
        return self.xp.tanh(sums, out=sums)
