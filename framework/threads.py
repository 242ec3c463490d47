"""One owner of the cores: recaffe splits a layer's work over its own threads, BLAS runs one inside each.

The measurements behind this stand in docs/performance.md.
"""

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .aligned import aligned
from .errors import RecaffeError

WORTH_SPLITTING = 200_000  # nanoseconds of serial work below which waking another thread costs more than it saves


def thread_count() -> int:
    """How many threads to compute with: RECAFFE_NUM_THREADS, else OMP_NUM_THREADS, else the usable cores."""
    for variable in ("RECAFFE_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(variable, "")
        if text:
            if not text.isdigit() or int(text) < 1:
                raise RecaffeError(f"{variable} is {text!r}: expected a whole number of threads, 1 or more")
            return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Worker:
    """A thread that runs one part of a job at a time; two locks hand the part over and back."""

    def __init__(self, number: int):
        self._start, self._done = threading.Lock(), threading.Lock()
        self._start.acquire()
        self._done.acquire()
        self._job: Any = None
        self._result: Any = None
        self._error: BaseException | None = None
        threading.Thread(target=self._serve, name=f"recaffe-{number}", daemon=True).start()

    def begin(self, function: Callable[[int, int], Any], start: int, stop: int) -> None:
        """Let the thread run ``function(start, stop)``."""
        self._job = (function, start, stop)
        self._start.release()

    def finish(self) -> tuple[Any, BaseException | None]:
        """Wait for the part; gives its result and the error it raised, if any."""
        self._done.acquire()
        result, error = self._result, self._error
        self._job = self._result = self._error = None
        return result, error

    def _serve(self) -> None:
        while True:
            self._start.acquire()
            function, start, stop = self._job
            try:
                self._result = function(start, stop)
            except BaseException as error:
                self._error = error
            self._done.release()


class ThreadPool:
    """Splits jobs over the calling thread and persistent workers."""

    def __init__(self, threads: int):
        self.threads = threads
        self._workers: list[Worker] = []
        self._busy = threading.Lock()
        self._scratch = threading.local()
        self._blas: list[Any] | None = None
        self._holds = 0
        self._held: list[int] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_workers)

    def parallel(self, function: Callable[[int, int], Any], count: int, cost: float) -> list[Any]:
        """Run ``function(start, stop)`` on consecutive parts of ``range(count)``; gives the parts' results in order.

        ``cost`` is the estimated serial time of the whole in nanoseconds (about one per float moved and one per
        100 floating-point operations of a matrix product); short work is one part.  The partition depends on
        count, cost and the number of threads alone, so a run repeats bit by bit.
        """
        parts = min(self.threads, count) if cost >= WORTH_SPLITTING else 1
        if parts <= 1:
            return [function(0, count)]
        bounds = [count * part // parts for part in range(parts + 1)]
        if not self._busy.acquire(blocking=False):  # a part of another job: the same parts, one after the other
            return [function(bounds[part], bounds[part + 1]) for part in range(parts)]
        try:
            while len(self._workers) < parts - 1:
                self._workers.append(Worker(len(self._workers) + 1))
            workers = self._workers[: parts - 1]
            for part, worker in enumerate(workers, start=1):
                worker.begin(function, bounds[part], bounds[part + 1])
            results: list[Any] = []
            error: BaseException | None = None
            try:
                results.append(function(0, bounds[1]))
            except BaseException as own_error:
                error = own_error
            for worker in workers:
                result, worker_error = worker.finish()
                results.append(result)
                error = error or worker_error
            if error is not None:
                raise error
            return results
        finally:
            self._busy.release()

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Hold BLAS at one thread while recaffe computes; holds may be nested."""
        if self._holds == 0:
            self._hold_blas()
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            if self._holds == 0:
                for library, threads in zip(self._blas or (), self._held, strict=True):
                    library.set_num_threads(threads)

    def scratch(self, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        """This thread's buffer ``name`` as an array of ``shape``: reused, its contents undefined."""
        count = math.prod(shape)
        buffers: dict[Any, Any] = self._scratch.__dict__
        key = (name, np.dtype(dtype))
        buffer = buffers.get(key)
        if buffer is None or buffer.size < count:
            buffer = buffers[key] = aligned(np.empty, count, dtype)
        return buffer[:count].reshape(shape)

    def _hold_blas(self) -> None:
        if self._blas is None:
            from threadpoolctl import ThreadpoolController

            self._blas = ThreadpoolController().select(user_api="blas").lib_controllers
        self._held = [library.get_num_threads() for library in self._blas]
        for library in self._blas:
            library.set_num_threads(1)

    def _forget_workers(self) -> None:
        """A forked child has none of its parent's threads."""
        self._workers = []
        self._busy = threading.Lock()
