"""Handing parts to workers and back: while both sides watch, after they fell asleep, and without a watch."""

import os
import threading
import time

import numpy as np
import pytest
from recaffe.framework import crew
from recaffe.framework.crew import BEGUN, DONE, PATIENCE, ROW, Crew, Worker
from recaffe.framework.threads import ThreadPool

AGES = PATIENCE * 4e-6  # seconds after which every watching thread sleeps


@pytest.fixture(params=["watching", "sleeping"])
def worker(request, monkeypatch):
    if request.param == "watching":
        pytest.importorskip("numba")
    else:
        plain = crew.Handing(crew._post, crew._watch, crew._serve, 0.0)
        monkeypatch.setattr(crew, "handing", lambda: plain)
    return Worker(1, np.zeros(ROW, np.int64))


@pytest.mark.parametrize(("before", "within"), [(0, 0), (AGES, 0), (0, AGES)])
def test_every_part_is_run_once_and_given_back(worker, before, within):
    sums = np.zeros(100)

    def job(start, stop):
        time.sleep(within)
        sums[start:stop] += 1
        return start, stop, threading.get_ident()

    for i in range(10 if before or within else 2000):
        time.sleep(before)
        worker.begin(job, i % 50, i % 50 + 50)
        (start, stop, ident), error = worker.finish()
        assert (start, stop, error) == (i % 50, i % 50 + 50, None)
        assert ident != threading.get_ident()
        assert sums.sum() == 50 * (i + 1)


def test_parts_of_every_length_beside_work_of_ones_own(worker):
    rng = np.random.default_rng(0)
    for own, other in rng.choice([0, 1e-5, 1e-4, PATIENCE * 1e-6, AGES], (200, 2)):
        worker.begin(lambda start, stop, other=other: time.sleep(other) or (start, other), 3, 4)
        time.sleep(own)
        assert worker.finish() == ((3, other), None)


def test_an_error_is_given_back_and_forgotten(worker):
    for _ in range(3):
        worker.begin(lambda start, stop: start // stop, 1, 0)
        result, error = worker.finish()
        assert result is None
        assert isinstance(error, ZeroDivisionError)
        worker.begin(lambda start, stop: start // stop, 6, 2)
        assert worker.finish() == (3, None)


def test_a_claimed_worker_does_not_sleep(worker):
    def falls_asleep():
        end = time.perf_counter() + 10
        while not worker._sleeps and time.perf_counter() < end:
            time.sleep(AGES)
        return worker._sleeps

    assert falls_asleep()
    worker.claim()
    for _ in range(10):
        time.sleep(AGES)
        assert not worker._sleeps
    worker.dismiss()
    assert falls_asleep()


def test_a_watch_ends_with_the_part_or_with_its_patience():
    pytest.importorskip("numba")
    watch, rests_per_us = crew.handing().watch, crew.handing().rests_per_us
    row = np.zeros(ROW, np.int64)
    row[BEGUN] = 5
    start = time.perf_counter()
    assert not watch(row, int(5000 * rests_per_us))
    assert 1e-4 < time.perf_counter() - start < 2
    threading.Timer(0.02, lambda: row.__setitem__(DONE, 5)).start()
    assert watch(row, int(10_000_000 * rests_per_us))


@pytest.fixture
def kernels():
    """A compiled kernel that adds ``value`` to all numbers of a part, and notes the part."""
    pytest.importorskip("numba")
    from .shared_kernels import add_value

    return add_value


def threads_of_crews():
    return sum(thread.name.startswith("recaffe-") for thread in threading.enumerate())


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_kernel_that_fails_in_a_part_is_told_and_the_crew_goes_on(kernels, which):
    from numba.core import errors

    from .shared_kernels import fail_in

    pool, numbers = ThreadPool(3), np.zeros(9)
    pool.share(kernels, 9, 1e9, np.zeros(9), 1.0, np.zeros(9, int))
    before = threads_of_crews()
    for _ in range(3):
        numbers[:] = 0
        with pytest.raises(RuntimeError, match="part of a compiled kernel failed"):
            pool.share(fail_in, 9, 1e9, which, numbers)
        assert numbers.reshape(3, 3).sum(axis=1).tolist() == [0 if part == which else 3 for part in range(3)]
        with pytest.raises(errors.TypingError):
            pool.share(fail_in, 9, 1e9, "text", numbers, numbers)
        pool.share(fail_in, 9, 1e9, 7, numbers)
        assert (numbers == 1).all()
    assert threads_of_crews() == before


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_compiled_job_is_done_once_in_every_part(kernels, size):
    pool = ThreadPool(size)
    for count in (1, 2, 3, 4, 1000):
        numbers, parts = np.zeros(count), np.full(count, -1)
        for cost in (0, 1e9):
            pool.share(kernels, count, cost, numbers, 2.0, parts)
            expected = pool.shares(count, cost)
            assert len(np.unique(parts)) == expected == (min(size, count) if cost else 1)
            assert (np.diff(parts) >= 0).all()
        assert (numbers == 4).all()


def test_compiled_jobs_and_those_of_python_by_turns_with_pauses(kernels):
    pool, numbers, parts = ThreadPool(3), np.zeros(300), np.zeros(300, int)

    def add_one(start, stop):
        numbers[start:stop] += 1

    for i in range(400):
        if i % 40 == 0:
            time.sleep(AGES)
        pool.share(kernels, 300, 1e9, numbers, 1.0, parts)
        if i % 3 == 0:
            pool.parallel(add_one, 300, 1e9)
    assert (numbers == 400 + 134).all()


def test_compiled_jobs_within_a_job_and_from_several_threads(kernels):
    pool = ThreadPool(3)
    arrays = [(np.zeros(90), np.zeros(90, int)) for _ in range(6)]

    def use(numbers, parts):
        for _ in range(200):
            pool.share(kernels, 90, 1e9, numbers, 1.0, parts)

    callers = [threading.Thread(target=use, args=pair) for pair in arrays[:3]]
    for caller in callers:
        caller.start()
    pool.parallel(lambda start, stop: [use(*arrays[3 + i]) for i in range(start, stop)], 3, 1e9)
    for caller in callers:
        caller.join()
    for numbers, parts in arrays:
        assert (numbers == 200).all()
        assert len(np.unique(parts)) == 3


@pytest.mark.parametrize("when", ["claim", "dismiss"])
def test_after_an_interruption_compiled_jobs_are_right(kernels, monkeypatch, when):
    pool, numbers, parts = ThreadPool(2), np.zeros(50), np.zeros(50, int)
    pool.share(kernels, 50, 1e9, numbers, 1.0, parts)
    old = pool._crew

    def interrupt():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(old.workers[0], when, interrupt)
        pool.share(kernels, 50, 1e9, numbers, 1.0, parts)
    done = numbers[0]
    for _ in range(50):
        pool.share(kernels, 50, 1e9, numbers, 1.0, parts)
    assert (numbers == 50 + done).all()
    assert pool._crew is not old
    old.workers[0].thread.join(10)
    assert not old.workers[0].thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_shares_with_workers_of_its_own(kernels):
    pool, numbers, parts = ThreadPool(3), np.zeros(30), np.zeros(30, int)
    pool.share(kernels, 30, 1e9, numbers, 1.0, parts)
    child = os.fork()
    if child == 0:
        pool.share(kernels, 30, 1e9, numbers, 1.0, parts)
        os._exit(0 if (numbers == 2).all() and len(np.unique(parts)) == 3 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_crew_without_workers():
    assert Crew(0).workers == []
