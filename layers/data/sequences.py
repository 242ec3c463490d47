"""Sequences: arrays of different lengths, end to end in one array, in memory or in a temporary file."""

import mmap
from collections.abc import Sequence
from tempfile import SpooledTemporaryFile
from typing import Any

import numpy as np

IN_MEMORY = 1 << 26  # bytes; what is larger goes to a temporary file that is mapped into memory


class Sequences:
    """Sequence i is ``values[starts[i] : starts[i + 1]]``."""

    def __init__(self, values: np.ndarray, starts: np.ndarray):
        self.values, self.starts = values, starts

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> np.ndarray:
        return self.values[self.starts[i] : self.starts[i + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """The number of steps of each sequence."""
        return np.diff(self.starts)


class SequenceWriter:
    """Takes sequences piece by piece, so that they need not fit into memory."""

    def __init__(self, dtype: Any, step_shape: Sequence[int] = ()):
        self._dtype, self._step_shape = np.dtype(dtype), tuple(step_shape)
        self._file: Any = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  lives as long as its map
        self._steps, self._starts = 0, [0]

    @property
    def count(self) -> int:
        """How many sequences have ended."""
        return len(self._starts) - 1

    def add(self, values: Any) -> None:
        """Add steps to the sequence at hand."""
        values = np.ascontiguousarray(values, self._dtype)
        self._file.write(values.tobytes())
        self._steps += len(values)

    def end_sequence(self) -> int:
        """Let the next steps be another sequence's; gives this one's length."""
        self._starts.append(self._steps)
        return self._steps - self._starts[-2]

    def finish(self) -> Sequences:
        """All that was written."""
        memory: Any
        size = self._file.tell()
        if size > IN_MEMORY:
            self._file.flush()
            memory = mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ)
        else:
            self._file.seek(0)
            memory = self._file.read()
        self._file.close()
        values = np.frombuffer(memory, self._dtype).reshape(self._steps, *self._step_shape)
        return Sequences(values, np.array(self._starts, np.int64))
