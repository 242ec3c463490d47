"""A recurrent layer with attention in its loop, stream by stream and vector by vector, in float64."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .recurrent import State


def look(h: np.ndarray, memory: np.ndarray, seen: Sequence[int], p: Mapping[str, np.ndarray], scale: float):
    """Context and weights of one step: memory S x D_h, of which the places ``seen`` count."""
    alpha = np.zeros(len(memory))
    q = p["W_Q"] @ h
    for i in seen:
        k = p["W_K"] @ memory[i]
        alpha[i] = np.exp(p["v"] @ np.tanh(q + k) if "v" in p else scale * (k @ q))
    if len(seen):
        alpha /= alpha.sum()
    return sum((alpha[i] * memory[i] for i in seen), np.zeros(memory.shape[1])), alpha


def decode(
    step: Callable[..., State], x: np.ndarray, cont: np.ndarray, memory: np.ndarray, first: Sequence[np.ndarray],
    true: Sequence[Sequence[int]], seen: Sequence[Sequence[int]], p: Mapping[str, np.ndarray], scale: float,
):  # fmt: skip
    """h (T x N x H), the last states (N x H each), contexts and weights; ``true``, ``seen``: places of each stream."""
    T, N = x.shape[:2]
    h = np.zeros((T, N, first[0].shape[1]))
    last = [np.zeros_like(part) for part in first]
    contexts, weights = np.zeros((T, N, memory.shape[2])), np.zeros((T, N, len(memory)))
    for n in range(N):
        state = tuple(part[n] for part in first)
        for t in range(T):
            if cont[t, n] == 0:
                state = tuple(np.zeros_like(part) for part in state)
            if t in true[n]:
                contexts[t, n], weights[t, n] = look(state[0], memory[:, n], seen[n], p, scale)
                state = step(x[t, n], state, {**p, "b": p["b"] + p["W_context"] @ contexts[t, n]})
                h[t, n] = state[0]
        for k, part in enumerate(state):
            last[k][n] = part
    return h, last, contexts, weights
