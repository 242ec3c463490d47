"""A crew: threads that run parts of jobs, and the memory through which parts are handed to them and back.

Waking a sleeping thread takes about 75 us on a virtual machine.  So a worker that has nothing to do watches its row of
whole numbers for a while, outside the interpreter lock, and sleeps only when nothing comes; and so does who waits for
it.  A compiled job (``kernels/cpu/jobs.py``) needs no interpreter lock where the worker watches.  The measurements
stand in docs/performance.md.
"""

import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from .aligned import aligned

BEGUN, CODE, CARGO, PART, START, STOP = range(6)  # of a row, written by who begins a job
DONE, FAILED = 8, 9  # written by the worker, in another cache line
ROW = 16  # numbers
CARGO_ROWS = 32  # at the head of a crew's table: a compiled job's arguments

PATIENCE = 500  # us that a thread watches before it sleeps
BEGINNING = 20  # us in which who has begun a job of Python's enters its own part, and gives the interpreter lock away
NAP = 5e-5  # seconds from one look at a part that takes long to the next


class Handing(NamedTuple):
    """How rows are written and watched: see ``kernels/cpu/jobs.py``."""

    post: Callable[..., None]
    watch: Callable[[np.ndarray, int], bool]
    serve: Callable[[np.ndarray, bool, int, int], bool]
    rests_per_us: float


class SharedKernel(NamedTuple):
    """A compiled kernel (``kernels/cpu/jobs.py``): one part, (part, start, stop, ...), and all, by a crew."""

    alone: Callable[..., None]
    in_parts: Callable[..., None]


class Worker:
    """A thread that runs one part of a job at a time."""

    def __init__(self, number: int, row: np.ndarray):
        self.row, self._handing = row, handing()
        rests_per_us = self._handing.rests_per_us
        self.rests = int(PATIENCE * rests_per_us)
        self._rests_after = int(BEGINNING * rests_per_us)
        self._gate, self._alarm = threading.Lock(), threading.Lock()
        self._alarm.acquire()
        self._sleeps = self._claimed = self._ended = False
        self._job: Any = None
        self._result: Any = None
        self._error: BaseException | None = None
        self.thread = threading.Thread(target=self._serve, name=f"recaffe-{number}", daemon=True)
        self.thread.start()

    def begin(self, function: Callable[[int, int], Any], start: int, stop: int) -> None:
        """Let the thread run ``function(start, stop)``."""
        self._job = (function, start, stop)
        self._handing.post(self.row, 0, 0, 0, start, stop)
        self._rouse()

    def finish(self) -> tuple[Any, BaseException | None]:
        """Wait for the part; gives its result and the error it raised, if any."""
        while not self._handing.watch(self.row, self.rests):
            time.sleep(NAP)
        result, error = self._result, self._error
        self._job = self._result = self._error = None
        return result, error

    def claim(self) -> None:
        """Keep the thread from sleeping until it is dismissed."""
        self._claimed = True
        self._rouse()

    def dismiss(self) -> None:
        """Let the thread sleep where it has nothing to do."""
        self._claimed = False

    def end(self) -> None:
        """Let the thread end, once it has done what it is at."""
        self._ended, self._claimed = True, False
        self._rouse()

    def _rouse(self) -> None:
        with self._gate:
            sleeps, self._sleeps = self._sleeps, False
        if sleeps:
            self._alarm.release()

    def _serve(self) -> None:
        row, done = self.row, False
        while True:
            begun = self._handing.serve(row, done, self.rests, self._rests_after)
            done = begun
            if not begun:
                with self._gate:
                    if self._ended:
                        return
                    self._sleeps = sleeps = bool(row[BEGUN] == row[DONE]) and not self._claimed
                if sleeps:
                    self._alarm.acquire()
                continue
            function, start, stop = self._job
            try:
                self._result = function(start, stop)
            except BaseException as error:
                self._error = error


class Crew:
    """Workers for all parts of a job but the first, which is done by who calls."""

    def __init__(self, size: int):
        self.table = aligned(np.zeros, (CARGO_ROWS + size) * ROW, np.int64).reshape(-1, ROW)
        self.workers = [Worker(number, row) for number, row in enumerate(self.table[CARGO_ROWS:], start=1)]

    def run(self, function: Callable[[int, int], Any], bounds: Sequence[int]) -> tuple[list[Any], BaseException | None]:
        """The results of ``function`` between the ``bounds``, and the first error that a part raised."""
        workers = self.workers[: len(bounds) - 2]
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
        return results, error

    def share(self, kernel: SharedKernel, count: int, parts: int, args: Sequence[Any]) -> None:
        """Run ``kernel`` on so many parts, two or more, of ``range(count)``."""
        workers = self.workers[: parts - 1]
        try:
            for worker in workers:  # none may fall asleep: the kernel waits for them without the means to wake them
                worker.claim()
            kernel.in_parts(self.table, count, parts, workers[0].rests, *args)
        finally:
            for worker in workers:
                worker.dismiss()


@cache
def handing() -> Handing:
    """Compiled functions; without Numba plain ones, that watch nothing."""
    if find_spec("numba") is None:
        return Handing(_post, _watch, _serve, 0.0)
    from .kernels.cpu.jobs import post, serve, watch

    still, count, took = np.array([1] + [0] * (ROW - 1)), 200, []
    for _ in range(20):  # the first call compiles, others may be interrupted
        start = time.perf_counter()
        watch(still, count)
        took.append(time.perf_counter() - start)
    return Handing(post, watch, serve, count / (min(took) * 1e6))


def _post(row: np.ndarray, code: int, cargo: int, part: int, start: int, stop: int) -> None:
    row[BEGUN] += 1


def _watch(row: np.ndarray, rests: int) -> bool:
    return bool(row[DONE] == row[BEGUN])


def _serve(row: np.ndarray, done: bool, rests: int, rests_after: int) -> bool:
    row[DONE] += done
    return bool(row[BEGUN] != row[DONE])
