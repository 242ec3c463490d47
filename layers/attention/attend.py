"""softmax(scale q k^T) v without the T x S weights: a few queries at a time, and once more in backward.

Dao et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", NeurIPS 2022: backward makes
the weights again from the scores and the logarithm of the softmax' denominator.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...framework.backend import Backend
from ...framework.fusable import fusable
from ...framework.random_numbers import uniform_numbers
from .visible import Visible

BLOCK = 1 << 22  # weights that the plain version holds at a time


@dataclass(frozen=True)
class WeightDropout:
    """Which weights are dropped in one pass: weight (t, n, head, s) where number ((t N + n) H + head) S + s behind
    ``position`` of the random numbers ``stream`` is below ``ratio``; so backward can ask again."""

    ratio: float
    stream: int
    position: int

    def factors(self, backend: Any, queries: slice, weights: Any) -> Any:
        """What to multiply the ``weights`` (N x H x queries x S) of some queries with: 0 or 1 / (1 - ratio)."""
        N, heads, count, S = weights.shape
        factors = backend.xp.empty((count, N, heads, S), weights.dtype)
        uniform_numbers(backend, factors, self.stream, self.position + queries.start * N * heads * S)
        backend.xp.greater_equal(factors, self.ratio, out=factors)
        factors *= 1 / (1 - self.ratio)
        return factors.transpose(1, 2, 0, 3)


def draw_dropout(backend: Backend, ratio: float, count: int) -> WeightDropout | None:
    """The dropout of ``count`` weights in one pass; None where ``ratio`` is 0."""
    return WeightDropout(ratio, *backend.set_aside_numbers(count)) if ratio else None


@fusable
def attention_forward(
    backend: Any, q: Any, k: Any, v: Any, scale: float, visible: Visible, dropout: WeightDropout | None,
    context: Any, log_sums: Any,
) -> None:  # fmt: skip
    """context = softmax(scale q k^T) v over the keys that each query sees; log_sums = log sum exp(scale q k^T).

    q (T, N, H, d), k (S, N, H, d), v (S, N, H, e), context (T, N, H, e) with any steps but 1 on the last axis;
    log_sums (T, N, H).  A query that sees nothing has the context 0 and the log_sum inf.
    """
    xp = backend.xp
    keys, values = k.transpose(1, 2, 3, 0), v.transpose(1, 2, 0, 3)
    for queries in query_blocks(q, k):
        weights = xp.matmul(q[queries].transpose(1, 2, 0, 3), keys)
        weights *= scale
        log_sums[queries] = masked_softmax(xp, weights, visible.shown(xp, queries, len(k))).transpose(2, 0, 1)
        if dropout is not None:
            weights *= dropout.factors(backend, queries, weights)
        context[queries] = xp.matmul(weights, values).transpose(2, 0, 1, 3)


@fusable
def attention_backward(
    backend: Any, q: Any, k: Any, v: Any, scale: float, visible: Visible, dropout: WeightDropout | None,
    context: Any, log_sums: Any, d_context: Any, dq: Any, dk: Any, dv: Any,
) -> None:  # fmt: skip
    """The gradients of ``attention_forward``, from its arguments and results; dq, dk, dv are overwritten.

    With P the weights: dv = P^T d_context, dP = d_context v^T, dS = P (dP - sum d_context context) scale,
    dq = dS k, dk = dS^T q.
    """
    xp = backend.xp
    keys, values = k.transpose(1, 2, 0, 3), v.transpose(1, 2, 3, 0)
    dk[...] = 0
    dv[...] = 0
    for queries in query_blocks(q, k):
        q_block, slopes = (array[queries].transpose(1, 2, 0, 3) for array in (q, d_context))
        weights = xp.matmul(q_block, keys.transpose(0, 1, 3, 2))
        weights *= scale
        weights -= log_sums[queries].transpose(1, 2, 0)[..., None]
        xp.exp(xp.where(visible.shown(xp, queries, len(k)), weights, -xp.inf), out=weights)
        d_scores = xp.matmul(slopes, values)
        if dropout is None:
            dropped = weights
        else:
            factors = dropout.factors(backend, queries, weights)
            dropped = weights * factors
            d_scores *= factors
        dv += xp.matmul(dropped.transpose(0, 1, 3, 2), slopes).transpose(2, 0, 1, 3)
        d_scores -= (d_context[queries] * context[queries]).sum(axis=3).transpose(1, 2, 0)[..., None]
        d_scores *= weights
        d_scores *= scale
        dq[queries] = xp.matmul(d_scores, keys).transpose(2, 0, 1, 3)
        dk += xp.matmul(d_scores.transpose(0, 1, 3, 2), q_block).transpose(2, 0, 1, 3)


def query_blocks(q: Any, k: Any, numbers: int = 1) -> Iterator[slice]:
    """The queries in blocks that have at most BLOCK weights, at ``numbers`` each; one query at least."""
    T, N, heads = q.shape[:3]
    size = max(1, BLOCK // (N * heads * len(k) * numbers))
    for start in range(0, T, size):
        yield slice(start, min(start + size, T))


def masked_softmax(xp: Any, scores: Any, shown: Any) -> Any:
    """Overwrite ``scores`` by their softmax along the last axis over those ``shown``; gives log sum exp.

    A row of which nothing is shown becomes 0, and its logarithm inf.
    """
    scores[...] = xp.where(shown, scores, -xp.inf)
    largest = scores.max(axis=-1, keepdims=True)
    largest = xp.where(largest == -xp.inf, 0, largest)
    scores -= largest
    xp.exp(scores, out=scores)
    sums = scores.sum(axis=-1, keepdims=True)
    empty = sums == 0
    sums = xp.where(empty, 1, sums)
    scores /= sums
    return xp.where(empty, xp.inf, largest + xp.log(sums))[..., 0]
