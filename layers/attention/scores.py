"""Scores: how well a key fits a query, inside the loop of a recurrent layer."""

import math
from collections.abc import Sequence
from typing import Any


class Score:
    """The scores of keys (N x S x K) for one query of each stream (N x K); ``weights`` are those of weight_shapes."""

    def __init__(self, K: int):
        self.K = K

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of each parameter."""
        return {}

    def forward(self, xp: Any, weights: Sequence[Any], keys: Any, q: Any, scores: Any) -> None:
        """``scores`` (N x S)."""
        raise NotImplementedError

    def backward(self, xp: Any, weights: Sequence[Any], keys: Any, q: Any, d_scores: Any, dq: Any) -> None:
        """``dq`` from ``d_scores``."""
        raise NotImplementedError

    def finish(self, xp: Any, weights: Sequence[Any], keys: Any, q: Any, d_scores: Any) -> tuple[Any, Any]:
        """The gradients of ``keys`` and of the parameter, if there is one, from all steps (T x N x ...)."""
        raise NotImplementedError


class DotScore(Score):
    """k^T q, or with ``scaled`` k^T q / sqrt(K)."""

    def __init__(self, K: int, scaled: bool):
        super().__init__(K)
        self.scale = 1 / math.sqrt(K) if scaled else 1.0

    def forward(self, xp: Any, weights: Sequence[Any], keys: Any, q: Any, scores: Any) -> None:
        xp.multiply(xp.matmul(q[:, None], keys.transpose(0, 2, 1))[:, 0], self.scale, out=scores)

    def backward(self, xp: Any, weights: Sequence[Any], keys: Any, q: Any, d_scores: Any, dq: Any) -> None:
        xp.multiply(xp.matmul(d_scores[:, None], keys)[:, 0], self.scale, out=dq)

    def finish(self, xp: Any, weights: Sequence[Any], keys: Any, q: Any, d_scores: Any) -> tuple[Any, Any]:
        d_keys = xp.matmul(d_scores.transpose(1, 2, 0), q.transpose(1, 0, 2))
        d_keys *= self.scale
        return d_keys, None


class AdditiveScore(Score):
    """v^T tanh(q + k)."""

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"v": (self.K,)}

    def forward(self, xp: Any, weights: Sequence[Any], keys: Any, q: Any, scores: Any) -> None:
        scores[...] = xp.tanh(q[:, None] + keys) @ weights[0]

    def backward(self, xp: Any, weights: Sequence[Any], keys: Any, q: Any, d_scores: Any, dq: Any) -> None:
        u = xp.tanh(q[:, None] + keys)
        dq[...] = xp.matmul(d_scores[:, None], 1 - u * u)[:, 0]
        dq *= weights[0]

    def finish(self, xp: Any, weights: Sequence[Any], keys: Any, q: Any, d_scores: Any) -> tuple[Any, Any]:
        (v,) = weights
        d_keys, dv = xp.zeros_like(keys), xp.zeros_like(v)
        for t in range(len(q)):
            u = xp.tanh(q[t, :, None] + keys)
            dv += d_scores[t].reshape(-1) @ u.reshape(-1, self.K)
            d_keys += d_scores[t, :, :, None] * (1 - u * u)
        d_keys *= v
        return d_keys, dv
