"""The background thread that makes batches ahead."""

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from recaffe.layers.data.prefetcher import Batch, BatchSource, Prefetcher

from tests.layers.data_files import batches, data_net, write_images


class Counter(BatchSource):
    """Batches of one number: 0, 1, 2, ...; fails at ``bad``."""

    def __init__(self, bad: int = -1):
        self.next, self.bad, self.closed = 0, bad, 0
        self.made: list[int] = []

    def fill(self, batch: Batch) -> None:
        if self.next == self.bad:
            raise ValueError(f"number {self.bad} is bad")
        batch.array(0, (1,))[...] = self.next
        self.made.append(self.next)
        self.next += 1

    def get_state(self) -> dict[str, Any]:
        return {"next": self.next}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.next = state["next"]

    def close(self) -> None:
        self.closed += 1


def prefetchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "recaffe-prefetch"]


def wait_until(condition) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "waited for 10 seconds"
        time.sleep(0.002)


@pytest.fixture
def counter():
    source = Counter()
    prefetcher = Prefetcher(source, 1, np.float32, 3)
    yield source, prefetcher
    prefetcher.close()


def test_batches_are_made_ahead_and_no_further(counter):
    source, prefetcher = counter
    assert source.made == []
    assert prefetcher.next().arrays[0] == 0
    wait_until(lambda: source.made == [0, 1, 2])
    time.sleep(0.02)
    assert source.made == [0, 1, 2]
    assert prefetcher.state == {"next": 1}
    assert [int(prefetcher.next().arrays[0][0]) for _ in range(20)] == list(range(1, 21))


def test_a_batch_stays_as_it_is_until_the_next_is_taken(counter):
    _, prefetcher = counter
    for number in range(30):
        batch = prefetcher.next()
        time.sleep(0.001)
        assert batch.arrays[0] == number


def test_arrays_are_used_again(counter):
    _, prefetcher = counter
    assert len({id(prefetcher.next().arrays[0]) for _ in range(20)}) == 3


def test_an_error_is_raised_when_its_turn_comes_and_again():
    prefetcher = Prefetcher(Counter(bad=2), 1, np.float32, 3)
    assert [int(prefetcher.next().arrays[0][0]) for _ in range(2)] == [0, 1]
    for _ in range(2):
        with pytest.raises(ValueError, match="number 2 is bad"):
            prefetcher.next()
    prefetcher.set_state({"next": 7})
    assert prefetcher.next().arrays[0] == 7
    prefetcher.close()


def test_close_ends_the_thread_and_the_next_batch_starts_another(counter):
    source, prefetcher = counter
    before = len(prefetchers())
    prefetcher.next()
    assert len(prefetchers()) == before + 1
    prefetcher.close()
    assert len(prefetchers()) == before
    assert source.closed
    assert prefetcher.next().arrays[0] == 1


def test_the_thread_of_a_prefetcher_that_nobody_has_ends():
    before = len(prefetchers())
    prefetcher = Prefetcher(Counter(), 1, np.float32, 3)
    prefetcher.next()
    assert len(prefetchers()) == before + 1
    del prefetcher
    gc.collect()
    assert len(prefetchers()) == before


@pytest.fixture
def images(tmp_path, monkeypatch):
    pytest.importorskip("lmdb")
    monkeypatch.chdir(tmp_path)
    write_images(tmp_path)


NET = 'data_param { source: "images_lmdb" backend: LMDB batch_size: 4 }'


def test_the_thread_of_a_net_that_nobody_has_ends(images):
    before = len(prefetchers())
    net = data_net(NET)
    net.forward()
    del net
    gc.collect()
    assert len(prefetchers()) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
@pytest.mark.parametrize("options", [NET, 'image_data_param { source: "images.txt" batch_size: 4 }'])
def test_a_forked_net_goes_on_by_itself(images, options):
    net = data_net(options)
    net.forward()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        labels = np.concatenate([batch["t"] for batch in batches(net, 4)])
        os.write(writing, labels.astype(np.uint8).tobytes())
        net.close()
        os._exit(0)
    labels = np.concatenate([batch["t"] for batch in batches(net, 4)])
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(reading, 100) == labels.astype(np.uint8).tobytes() == bytes(i % 10 for i in range(4, 20))


def test_a_process_ends_with_a_net_that_nobody_closed(images):
    code = (
        "import recaffe, sys; from recaffe.proto import parse_net;"
        f'net = recaffe.Net(parse_net(\'layer {{ name: "d" type: "Data" top: "x" {NET} }}\'), recaffe.TRAIN);'
        "net.forward(); print('done')"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
