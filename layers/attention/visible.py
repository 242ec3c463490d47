"""Visible: which keys a query sees."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Visible:
    """Query t of stream n sees the keys begin[t, n] to end[t, n] (without the last), but for those whose mask is 0.

    begin, end: T x N, int32; mask: S x N, or None where every key counts.
    """

    begin: Any
    end: Any
    mask: Any = None

    def shown(self, xp: Any, queries: slice, S: int) -> Any:
        """Whether each of some queries sees each of the S keys: a bool for N x 1 x queries x S."""
        keys = xp.arange(S, dtype=xp.int32)
        begin, end = (edge[queries].T[:, :, None] for edge in (self.begin, self.end))
        shown = (keys >= begin) & (keys < end)
        if self.mask is not None:
            shown &= (self.mask != 0).T[:, None, :]
        return shown[:, None]


def visible_keys(
    xp: Any, T: int, N: int, S: int, offset: int = 0, causal: bool = False, window: int = 0,
    segments: tuple[Any, Any] | None = None, lengths: Any = None, mask: Any = None,
) -> Visible:  # fmt: skip
    """What T queries see of S keys, the first query standing at key ``offset``.

    causal: nothing behind itself; window: itself and window - 1 keys before it; segments: the first key of each query's
    sequence and the one behind its last (T x N each); lengths (N): how many keys count; mask (S x N): which.
    """
    begin, end = segments or (xp.zeros((T, N), xp.int32), xp.full((T, N), S, xp.int32))
    place = xp.arange(offset, offset + T, dtype=xp.int32)[:, None]
    if window:
        begin = xp.maximum(begin, place - (window - 1))
    if causal or window:
        end = xp.minimum(end, place + 1)
    if lengths is not None:
        end = xp.minimum(end, lengths)
    return Visible(begin, end, mask)


def sequence_edges(xp: Any, cont: Any, offset: int, first: Any) -> tuple[Any, Any]:
    """Where the sequence of each of T x N steps begins, and where the next one does.

    cont (T x N) is 0 where a sequence starts.  The steps stand at ``offset`` and behind; the sequences that go on at
    the first step began at ``first`` (N).
    """
    T = len(cont)
    place = xp.arange(offset, offset + T, dtype=xp.int32)[:, None]
    starts = cont == 0
    begin = xp.where(starts, place, first)
    end = xp.full(cont.shape, offset + T, xp.int32)
    end[:-1] = xp.where(starts[1:], place[1:], end[1:])
    step = 1
    while step < T:  # the latest of 2, 4, 8 ... steps back, the first of as many ahead
        begin[step:] = xp.maximum(begin[step:], begin[:-step])
        end[:-step] = xp.minimum(end[:-step], end[step:])
        step *= 2
    return begin, end
