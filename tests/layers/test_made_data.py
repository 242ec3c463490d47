"""DummyData and MemoryData."""

import logging

import numpy as np
import pytest
import recaffe

from tests.support import make_net


def dummy_net(options: str, tops: str = "x t") -> recaffe.Net:
    names = " ".join(f'top: "{name}"' for name in tops.split())
    return make_net(f'layer {{ name: "d" type: "DummyData" {names} dummy_data_param {{ {options} }} }}')


def test_constants_and_random_values():
    net = dummy_net(
        "shape { dim: 2 dim: 3 } shape { dim: 500 } data_filler { value: 1.5 }"
        ' data_filler { type: "uniform" min: 2 max: 3 }'
    )
    net.forward()
    first = net.blobs["t"].data.copy()
    np.testing.assert_array_equal(net.blobs["x"].data, np.full((2, 3), 1.5))
    assert 2 <= first.min() < 2.05 < 2.95 < first.max() <= 3
    net.forward()
    assert (net.blobs["t"].data != first).mean() > 0.9


def test_one_for_all_none_and_old_axes():
    net = dummy_net("shape { dim: 3 }", "a b c")
    net.forward()
    for blob in net.blobs.values():
        np.testing.assert_array_equal(blob.data, np.zeros(3))
    net = dummy_net("num: 2 num: 4 channels: 3 height: 1 width: 5 width: 6 data_filler { value: -2 }")
    net.forward()
    np.testing.assert_array_equal(net.blobs["x"].data, np.full((2, 3, 1, 5), -2))
    assert net.blobs["t"].shape == (4, 3, 1, 6)


def test_values_put_over_a_constant_stay():
    net = dummy_net("shape { dim: 3 }", "x")
    net.blobs["x"].data[...] = 7
    net.forward()
    np.testing.assert_array_equal(net.blobs["x"].data, [7, 7, 7])


def test_random_values_resume():
    options = 'shape { dim: 4 } data_filler { type: "gaussian" std: 2 }'
    net = dummy_net(options, "x")
    net.forward()
    state = net.get_state()
    expected = [net.forward()["x"].copy() for _ in range(3)]
    resumed = dummy_net(options, "x")
    resumed.set_state(state)
    np.testing.assert_array_equal([resumed.forward()["x"].copy() for _ in range(3)], expected)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ("", r"num is given 0 time\(s\)"),
        ("shape { dim: 1 } shape { dim: 1 } shape { dim: 1 }", r"shape is given 3 time\(s\).* each of the 2"),
        ("shape { dim: 1 } num: 3", "not both"),
        ("num: 1 channels: 2 height: 3", r"width is given 0 time\(s\)"),
        ('shape { dim: 1 } data_filler { type: "gausian" }', "top 'x': unknown filler 'gausian'; did you mean"),
    ],
)
def test_mistakes_in_dummy_data(options, match):
    with pytest.raises(recaffe.RecaffeError, match=match):
        dummy_net(options)


SIZES = "batch_size: 2 channels: 3 height: 1 width: 2"
DATA = np.arange(36, dtype=np.float32).reshape(6, 3, 1, 2)


def memory_net(options: str = SIZES, more: str = "", **net) -> recaffe.Net:
    return make_net(
        f'layer {{ name: "m" type: "MemoryData" top: "x" top: "t" memory_data_param {{ {options} }} {more} }}', **net
    )


def passes(net: recaffe.Net, count: int) -> list[list[float]]:
    return [net.forward()["t"].tolist() for _ in range(count)]


def test_memory_data_gives_its_rows_again_and_again():
    net = memory_net()
    net.layers[0].reset(DATA, np.arange(6).reshape(6, 1, 1, 1))
    assert passes(net, 4) == [[0, 1], [2, 3], [4, 5], [0, 1]]
    np.testing.assert_array_equal(net.blobs["x"].data, DATA[:2])
    net.layers[0].reset(DATA[4:] + 0.5, [8, 9])
    assert passes(net, 2) == [[8, 9], [8, 9]]
    np.testing.assert_array_equal(net.blobs["x"].data, DATA[4:] + 0.5)


def test_memory_data_does_not_copy_what_fits():
    net = memory_net()
    data = DATA.copy()
    net.layers[0].reset(data, np.zeros(6, np.float32))
    data[...] = 3
    net.forward()
    assert (net.blobs["x"].data == 3).all()


def test_memory_data_resumes():
    net = memory_net()
    net.layers[0].reset(DATA, range(6))
    net.forward()
    resumed = memory_net()
    resumed.layers[0].reset(DATA, range(6))
    resumed.set_state(net.get_state())
    assert passes(resumed, 4) == passes(net, 4)
    resumed.set_state({"m": {"position": 6}})
    with pytest.raises(recaffe.RecaffeError, match="goes on at row 6 of data that has 6 rows"):
        resumed.forward()


def test_mistakes_in_memory_data(caplog):
    with pytest.raises(recaffe.RecaffeError, match=r"are \(2, 3, 0, 0\); all must be 1 or more"):
        memory_net("batch_size: 2 channels: 3")
    with pytest.raises(recaffe.RecaffeError, match="sets transpose"):
        memory_net(SIZES + " transpose: true")
    net = memory_net()
    with pytest.raises(recaffe.RecaffeError, match=r"layer 'm'.*there is no data yet; call reset"):
        net.forward()
    for data, labels, match in (
        (DATA[:, :2], range(6), r"data has shape \(6, 2, 1, 2\), expected rows of \(3, 1, 2\)"),
        (DATA[:5], range(5), "data has 5 rows, expected a multiple of batch_size 2"),
        (DATA[:0], (), "data has 0 rows"),
        (DATA, range(4), "there are 4 labels for 6 rows"),
    ):
        with pytest.raises(recaffe.RecaffeError, match=match):
            net.layers[0].reset(data, labels)
    with caplog.at_level(logging.WARNING, "recaffe"):
        memory_net(more="transform_param { scale: 2 }")
    assert "layer 'm': MemoryData does not transform" in caplog.text
