"""Batches made ahead of their use, in a background thread."""

import os
import queue
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


class Batch:
    """Host arrays for the tops of one batch, used again and again, and the source's state after it."""

    def __init__(self, tops: int, dtype: Any):
        self._dtype = dtype
        self.arrays: list[Any] = [None] * tops
        self.state: Mapping[str, Any] = {}

    def array(self, top: int, shape: tuple[int, ...]) -> np.ndarray:
        """The array for ``top``; its contents are undefined."""
        if self.arrays[top] is None or self.arrays[top].shape != shape:
            self.arrays[top] = np.empty(shape, self._dtype)
        return self.arrays[top]


class BatchSource:
    """Where batches come from.  Only one thread at a time uses it.

    The state says all that the next batches depend on; ``set_state`` opens whatever ``close`` has closed.
    """

    def top_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the tops of the next batch."""
        raise NotImplementedError

    def fill(self, batch: Batch) -> None:
        """Write the next batch."""
        raise NotImplementedError

    def get_state(self) -> dict[str, Any]:
        """The place in the data, the random generator."""
        raise NotImplementedError

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from ``get_state()``."""
        raise NotImplementedError

    def close(self) -> None:
        """Release files."""


class Prefetcher:
    """Up to ``depth`` batches of ``source``, made ahead by one thread.

    ``state`` is the source's state after the last batch that was taken, whatever was made ahead.  The thread
    starts with the first batch taken, and again after ``set_state``, ``close`` or a fork.
    """

    def __init__(self, source: BatchSource, tops: int, dtype: Any, depth: int):
        self._source = source
        self._batches = [Batch(tops, dtype) for _ in range(max(depth, 1))]
        self._run: Run | None = None
        self._stop: Callable[[], Any] = lambda: None
        self._taken: Batch | None = None
        self.state: Mapping[str, Any] = source.get_state()

    def next(self) -> Batch:
        """The next batch; its arrays stay as they are until the following call."""
        if self._run is None or self._run.process != os.getpid():
            self._source.set_state(self.state)
            self._run = Run(self._source, self._batches)
            self._stop = weakref.finalize(self, self._run.stop)
        elif self._taken is not None:
            self._run.empty.put(self._taken)
        self._taken = None
        made = self._run.ready.get()
        if isinstance(made, BaseException):
            self.close()
            raise made
        self._taken = made
        self.state = made.state
        return made

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state``; what was made ahead is dropped."""
        self.close()
        self._source.set_state(state)
        self.state = state

    def close(self) -> None:
        """Stop the thread and release the source's files."""
        self._stop()
        self._run = self._taken = None
        self._source.close()


class Run:
    """The thread and its two queues; it knows nothing of the prefetcher, so that one nobody uses any more can end."""

    def __init__(self, source: BatchSource, batches: list[Batch]):
        self.process = os.getpid()
        self.empty: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self.ready: queue.SimpleQueue[Batch | BaseException] = queue.SimpleQueue()
        self._source = source
        self._stopping = False
        for batch in batches:
            self.empty.put(batch)
        self._thread = threading.Thread(target=self._make_batches, name="recaffe-prefetch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let the thread end with the batch it is at, and wait for it."""
        self._stopping = True
        self.empty.put(None)
        if self.process == os.getpid() and self._thread is not threading.current_thread():
            self._thread.join()

    def _make_batches(self) -> None:
        while (batch := self.empty.get()) is not None and not self._stopping:
            try:
                self._source.fill(batch)
                batch.state = self._source.get_state()
            except BaseException as error:
                self.ready.put(error)
                return
            self.ready.put(batch)
