"""Layers that forks of Caffe have for sequences: Lstm, Reverse, Transpose, Permute, ContinuationIndicator."""

import re

import numpy as np
import pytest
import recaffe
from recaffe.framework.single_layer import SingleLayer

from tests.reference.fork_lstm import lstm
from tests.support import assert_close, backward, make_net

rng = np.random.default_rng(23)
T, N, D, H = 5, 2, 4, 3
x = rng.normal(size=(T, N, D))
cont = np.array([[0, 1], [1, 1], [1, 0], [0, 1], [1, 1]], float)
whole = np.ones((T, N))
whole[0] = 0
weights = [rng.normal(size=(4 * H, D)), rng.normal(size=(4 * H, H)), rng.normal(size=4 * H)]
slopes = 3 * rng.normal(size=(T, N, H))


def both_ways(options, bottoms):
    """h, and the gradients of x and the parameters, from ``slopes``."""
    single = SingleLayer(f"type: 'Lstm' lstm_param {{ num_output: 3 {options} }}", bottoms, parameters=weights)
    (h,) = single.forward()
    for blob in single.layer.blobs:
        blob.clear_diff()
    dx, *_ = backward(single, [slopes.reshape(h.shape)], [True] + [False] * (len(bottoms) - 1))
    return [h, dx, *single.parameter_diffs()]


@pytest.mark.parametrize("bound", [0.0, 0.125, 0.5])
@pytest.mark.parametrize("with_clip", [True, False])
@pytest.mark.parametrize("rows", [True, False])
def test_lstm_of_junhyukoh(bound, with_clip, rows):
    options = f"clipping_threshold: {bound} {'batch_size: 2' if rows else ''}"
    shape = (T * N,) if rows else (T, N)
    bottoms = [x.reshape(*shape, D)] + [cont.reshape(shape)] * with_clip
    expected = lstm(x, cont if with_clip else whole, *weights, slopes, bound or np.inf)
    for got, values in zip(both_ways(options, bottoms), expected, strict=True):
        assert_close(got.reshape(values.shape), values, 1e-12)
    unbounded = lstm(x, cont if with_clip else whole, *weights, slopes)
    assert (np.abs(expected[2] - unbounded[2]).max() > 0.1) == (bound > 0)


def test_lstm_goes_on_from_batch_to_batch_where_clip_says_so():
    clip = np.ones(T * N)
    for bottoms in ([x], [x.reshape(-1, D), clip]):
        options = "" if len(bottoms) == 1 else "batch_size: 2"
        single = SingleLayer(f"type: 'Lstm' lstm_param {{ num_output: 3 {options} }}", bottoms, parameters=weights)
        first, second = single.forward()[0], single.run()[0]
        single.layer.reset_states()
        assert_close(single.run()[0], first, 1e-12)
        if len(bottoms) == 1:
            assert_close(second, first, 1e-12)
            assert single.layer.get_state() == {}
        else:
            long = lstm(np.concatenate([x, x]), np.ones((2 * T, N)), *weights, np.zeros((2 * T, N, H)))[0]
            assert_close(np.concatenate([first, second]).reshape(long.shape), long, 1e-12)
            state = single.layer.get_state()
            other = SingleLayer(single.layer.param, bottoms, parameters=weights)
            other.layer.set_state(state)
            expected = single.run()[0]
            assert_close(other.run()[0], expected, 1e-12)
            other.layer.set_state(state)
            other.layer.select_streams([1, 0])
            other.set_bottoms([x[:, ::-1].reshape(-1, D), clip])
            assert_close(other.run()[0].reshape(T, 2, H)[:, ::-1], expected.reshape(T, 2, H), 1e-12)


def test_lstm_reads_three_axes_as_rows_where_clip_has_one_value_a_row():
    """As the net of a spatial LSTM has it: T x D x 1, with T values of clip."""
    bottom = x[:, :1].reshape(T, D, 1)
    single = SingleLayer("type: 'Lstm' lstm_param { num_output: 3 }", [bottom, cont[:, 0]], parameters=weights)
    expected = lstm(x[:, :1], cont[:, :1], *weights, slopes[:, :1])[0]
    assert_close(single.forward()[0], expected[:, 0], 1e-12)


def test_lstm_in_a_net_shares_loads_and_fills_its_parameters(tmp_path):
    text = """
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 6 dim: 4 } } }
        layer { name: "a" type: "Lstm" bottom: "x" top: "a"
          param { name: "W" } param { lr_mult: 3 } param { lr_mult: 2 }
          lstm_param { num_output: 3 weight_filler { type: "gaussian" std: 0.1 } bias_filler { value: 0.5 } } }
        layer { name: "b" type: "Lstm" bottom: "x" top: "b" param { name: "W" }
          lstm_param { num_output: 3 weight_filler { type: "gaussian" std: 0.1 } bias_filler { value: 0.5 } } }"""
    net, other = make_net(text), make_net(text)
    assert [blob.shape for blob in net.params["a"]] == [(12, 4), (12, 3), (12,)]
    assert (net.params["a"][2].data == 0.5).all() and net.params["a"][1].data.std() < 0.2
    assert np.shares_memory(net.params["a"][0].data, net.params["b"][0].data)
    assert net.params_lr == [1, 3, 2, 1, 1]
    net.save(tmp_path / "w.caffemodel")
    other.copy_from(tmp_path / "w.caffemodel")
    values = rng.normal(size=(6, 4))
    assert np.array_equal(net.forward(x=values)["b"], other.forward(x=values)["b"])
    again = recaffe.Net(net.to_proto(), recaffe.TEST)
    assert np.array_equal(again.forward(x=values)["b"], net.forward(x=values)["b"])


@pytest.mark.parametrize(
    ("options", "bottoms", "message"),
    [
        ("num_output: 3 batch_size: 2", [(5, 4)], "has shape (5, 4), expected (T N) x D... with N = batch_size = 2"),
        ("num_output: 3", [(6, 4), (5,)], "(clip) has shape (5,), expected 6 values, one a row"),
        ("num_output: 3 batch_size: 0", [(6, 4)], "batch_size is 0, expected 1 or more"),
        ("", [(6, 4)], "lstm_param needs num_output, 1 or more"),
    ],
)
def test_lstm_mistakes(options, bottoms, message):
    with pytest.raises(recaffe.RecaffeError, match=re.escape(message)):
        SingleLayer(f"type: 'Lstm' lstm_param {{ {options} }}", [np.ones(shape) for shape in bottoms])


@pytest.mark.parametrize(("text", "axes"), [("", [0]), ("axis: 1", [1]), ("axis: 0 axis: -1", [0, 2])])
def test_reverse(text, axes):
    single = SingleLayer(f"type: 'Reverse' reverse_param {{ {text} }}", [x])
    assert_close(single.forward()[0], np.flip(x, axes), 0)
    dy = rng.normal(size=x.shape)
    assert_close(backward(single, [dy], [True])[0], np.flip(dy, axes), 0)
    with pytest.raises(recaffe.RecaffeError, match="axis 3"):
        SingleLayer("type: 'Reverse' reverse_param { axis: 3 }", [x])


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("type: 'Transpose' transpose_param { dim: 2 dim: 0 dim: 1 }", (2, 0, 1)),
        ("type: 'Transpose' transpose_param { dim: -1 dim: 1 dim: 0 }", (2, 1, 0)),
        ("type: 'Permute' permute_param { order: 2 order: 0 order: 1 }", (2, 0, 1)),
        ("type: 'Permute' permute_param { order: 1 }", (1, 0, 2)),
        ("type: 'Permute'", (0, 1, 2)),
    ],
)
def test_transpose_and_permute(text, order):
    single = SingleLayer(text, [x])
    assert_close(single.forward()[0], x.transpose(order), 0)
    dy = rng.normal(size=x.transpose(order).shape)
    assert_close(backward(single, [dy], [True])[0], dy.transpose(np.argsort(order)), 0)


@pytest.mark.parametrize(
    "text", ["'Transpose' transpose_param { dim: 1 dim: 0 }", "'Permute' permute_param { order: 1 order: 1 }"]
)
def test_an_order_names_every_axis_once(text):
    with pytest.raises(recaffe.RecaffeError, match="is not one of the 3 axes of bottom"):
        SingleLayer(f"type: {text}", [x])


def test_continuation_indicator():
    sizes = "continuation_indicator_param { time_step: 4 batch_size: 3 }"
    expected = np.array([[0] * 3] + [[1] * 3] * 3)
    assert_close(SingleLayer(f"type: 'ContinuationIndicator' {sizes}", []).forward()[0], expected, 0)
    assert_close(SingleLayer("type: 'ContinuationIndicator'", [np.ones((4, 3, 7))]).forward()[0], expected, 0)
    with pytest.raises(recaffe.RecaffeError, match="time_step is 4 and batch_size 0, expected 1 or more each"):
        SingleLayer("type: 'ContinuationIndicator' continuation_indicator_param { time_step: 4 }", [])
    with pytest.raises(recaffe.RecaffeError, match="give a bottom, or time_step and batch_size, not both"):
        SingleLayer(f"type: 'ContinuationIndicator' {sizes}", [np.ones((4, 3))])
    with pytest.raises(recaffe.RecaffeError, match=r"has shape \(4,\), expected T x N x \.\.\."):
        SingleLayer("type: 'ContinuationIndicator'", [np.ones(4)])


def test_a_bidirectional_lstm_out_of_fork_layers_is_ours():
    lstm_param = "lstm_param { num_output: 3 weight_filler { type: 'xavier' } }"
    net = make_net(
        f"""
        layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ dim: 5 dim: 2 dim: 4 }} }} }}
        layer {{ name: "forth" type: "Lstm" bottom: "x" top: "forth" {lstm_param} }}
        layer {{ name: "turn" type: "Reverse" bottom: "x" top: "turned" }}
        layer {{ name: "back" type: "Lstm" bottom: "turned" top: "back" {lstm_param} }}
        layer {{ name: "turn_back" type: "Reverse" bottom: "back" top: "turned_back" }}
        layer {{ name: "both" type: "Concat" bottom: "forth" bottom: "turned_back" top: "both"
          concat_param {{ axis: 2 }} }}
        layer {{ name: "ours" type: "LSTM" bottom: "x" top: "ours"
          recurrent_param {{ num_output: 3 direction: BIDIRECTIONAL }} }}""",
        dtype=np.float64,
    )
    for name, start in (("forth", 0), ("back", 3)):
        for blob, place in zip(net.params[name], (0, 2, 1), strict=True):
            net.params["ours"][start + place].data[...] = blob.data
    tops = net.forward(x=x)
    assert_close(tops["both"], tops["ours"], 1e-12)
