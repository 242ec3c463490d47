"""One owner of the cores: recaffe splits a layer's work over its own threads, BLAS runs one inside each.

The measurements behind this stand in docs/performance.md.
"""

import math
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .aligned import aligned
from .crew import Crew, SharedKernel
from .errors import RecaffeError

WORTH_SPLITTING = 80_000  # nanoseconds of serial work below which handing a part over costs more than it saves
WORTH_SHARING = 10_000  # the same for compiled kernels, which need no interpreter lock


def thread_count() -> int:
    """How many threads to compute with: RECAFFE_NUM_THREADS, else OMP_NUM_THREADS, else the usable cores."""
    for variable in ("RECAFFE_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(variable, "")
        if text:
            if not text.isdigit() or int(text) < 1:
                raise RecaffeError(f"{variable} is {text!r}: expected a whole number of threads, 1 or more")
            return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ThreadPool:
    """Splits jobs over the calling thread and persistent workers."""

    def __init__(self, threads: int):
        self.threads = threads
        self._crew: Crew | None = None
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
            results, error = self._gathered().run(function, bounds)
        except BaseException:
            self._dissolve()
            raise
        finally:
            self._busy.release()
        if error is not None:
            raise error
        return results

    def share(self, kernel: SharedKernel, count: int, cost: float, *args: Any) -> None:
        """Run a compiled ``kernel`` as ``parallel`` would run a function, in ``shares(count, cost)`` parts."""
        parts = self.shares(count, cost)
        if parts == 1:
            kernel.alone(0, 0, count, *args)
            return
        if not self._busy.acquire(blocking=False):
            for part in range(parts):
                kernel.alone(part, count * part // parts, count * (part + 1) // parts, *args)
            return
        try:
            self._gathered().share(kernel, count, parts, args)
        except Exception:  # of the kernel: all its parts have ended, or none began
            raise
        except BaseException:
            self._dissolve()
            raise
        finally:
            self._busy.release()

    def shares(self, count: int, cost: float) -> int:
        """In how many parts ``share`` runs a job."""
        return max(1, min(self.threads, count)) if cost >= WORTH_SHARING else 1

    def _gathered(self) -> Crew:
        if self._crew is None:
            self._crew = Crew(self.threads - 1)
        return self._crew

    def _dissolve(self) -> None:
        """After an interruption between parts, what the workers are at is not known: the next job gets others."""
        crew, self._crew = self._crew, None
        for worker in crew.workers if crew else ():
            worker.end()

    def computing(self) -> "ThreadPool":
        """A context that holds BLAS at one thread while recaffe computes; holds may be nested."""
        return self

    def __enter__(self) -> None:
        if self._holds == 0:
            self._hold_blas()
        self._holds += 1

    def __exit__(self, *error: object) -> None:
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
        self._crew = None
        self._busy = threading.Lock()
