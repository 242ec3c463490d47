"""KeyValueCache: the keys and values of earlier passes, for the queries of the next."""

from collections.abc import Mapping
from typing import Any

from ...framework.backend import Backend


class KeyValueCache:
    """Rows of keys and values, one for each step of N streams, in memory that doubles when it is full.

    ``first`` is the position of row 0: rows that no query will see any more are dropped when they are the most.
    ``begin`` (N) is the row where the sequence that goes on began; ``shown`` is 0 at padded rows.
    """

    def __init__(self, backend: Backend):
        self.backend, self.xp = backend, backend.xp
        self.forget()

    def forget(self) -> None:
        """Be empty, for any number of streams."""
        self._rows: Any = None
        self._shown: Any = None
        self.begin: Any = None
        self.length = self.first = 0

    @property
    def position(self) -> int:
        """Where the next row will stand."""
        return self.first + self.length

    @property
    def streams(self) -> int | None:
        """N; None while the cache is empty."""
        return None if self._rows is None else self._rows.shape[1]

    @property
    def rows(self) -> Any:
        """All rows, length x N x ..."""
        return self._rows[: self.length]

    @property
    def shown(self) -> Any:
        """length x N: 0 where a row is padding; None where none is."""
        return None if self._shown is None else self._shown[: self.length]

    def make_room(self, T: int, window: int) -> None:
        """Have memory for T more rows; forget the first rows if most of all are out of sight for all that follows."""
        if self._rows is None:
            return
        unseen = max(int(self.begin.min()), self.length - window + 1 if window else 0)
        if 2 * unseen <= self.length:
            unseen = 0
        if unseen or self.length + T > len(self._rows):
            kept = slice(unseen, self.length)
            self.first += unseen
            self.length -= unseen
            self.begin = self.xp.maximum(self.begin - unseen, 0)
            self._rows = self._doubled(self._rows[kept], T)
            self._shown = None if self._shown is None else self._doubled(self._shown[kept], T)

    def append(self, rows: Any, shown: Any) -> None:
        """Add ``rows`` (T x N x ...), for which there is room, and which of them count (T x N, or None)."""
        if self._rows is None:
            self.begin = self.xp.zeros(rows.shape[1], self.xp.int32)
            self._rows = self._doubled(rows, 0)
            self._shown = None if shown is None else self._doubled(shown, 0)
        else:
            added = slice(self.length, self.length + len(rows))
            self._rows[added] = rows
            if shown is not None:
                self._shown[added] = shown
        self.length += len(rows)

    def select_streams(self, order: Any) -> None:
        """Keep the streams of these numbers, in this order."""
        if self._rows is not None:
            order = self.xp.asarray(order)
            self._rows = self._rows[:, order]
            self._shown = None if self._shown is None else self._shown[:, order]
            self.begin = self.begin[order]

    def get_state(self) -> dict[str, Any]:
        """The rows and what is known of them, on the host."""
        if self._rows is None:
            return {}
        arrays = {"rows": self.rows, "begin": self.begin, "shown": self.shown}
        return {"first": self.first} | {
            name: self.backend.to_host(array) for name, array in arrays.items() if array is not None
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Be as the cache was that gave ``state``."""
        self.forget()
        if "rows" in state:
            self.first, self.length = int(state["first"]), len(state["rows"])
            self._rows, self.begin, self._shown = (
                self.backend.to_device(state[name]) if name in state else None for name in ("rows", "begin", "shown")
            )

    def _doubled(self, rows: Any, more: int) -> Any:
        """Memory for twice as many as ``rows`` and ``more``, with ``rows`` in it."""
        memory = self.xp.empty((2 * (len(rows) + more), *rows.shape[1:]), rows.dtype)
        memory[: len(rows)] = rows
        return memory
