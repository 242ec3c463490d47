"""Attention written out query by query, in float64: values and gradients."""

from collections.abc import Callable, Sequence

import numpy as np


def seen_keys(
    T: int, S: int, N: int, *, causal: bool = False, window: int = 0, cont: np.ndarray | None = None,
    lengths: np.ndarray | None = None, mask: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Whether query t of stream n sees key s, T x N x S, decided one by one."""
    seen = np.zeros((T, N, S), bool)
    for t, n, s in np.ndindex(T, N, S):
        wanted = not (causal or window) or s <= t
        wanted &= not window or s > t - window
        if cont is not None:
            first, last = sorted((t, s))
            wanted &= bool(np.all(cont[first + 1 : last + 1, n] != 0))
        if lengths is not None:
            wanted &= s < lengths[n]
        if mask is not None:
            wanted &= mask[s, n] != 0
        seen[t, n, s] = wanted
    return seen


def softmax_over(scores: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The weights of one query's keys; all 0 where it sees none."""
    weights = np.zeros_like(scores)
    if seen.any():
        powers = np.exp(scores[seen] - scores[seen].max())
        weights[seen] = powers / powers.sum()
    return weights


def softmax_slopes(weights: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """The gradient of the scores, from that of the weights: the softmax' Jacobian matrix times it."""
    return (np.diag(weights) - np.outer(weights, weights)) @ slopes


def dot_score(q: np.ndarray, k: np.ndarray, scale: float) -> tuple[float, np.ndarray, np.ndarray]:
    """scale q^T k and its gradients for q and k."""
    return scale * q @ k, scale * k, scale * q


def attend(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, seen: np.ndarray, scale: float,
    d_context: np.ndarray, d_weights: np.ndarray | None = None, factors: np.ndarray | None = None,
    score: Callable[..., Sequence] = dot_score,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """context, weights, dq, dk, dv of one head: q T x N x d, k S x N x d, v S x N x e.

    factors: T x N x S, what dropout multiplies the weights with; score(q, k, scale) gives a score, its gradients for q
    and k, and more gradients, whose sums are returned behind dv.
    """
    (T, N), S = q.shape[:2], len(k)
    context, weights = np.zeros((T, N, v.shape[2])), np.zeros((T, N, S))
    dq, dk, dv, more = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v), {}
    for t, n in np.ndindex(T, N):
        parts = [score(q[t, n], k[s, n], scale) for s in range(S)]
        weights[t, n] = softmax_over(np.array([part[0] for part in parts]), seen[t, n])
        factor = np.ones(S) if factors is None else factors[t, n]
        context[t, n] = (weights[t, n] * factor) @ v[:, n]
        slopes = factor * (v[:, n] @ d_context[t, n])
        if d_weights is not None:
            slopes = slopes + d_weights[t, n]
        dv[:, n] += np.outer(weights[t, n] * factor, d_context[t, n])
        for s, slope in enumerate(softmax_slopes(weights[t, n], slopes)):
            dq[t, n] += slope * parts[s][1]
            dk[s, n] += slope * parts[s][2]
            for i, gradient in enumerate(parts[s][3:]):
                more[i] = more.get(i, 0) + slope * gradient
    return context, weights, dq, dk, dv, *more.values()


def rotation(position: int, d: int, base: float = 10000.0) -> np.ndarray:
    """The d x d matrix that turns numbers 2i and 2i + 1 by position / base^(2i / d)."""
    matrix = np.zeros((d, d))
    for i in range(d // 2):
        angle = position / base ** (2 * i / d)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [
            [np.cos(angle), -np.sin(angle)],
            [np.sin(angle), np.cos(angle)],
        ]
    return matrix


def multi_head(
    x: np.ndarray, memory: np.ndarray | None, parameters: Sequence[np.ndarray], heads: int, seen: np.ndarray,
    dy: np.ndarray, d_weights: np.ndarray | None = None, rotary: bool = False, factors: np.ndarray | None = None,
) -> dict[str, np.ndarray | list[np.ndarray]]:  # fmt: skip
    """y, weights (T x N x heads x S), dx, dm and the gradients of the parameters (all with biases) of a
    MultiHeadAttention; memory None: self-attention.  factors: T x N x heads x S."""
    *inputs, W_o, b_o = parameters
    d = len(W_o) // heads
    if memory is None:
        W_q, W_k, W_v = np.split(inputs[0], 3)
        b_q, b_k, b_v = np.split(inputs[1], 3)
    else:
        W_q, b_q = inputs[:2]
        W_k, W_v = np.split(inputs[2], 2)
        b_k, b_v = np.split(inputs[3], 2)
    source = x if memory is None else memory
    q, k, v = x @ W_q.T + b_q, source @ W_k.T + b_k, source @ W_v.T + b_v
    turns = [rotation(t, d) if rotary else np.eye(d) for t in range(max(len(q), len(k)))]
    d_context = dy @ W_o
    context, weights = np.zeros_like(q), []
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for h in range(heads):
        part = slice(h * d, (h + 1) * d)
        turned_q = np.stack([row @ turns[t].T for t, row in enumerate(q[..., part])])
        turned_k = np.stack([row @ turns[t].T for t, row in enumerate(k[..., part])])
        context[..., part], alpha, head_dq, head_dk, dv[..., part] = attend(
            turned_q, turned_k, v[..., part], seen, d**-0.5, d_context[..., part],
            None if d_weights is None else d_weights[:, :, h], None if factors is None else factors[:, :, h],
        )  # fmt: skip
        weights.append(alpha)
        dq[..., part] = np.stack([row @ turns[t] for t, row in enumerate(head_dq)])
        dk[..., part] = np.stack([row @ turns[t] for t, row in enumerate(head_dk)])

    def gradients(dy: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
        return [np.einsum("tnk,tnd->kd", dy, x), dy.sum(axis=(0, 1))]

    d_source = dk @ W_k + dv @ W_v
    if memory is None:
        d_inputs = gradients(np.concatenate([dq, dk, dv], axis=2), x)
        dx, dm = dq @ W_q + d_source, None
    else:
        d_inputs = gradients(dq, x) + gradients(np.concatenate([dk, dv], axis=2), memory)
        dx, dm = dq @ W_q, d_source
    return {
        "y": context @ W_o.T + b_o,
        "weights": np.stack(weights, axis=2),
        "diffs": [dx] if memory is None else [dx, dm],
        "parameter_diffs": d_inputs + gradients(dy, context),
    }
