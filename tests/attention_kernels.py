"""Arguments for the fused attention, as tests/test_kernels.py wants them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from recaffe.framework.backend import CpuBackend
from recaffe.layers.attention.attend import WeightDropout, attention_forward
from recaffe.layers.attention.visible import Visible, sequence_edges, visible_keys

SIZES = [  # T, S, N, H, d, e
    (5, 5, 2, 2, 3, 3), (32, 32, 3, 2, 16, 16), (70, 70, 1, 1, 32, 32), (1, 9, 2, 3, 8, 5), (60, 37, 2, 1, 48, 64),
    (130, 130, 1, 2, 20, 20),
]  # fmt: skip


def masks(a: Any, T: int, S: int, N: int) -> Iterator[Visible]:
    """What queries may see: all, intervals of every kind, a mask, nothing."""
    yield visible_keys(np, T, N, S)
    yield visible_keys(np, T, N, S, causal=True, offset=max(S - T, 0))
    lengths = a.random.integers(S // 2, S + 1, N).astype(np.int32)
    yield visible_keys(np, T, N, S, window=7, offset=max(S - T, 0), lengths=lengths)
    yield visible_keys(np, T, N, S, mask=(a.random.random((S, N)) < 0.5).astype(a.dtype))
    yield visible_keys(np, T, N, S, causal=True, mask=np.zeros((S, N), a.dtype))
    if T == S:
        cont = (a.random.random((T, N)) < 0.9).astype(a.dtype)
        yield visible_keys(np, T, N, S, segments=sequence_edges(np, cont, 0, 0))


def forwards(a: Any) -> Iterator[tuple]:
    """The arguments of attention_forward."""
    for T, S, N, H, d, e in SIZES:
        for number, visible in enumerate(masks(a, T, S, N)):
            dropout = WeightDropout(0.25, 12345678901234567890 + number, 99) if number % 2 else None
            q, k, v = a.normal(T, N, H, d), a.normal(S, N, H, d), a.normal(S, N, H, e)
            yield q, k, v, d**-0.5, visible, dropout, a.empty(T, N, H, e), a.empty(T, N, H)


def backwards(a: Any) -> Iterator[tuple]:
    """The arguments of attention_backward; the gradients lie side by side, as those of one projection do."""
    backend = CpuBackend(threads=1)
    for arguments in forwards(a):
        q, k, v, context = (arguments[i] for i in (0, 1, 2, 6))
        attention_forward.plain(backend, *arguments)
        dk = a.empty(*k.shape[:2], 2, *k.shape[2:])[:, :, 1]
        yield *arguments, a.normal(*context.shape), a.empty(*q.shape), dk, a.empty(*v.shape)


def turns(a: Any) -> Iterator[tuple]:
    """The arguments of turn_pairs."""
    for T, N, H, d in ((5, 2, 3, 6), (1, 1, 1, 2), (7, 3, 2, 64)):
        yield a.normal(T, N, H, d), a.normal(T, d // 2), a.normal(T, d // 2)


CASES = {  # what makes the arguments, and which of them are results
    "attention_forward": (forwards, (6, 7)),  # context and log_sums
    "attention_backward": (backwards, (9, 10, 11)),  # dq, dk and dv
    "turn_pairs": (turns, (0,)),
}
