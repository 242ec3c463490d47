"""A data layer that is given another's state goes on with the same bits."""

import time

import numpy as np
import pytest
import recaffe
from recaffe.framework.saved_state import pack, unpack
from recaffe.framework.strict_backend import StrictBackend

from tests.layers.data_files import batches, data_net, same_batches, write_images, write_rows

pytest.importorskip("lmdb")

LAYERS = {
    "data": ('data_param { source: "images_lmdb" backend: LMDB batch_size: 4 }', ""),
    "data_random": (
        'data_param { source: "images_lmdb" backend: LMDB batch_size: 3 rand_skip: 7 prefetch: 2 }',
        "crop_size: 5 mirror: true",
    ),
    "image_data": ('image_data_param { source: "images.txt" batch_size: 4 }', ""),
    "image_data_random": (
        'image_data_param { source: "images.txt" batch_size: 3 rand_skip: 7 shuffle: true new_height: 9 new_width: 6 }',
        "crop_h: 5 crop_w: 4 mirror: true mean_value: 3",
    ),
    "hdf5_data": ('hdf5_data_param { source: "rows.txt" batch_size: 4 }', ""),
    "hdf5_data_shuffled": ('hdf5_data_param { source: "rows.txt" batch_size: 3 shuffle: true }', ""),
}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_images(tmp_path)
    write_rows(tmp_path)


def build(name: str, **more) -> recaffe.Net:
    options, transform = LAYERS[name]
    return data_net(options, transform, tops="data label", **more)


def written(state: dict) -> dict:
    """The state as a snapshot keeps it."""
    return unpack(*pack(state))


@pytest.mark.parametrize("used", [0, 1, 2, 3, 4, 7])
@pytest.mark.parametrize("name", LAYERS)
def test_the_next_batches_are_the_same(name, used):
    net = build(name)
    batches(net, used)
    state = written(net.get_state())
    expected = batches(net, 9)
    resumed = build(name)
    batches(resumed, 2)
    resumed.set_state(state)
    same_batches(batches(resumed, 9), expected)


@pytest.mark.parametrize("name", LAYERS)
def test_a_net_goes_back_to_an_earlier_state(name):
    net = build(name)
    states, expected = [], []
    for _ in range(6):
        states.append(written(net.get_state()))
        expected += batches(net, 1)
    for k in (4, 0, 2):
        net.set_state(states[k])
        same_batches(batches(net, 6 - k), expected[k:])


@pytest.mark.parametrize("name", LAYERS)
def test_the_state_is_that_of_the_last_batch_used_not_made(name):
    net = build(name)
    net.forward()
    early = pack(net.get_state())
    time.sleep(0.05)
    late = pack(net.get_state())
    assert early[0] == late[0]
    np.testing.assert_array_equal(early[1], late[1])


@pytest.mark.parametrize("name", LAYERS)
def test_closing_loses_no_batch(name):
    net, other = build(name), build(name)
    other.set_state(net.get_state())
    expected = batches(other, 6)
    got = []
    for count in (1, 2, 3):
        got += batches(net, count)
        net.close()
    same_batches(got, expected)


@pytest.mark.parametrize("name", LAYERS)
def test_the_seed_of_the_backend_decides_all(name):
    recaffe.set_random_seed(5)
    expected = batches(build(name), 8)
    recaffe.set_random_seed(5)
    same_batches(batches(build(name), 8), expected)


@pytest.mark.parametrize("name", LAYERS)
def test_batches_go_to_the_device(name):
    recaffe.set_random_seed(6)
    expected = batches(build(name), 3)
    same_batches(batches(build(name, backend=StrictBackend(6)), 3), expected)


def test_a_state_that_does_not_fit():
    states = {name: written(build(name).get_state()) for name in LAYERS}
    with pytest.raises(recaffe.RecaffeError, match=r"layer 'd'.*is that of another kind of layer"):
        build("data").set_state(states["image_data"])
    states["image_data"]["d"]["position"] = 11
    with pytest.raises(recaffe.RecaffeError, match=r"layer 'd'.*after record 11, but there are 10"):
        build("image_data").set_state(states["image_data"])
    states["hdf5_data"]["d"]["file"] = 3
    with pytest.raises(recaffe.RecaffeError, match=r"goes on in file 3 .from 0., but there are 3"):
        build("hdf5_data").set_state(states["hdf5_data"])
