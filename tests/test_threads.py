"""The thread pool: parts in order, errors, nesting, repeatable partitions, and BLAS held at one thread."""

import os
import threading

import numpy as np
import pytest
from recaffe.framework import threads
from recaffe.framework.errors import RecaffeError
from recaffe.framework.threads import WORTH_SPLITTING, ThreadPool, thread_count

BIG = 10 * WORTH_SPLITTING


@pytest.fixture
def pool():
    return ThreadPool(3)


def test_results_come_in_order(pool):
    assert pool.parallel(lambda start, stop: (start, stop), 10, BIG) == [(0, 3), (3, 6), (6, 10)]


def test_every_item_is_done_once(pool):
    done = np.zeros(1000, int)

    def add_one(start, stop):
        done[start:stop] += 1

    for count in (1, 2, 3, 4, 1000):
        done[:] = 0
        pool.parallel(add_one, count, BIG)
        assert done.sum() == done[:count].sum() == count


def test_parts_run_on_threads_of_their_own(pool):
    together = threading.Barrier(3, timeout=10)

    def meet(start, stop):
        together.wait()
        return threading.get_ident()

    assert len(set(pool.parallel(meet, 3, BIG))) == 3


def test_short_work_is_one_part_on_the_calling_thread(pool):
    got = pool.parallel(lambda start, stop: (start, stop, threading.get_ident()), 10, WORTH_SPLITTING - 1)
    assert got == [(0, 10, threading.get_ident())]


def test_nothing_to_do(pool):
    assert pool.parallel(lambda start, stop: stop - start, 0, BIG) == [0]


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_an_error_in_a_part_is_raised_and_the_pool_lives_on(pool, bad):
    def fail(start, stop):
        if start == bad:
            raise KeyError(start)

    for _ in range(3):
        with pytest.raises(KeyError, match=str(bad)):
            pool.parallel(fail, 3, BIG)
    assert pool.parallel(lambda start, stop: start, 3, BIG) == [0, 1, 2]


@pytest.mark.parametrize("when", ["begin", "finish"])
def test_after_an_interruption_the_pool_gives_right_results(pool, monkeypatch, when):
    pool.parallel(lambda start, stop: start, 3, BIG)
    slow = threading.Event()

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(pool._crew.workers[1], when, interrupt)
        pool.parallel(lambda start, stop: start == 0 or slow.wait(10), 3, BIG)
    assert pool.parallel(lambda start, stop: (start, stop), 9, BIG) == [(0, 3), (3, 6), (6, 9)]
    slow.set()
    assert pool.parallel(lambda start, stop: (start, stop), 6, BIG) == [(0, 2), (2, 4), (4, 6)]


def test_a_job_within_a_job_runs_its_parts_in_turn(pool):
    def inner(start, stop):
        return start, stop, threading.get_ident()

    def outer(start, stop):
        return threading.get_ident(), pool.parallel(inner, 6, BIG)

    for own, parts in pool.parallel(outer, 3, BIG):
        assert parts == [(0, 2, own), (2, 4, own), (4, 6, own)]


def test_jobs_from_several_threads_at_once(pool):
    def job(start, stop):
        return sum(range(start, stop))

    results = []
    callers = [
        threading.Thread(target=lambda: results.extend(sum(pool.parallel(job, 1000, BIG)) for _ in range(50)))
        for _ in range(4)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert results == [sum(range(1000))] * 200


def test_scratch_belongs_to_its_thread(pool):
    together = threading.Barrier(3, timeout=10)
    buffers = []

    def take(start, stop):
        buffers.append(pool.scratch("x", (5,), np.float32))
        together.wait()

    pool.parallel(take, 3, BIG)
    assert not any(np.shares_memory(a, b) for i, a in enumerate(buffers) for b in buffers[:i])


def test_blas_runs_one_thread_while_recaffe_computes(pool):
    from threadpoolctl import threadpool_info

    def counts():
        np.ones((2, 2)) @ np.ones((2, 2))
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = counts()
    with pool.computing():
        with pool.computing():
            assert set(counts()) <= {1}
        assert set(counts()) <= {1}
    assert counts() == before
    with pytest.raises(KeyError), pool.computing():
        raise KeyError
    assert counts() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(pool):
    pool.parallel(lambda start, stop: None, 3, BIG)
    child = os.fork()
    if child == 0:
        os._exit(0 if pool.parallel(lambda start, stop: start, 3, BIG) == [0, 1, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    ("recaffe", "omp", "expected"), [("3", "5", 3), (None, "5", 5), ("", "", None), (None, None, None)]
)
def test_how_many_threads(monkeypatch, recaffe, omp, expected):
    for variable, value in (("RECAFFE_NUM_THREADS", recaffe), ("OMP_NUM_THREADS", omp)):
        if value is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, value)
    assert thread_count() == (expected or len(os.sched_getaffinity(0)))


@pytest.mark.parametrize("text", ["0", "-1", "two"])
def test_a_wrong_number_of_threads_is_told(monkeypatch, text):
    monkeypatch.setenv("RECAFFE_NUM_THREADS", text)
    with pytest.raises(RecaffeError, match=f"RECAFFE_NUM_THREADS is '{text}'"):
        threads.thread_count()
