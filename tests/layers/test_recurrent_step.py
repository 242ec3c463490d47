"""Recurrent: steps written as nets, against the cells that do the same, and everything a step can say."""

import re
from pathlib import Path

import numpy as np
import pytest
import recaffe
from recaffe.framework.gradient_check import gradient_check
from recaffe.framework.layer_checks import check_layer
from recaffe.framework.single_layer import SingleLayer

from tests.support import assert_close, make_net

ROOT = Path(__file__).parents[2]
T, N, D, H = 5, 3, 4, 3
rng = np.random.default_rng(5)
x = rng.normal(size=(T, N, D))
cont = np.array([[0, 1, 0], [1, 1, 1], [1, 0, 1], [0, 1, 1], [1, 1, 1]], float)
mask = np.array([[1, 1, 1], [1, 1, 1], [1, 0, 1], [1, 0, 0], [1, 0, 0]], float)


def product(name, bottom, top, num_output, bias=True, more=""):
    bias_term = "" if bias else "bias_term: false"
    param = f"inner_product_param {{ num_output: {num_output} {bias_term} weight_filler {{ type: 'xavier' }} }}"
    return f"layer {{ name: '{name}' type: 'InnerProduct' bottom: '{bottom}' top: '{top}' {param} {more} }}\n"


def joined(name, a, b, top, operation):
    how = f"eltwise_param {{ operation: {operation} }}"
    return f"layer {{ name: '{name}' type: 'Eltwise' bottom: '{a}' bottom: '{b}' top: '{top}' {how} }}\n"


def activation(kind, blob):
    return f"layer {{ name: '{blob}' type: '{kind}' bottom: '{blob}' top: '{blob}' }}\n"


def recurrent(step, options="", tops="top: 'y'"):
    return f"type: 'Recurrent' {tops} recurrent_param {{ {options} step {{ {step} }} }}"


LSTM_LAYERS = (
    joined("sum", "from_x", "from_h", "gates", "SUM")
    + "layer { name: 'parts' type: 'Slice' bottom: 'gates' top: 'i' top: 'f' top: 'o' top: 'g' }\n"
    + activation("Sigmoid", "i")
    + activation("Sigmoid", "f")
    + activation("Sigmoid", "o")
    + activation("TanH", "g")
    + joined("keep", "f", "c", "kept", "PROD")
    + joined("write", "i", "g", "new", "PROD")
    + joined("cell", "kept", "new", "c_t", "SUM")
    + "layer { name: 'squash' type: 'TanH' bottom: 'c_t' top: 'tanh_c' }\n"
    + joined("out", "o", "tanh_c", "h_t", "PROD")
)
STATES = "state { name: 'h' next: 'h_t' %s } state { name: 'c' next: 'c_t' %s }"
SHAPED = STATES % ("shape { dim: 3 }", "shape { dim: 3 }")
LSTM = (
    f"input: 'x_t' output: 'h_t' {SHAPED}"
    + product("W_xc", "x_t", "from_x", 4 * H)
    + product("W_hc", "h", "from_h", 4 * H, bias=False)
    + LSTM_LAYERS
)
LSTM_WEIGHTS = [rng.normal(size=(4 * H, D)), rng.normal(size=4 * H), rng.normal(size=(4 * H, H))]

GRU = (
    "input: 'x_t' output: 'h_t' state { name: 'h' next: 'h_t' shape { dim: 3 } }"
    + product("W_zr", "x_t", "zr_x", 2 * H)
    + product("U_zr", "h", "zr_h", 2 * H, bias=False)
    + joined("zr", "zr_x", "zr_h", "zr", "SUM")
    + activation("Sigmoid", "zr").replace("name: 'zr'", "name: 'zr_sigmoid'")
    + "layer { name: 'parts' type: 'Slice' bottom: 'zr' top: 'z' top: 'r' }\n"
    + joined("reset", "r", "h", "rh", "PROD")
    + product("W", "x_t", "c_x", H)
    + product("U", "rh", "c_h", H, bias=False)
    + joined("candidate", "c_x", "c_h", "c", "SUM")
    + activation("TanH", "c")
    + "layer { name: 'change' type: 'Eltwise' bottom: 'c' bottom: 'h' top: 'change'"
    + " eltwise_param { coeff: 1 coeff: -1 } }"
    + joined("part", "z", "change", "part", "PROD")
    + joined("next", "h", "part", "h_t", "SUM")
)


def both_ways(layer, bottoms, parameters, slopes, propagate_down=None, **options):
    """Tops, gradients of the bottoms, gradients of the parameters."""
    single = SingleLayer(layer, bottoms, parameters=parameters, **options)
    tops = single.forward()
    for blob in single.layer.blobs:
        blob.clear_diff()
    single.set_top_diffs(slopes)
    wanted = [single.layer.allow_force_backward(j) for j in range(len(bottoms))]
    single.backward(propagate_down or wanted)
    diffs = [diff for diff, asked in zip(single.bottom_diffs(), wanted, strict=True) if asked]
    return tops, diffs, single.parameter_diffs()


def same(got, expected):
    for a, b in zip(got, expected, strict=True):
        for what, (values, wanted) in enumerate(zip(a, b, strict=True)):
            assert_close(values, wanted, 1e-10, f"array {what}")


@pytest.mark.parametrize("direction", ["FORWARD", "REVERSE"])
@pytest.mark.parametrize("padding", ["NO_PADDING", "MASK"])
@pytest.mark.parametrize("marks", [True, False], ids=["cont", "no cont"])
def test_an_lstm_is_the_fused_lstm(direction, padding, marks):
    bottoms = [x] + [cont] * marks + [mask] * (padding == "MASK")
    options = f"direction: {direction} padding: {padding}"
    if not marks:
        options += " cont_bottom: false"
    slopes = [rng.normal(size=(T, N, H))]
    expected = both_ways(f"type: 'LSTM' recurrent_param {{ num_output: 3 {options} }}", bottoms, LSTM_WEIGHTS, slopes)
    same(both_ways(recurrent(LSTM, options), bottoms, LSTM_WEIGHTS, slopes), expected)


def test_an_lstm_with_exposed_states_is_the_fused_lstm():
    first = [rng.normal(size=(N, H)) for _ in range(2)]
    slopes = [rng.normal(size=shape) for shape in ((T, N, H), (N, H), (N, H))]
    step = LSTM.replace(SHAPED, STATES % (("start: BOTTOM last_top: true",) * 2))
    tops, diffs, gradients = both_ways(
        "type: 'LSTM' top: 'y' top: 'h' top: 'c' recurrent_param { num_output: 3 expose_hidden: true }",
        [x, cont, *(array[None] for array in first)],
        LSTM_WEIGHTS,
        [slopes[0], slopes[1][None], slopes[2][None]],
    )
    expected = [tops[0], tops[1][0], tops[2][0]], [diffs[0], diffs[1][0], diffs[2][0]], gradients
    layer = recurrent(step, tops="top: 'y' top: 'h' top: 'c'")
    same(both_ways(layer, [x, cont, *first], LSTM_WEIGHTS, slopes), expected)


def test_an_lstm_with_a_static_input_is_the_fused_lstm():
    static = rng.normal(size=(N, 2))
    W_s = rng.normal(size=(4 * H, 2))
    step = LSTM.replace("input: 'x_t'", "input: 'x_t' static: 's'")
    step = step.replace("bottom: 'from_h' top: 'gates'", "bottom: 'from_h' bottom: 'from_s' top: 'gates'")
    step = step.replace(LSTM_LAYERS[:20], product("W_s", "s", "from_s", 4 * H, bias=False) + LSTM_LAYERS[:20])
    W_x, b, W_h = LSTM_WEIGHTS
    slopes = [rng.normal(size=(T, N, H))]
    tops, diffs, (dx, db, ds, dh) = both_ways(
        "type: 'LSTM' recurrent_param { num_output: 3 }", [x, cont, static], [W_x, b, W_s, W_h], slopes
    )
    got = both_ways(recurrent(step), [x, cont, static], [W_x, b, W_h, W_s], slopes)
    same(got, (tops, diffs, [dx, db, dh, ds]))


@pytest.mark.parametrize("direction", ["FORWARD", "REVERSE"])
def test_a_gru_is_the_fused_gru(direction):
    W, b, U = rng.normal(size=(3 * H, D)), rng.normal(size=3 * H), rng.normal(size=(3 * H, H))
    slopes = [rng.normal(size=(T, N, H))]
    options = f"direction: {direction}"
    tops, diffs, (dW, db, dU) = both_ways(
        f"type: 'GRU' recurrent_param {{ num_output: 3 {options} }}", [x, cont], [W, b, U], slopes
    )
    k = 2 * H
    parameters = [W[:k], b[:k], U[:k], W[k:], b[k:], U[k:]]
    expected = tops, diffs, [dW[:k], db[:k], dU[:k], dW[k:], db[k:], dU[k:]]
    same(both_ways(recurrent(GRU, options), [x, cont], parameters, slopes), expected)


def test_a_cell_with_two_states_by_hand():
    """Two states of two sizes and starts, one learnt: a running mean beside a plain recurrent net."""
    step = (
        "input: 'x_t' output: 'h_t' output: 'm_t'"
        " state { name: 'h' next: 'h_t' shape { dim: 3 } start: LEARNED filler { type: 'gaussian' } }"
        " state { name: 'm' next: 'm_t' shape { dim: 4 } value: 0.25 last_top: true }"
        + product("U", "x_t", "from_x", H)
        + product("W", "h", "from_h", H, bias=False)
        + product("V", "m", "from_m", H, bias=False)
        + "layer { name: 'sum' type: 'Eltwise' bottom: 'from_x' bottom: 'from_h' bottom: 'from_m' top: 'a' }"
        + "layer { name: 'h' type: 'TanH' bottom: 'a' top: 'h_t' }"
        + "layer { name: 'm' type: 'Eltwise' bottom: 'm' bottom: 'x_t' top: 'm_t'"
        + " eltwise_param { coeff: 0.75 coeff: 0.25 } }"
    )
    U, b, W, V, h_0 = (rng.normal(size=size) for size in ((H, D), (H,), (H, H), (H, D), (H,)))
    layer = recurrent(step, tops="top: 'h' top: 'm' top: 'last'")
    single = SingleLayer(layer, [x, cont], parameters=[U, b, W, V, h_0])
    tops = single.forward()
    h, m = np.tile(h_0, (N, 1)), np.full((N, D), 0.25)
    for t in range(T):
        for n in range(N):
            if cont[t, n] == 0:
                h[n], m[n] = h_0, 0.25
        h = np.tanh(x[t] @ U.T + b + h @ W.T + m @ V.T)
        m = 0.75 * m + 0.25 * x[t]
        assert_close(tops[0][t], h, 1e-12)
        assert_close(tops[1][t], m, 1e-12)
    assert_close(tops[2], m, 1e-12)
    gradient_check(layer, [x, cont], parameters=[U, b, W, V, h_0])
    gradient_check(layer, [x], parameters=[U, b, W, V, h_0])


def test_states_go_on_from_batch_to_batch():
    single = SingleLayer(recurrent(LSTM), [x, cont], parameters=LSTM_WEIGHTS)
    (whole,) = single.forward()
    parts = []
    single.restart()
    for start, stop in ((0, 2), (2, 3), (3, 5)):
        single.set_bottoms([x[start:stop], cont[start:stop]])
        parts += list(single.run()[0])
    assert_close(np.array(parts), whole, 1e-12)
    state = single.layer.get_state()
    assert set(state) == {"h", "c"}
    assert_close(state["h"], whole[-1], 1e-12)
    single.layer.reset_states()
    assert single.layer.get_state() == {}
    alone = SingleLayer(recurrent(LSTM, "carry_state: false"), [x, cont], parameters=LSTM_WEIGHTS)
    alone.forward()
    assert alone.layer.get_state() == {}


def test_steps_and_streams_may_change():
    single = SingleLayer(recurrent(LSTM), [x, cont], parameters=LSTM_WEIGHTS)
    for steps, streams in ((5, 3), (2, 3), (7, 1), (1, 4), (5, 3)):
        bottoms = [rng.normal(size=(steps, streams, D)), np.ones((steps, streams))]
        single.set_bottoms(bottoms)
        slopes = [rng.normal(size=(steps, streams, H))]
        tops = single.forward()
        for blob in single.layer.blobs:
            blob.clear_diff()
        single.set_top_diffs(slopes)
        single.backward([True, False])
        expected = both_ways("type: 'LSTM' recurrent_param { num_output: 3 }", bottoms, LSTM_WEIGHTS, slopes)
        same((tops, single.bottom_diffs()[:1], single.parameter_diffs()), expected)


def test_random_numbers_do_not_depend_on_the_number_of_steps():
    """Only the first copy of the step draws its weights."""
    values = []
    for steps in (2, 20):
        single = SingleLayer(recurrent(LSTM), [np.ones((steps, N, D))])
        values.append(single.backend.host_rng.random())
    assert values[0] == values[1]


class Doubled(recaffe.Layer):
    """y = w x; its set-up writes the first value of w."""

    bottoms, tops = (1, 1), (1, 1)

    def setup(self, bottom, top):
        self.blobs.add_blob(1)
        self.blobs[0].data[...] = 2

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = self.blobs[0].data[0] * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        self.blobs[0].diff[...] += (top[0].diff * bottom[0].data).sum()
        bottom[0].diff[...] = self.blobs[0].data[0] * top[0].diff


def test_new_steps_keep_what_a_parameter_has_learnt():
    step = (
        "input: 'x_t' output: 'h_t' state { name: 'h' next: 'h_t' shape { dim: 4 } }"
        " layer { name: 'w' type: 'Python' bottom: 'h' top: 'a'"
        f" python_param {{ module: '{__name__}' layer: 'Doubled' }} }}" + joined("sum", "x_t", "a", "h_t", "SUM")
    )
    single = SingleLayer(recurrent(step), [x[:2]], parameters=[np.array([0.5])])
    assert_close(single.forward()[0][1], 0.5 * x[0] + x[1], 1e-12)
    single.set_bottoms([x])
    (h,) = single.forward()
    assert_close(h[4], x[4] + 0.5 * h[3], 1e-12)
    gradient_check(recurrent(step), [x])


def test_dropout_in_the_step_draws_anew_at_each_step():
    step = (
        "input: 'x_t' output: 'h_t' output: 'd' state { name: 'h' next: 'h_t' shape { dim: 3 } }"
        + product("U", "x_t", "from_x", H)
        + "layer { name: 'd' type: 'Dropout' bottom: 'h' top: 'd' dropout_param { dropout_ratio: 0.25 } }"
        + product("W", "d", "from_h", H, bias=False)
        + joined("sum", "from_x", "from_h", "h_t", "SUM")
        + activation("TanH", "h_t")
    )
    layer = recurrent(step, tops="top: 'h' top: 'd'")
    h, dropped = SingleLayer(layer, [x]).forward()
    kept = [tuple((dropped[t] != 0).reshape(-1)) for t in range(1, T)]
    assert len(set(kept)) == T - 1
    assert_close(dropped[1:], np.where(dropped[1:] != 0, h[:-1] / 0.75, 0), 1e-12)
    check_layer(layer, [x], other_bottoms=[x[:2, :1]])
    h, dropped = SingleLayer(layer, [x], phase=recaffe.TEST).forward()
    assert_close(dropped[1:], h[:-1], 1e-12)


def test_layers_of_one_phase():
    step = LSTM.replace("input: 'x_t'", "input: 'x_t'") + (
        "layer { name: 'noise' type: 'Dropout' bottom: 'h_t' top: 'h_t' include { phase: TRAIN } }"
    )
    assert (SingleLayer(recurrent(step), [x]).forward()[0] == 0).any()
    tested = SingleLayer(recurrent(step), [x], phase=recaffe.TEST, parameters=LSTM_WEIGHTS).forward()
    assert_close(tested[0], SingleLayer(recurrent(LSTM), [x], parameters=LSTM_WEIGHTS).forward()[0], 1e-12)


NET = """
layer { name: "data" type: "Input" top: "x" top: "cont" top: "t"
  input_param { shape { dim: 5 dim: 3 dim: 4 } shape { dim: 5 dim: 3 } shape { dim: 5 dim: 3 dim: 3 } } }
layer { name: "r" bottom: "x" bottom: "cont" %s }
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" }
"""


def test_parameters_are_learnt_shared_and_weighed_as_their_specs_say():
    step = (
        "input: 'x_t' output: 'h_t'"
        " state { name: 'h' next: 'h_t' shape { dim: 3 } start: LEARNED param { lr_mult: 5 } }"
        + product("U", "x_t", "from_x", H, more="param { lr_mult: 3 } param { lr_mult: 0 }")
        + product("W", "h", "a", H, bias=False, more="param { name: 'w' decay_mult: 2 }")
        + product("W2", "a", "from_h", H, bias=False, more="param { name: 'w' }")
        + joined("sum", "from_x", "from_h", "h_t", "SUM")
        + activation("TanH", "h_t")
    )
    net = make_net(NET % recurrent(step), dtype=np.float64)
    assert (net.params_lr, net.params_weight_decay) == ([3, 0, 1, 5], [1, 1, 2, 1])
    assert [blob.shape for blob in net.params["r"]] == [(3, 4), (3,), (3, 3), (3, 3), (3,)]
    assert net.params["r"][2].data is net.learnable_params[2].data
    net.params["r"][2].data[...] = rng.normal(size=(3, 3))
    assert_close(net.params["r"][3].data, net.params["r"][2].data)
    net.blobs["x"].data[...], net.blobs["cont"].data[...] = x, cont
    gradient_check(net)
    net.params["r"][1].diff.fill(7)
    net.backward()
    assert (net.params["r"][1].diff == 7).all()  # lr_mult: 0
    # the gradient of a shared parameter is the sum over its places
    two = make_net(NET % recurrent(step.replace("param { name: 'w' }", "")), dtype=np.float64)
    for blob, values in zip(two.params["r"], net.params["r"], strict=True):
        blob.data[...] = values.data
    for one in (net, two):
        one.blobs["x"].data[...], one.blobs["cont"].data[...] = x, cont
        one.reset_states()
        one.clear_param_diffs()
        one.forward_backward()
    assert_close(net.params["r"][2].diff, two.params["r"][2].diff + two.params["r"][3].diff, 1e-12)


def test_two_layers_share_a_step():
    step = LSTM.replace("name: 'W_xc' ", "name: 'W_xc' param { name: 'w_x' } param { name: 'b' } ")
    other = recurrent(step.replace("'W_hc'", "'other'"), tops="top: 'again'")
    text = NET % recurrent(step) + f"layer {{ name: 'again' bottom: 'x' bottom: 'cont' {other} }}"
    text += "layer { name: 'loss2' type: 'EuclideanLoss' bottom: 'again' bottom: 't' }"
    net = make_net(text, dtype=np.float64)
    first, second = net.params["r"], net.params["again"]
    assert first[0].data is not None and np.shares_memory(first[0].data, second[0].data)
    assert np.shares_memory(first[1].data, second[1].data) and not np.shares_memory(first[2].data, second[2].data)
    net.blobs["x"].data[...], net.blobs["cont"].data[...] = x, cont
    gradient_check(net)


def test_weights_are_saved_and_loaded(tmp_path):
    net, other = (make_net(NET % recurrent(LSTM)) for _ in range(2))
    net.save(tmp_path / "w.caffemodel")
    other.copy_from(tmp_path / "w.caffemodel")
    for a, b in zip(net.params["r"], other.params["r"], strict=True):
        assert np.array_equal(a.data, b.data) and a.data.any() == b.data.any()
    test = make_net(NET % recurrent(LSTM), recaffe.TEST)
    test.share_trained_layers_with(net)
    net.blobs["x"].data[...], test.blobs["x"].data[...] = x, x
    assert np.array_equal(net.forward(blobs=["y"])["y"], test.forward(blobs=["y"])["y"])
    net.params["r"][0].data[...] = 0
    assert np.array_equal(net.forward(blobs=["y"])["y"], test.forward(blobs=["y"])["y"])


def test_a_word_chosen_in_one_step_is_read_in_the_next():
    """The place of a maximum has no gradient: it ends the way, and the rest of the step learns."""
    step = (
        "input: 'x_t' output: 'scores' state { name: 'word' next: 'best' shape { dim: 1 } value: 2 }"
        "layer { name: 'embed' type: 'Embed' bottom: 'word' top: 'e' embed_param { num_output: 4 input_dim: 6"
        " weight_filler { type: 'gaussian' } } }"
        "layer { name: 'flat' type: 'Flatten' bottom: 'e' top: 'v' }"
        + joined("sum", "x_t", "v", "a", "SUM")
        + product("V", "a", "scores", 6)
        + "layer { name: 'best' type: 'ArgMax' bottom: 'scores' top: 'best' argmax_param { axis: 1 } }"
    )
    single = SingleLayer(recurrent(step), [x])
    (scores,) = single.forward()
    E, b, V, c = single.parameters()
    word = np.full(N, 2)
    for t in range(T):
        expected = (x[t] + E[word] + b) @ V.T + c
        assert_close(scores[t], expected, 1e-12)
        word = expected.argmax(axis=1)
    gradient_check(recurrent(step), [x])


def test_a_state_may_be_the_input_itself():
    """A delay of two steps: nothing stands between state and next."""
    step = (
        "input: 'x_t' output: 'before' output: 'y' state { name: 'one' next: 'x_t' shape { dim: 4 } }"
        " state { name: 'before' next: 'one' shape { dim: 4 } }" + joined("both", "x_t", "before", "y", "PROD")
    )
    layer = recurrent(step, tops="top: 'before' top: 'y'")
    before, y = SingleLayer(layer, [x]).forward()
    delayed = np.concatenate([np.zeros((2, N, D)), x[:-2]])
    assert_close(before, delayed, 1e-12)
    assert_close(y, delayed * x, 1e-12)
    gradient_check(layer, [x])


def test_padded_steps_keep_the_states_and_give_zeros():
    step = LSTM.replace(SHAPED, STATES % (("shape { dim: 3 } last_top: true",) * 2))
    layer = recurrent(step, "padding: LENGTHS", tops="top: 'y' top: 'h' top: 'c'")
    lengths = np.array([5.0, 2.0, 0.0])
    y, h, c = SingleLayer(layer, [x, lengths], parameters=LSTM_WEIGHTS).forward()
    assert (y[2:, 1] == 0).all() and (y[:, 2] == 0).all() and (h[2] == 0).all() and (c[2] == 0).all()
    assert_close(h, [y[4, 0], y[1, 1], np.zeros(3)], 1e-12)
    gradient_check(layer, [x, lengths])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("next: 'c_t'", "next: 'c_r'"), "step: state 'c': next 'c_r' is no blob of the step; did you mean 'c_t'?"),
        (("output: 'h_t'", "output: 'zz'"), "step: output 'zz' is no blob of the step; it has: c, c_t, f"),
        (("name: 'c' next", "name: 'h' next"), "step: 2 blobs have the name 'h'; give each its own"),
        (("name: 'keep'", "name: 'sum'"), "step: 2 layers have the name 'sum'; give each its own"),
        (("name: 'c' next", "next"), "step: a blob has no name"),
        (("shape { dim: 3 } ", ""), "step: state 'h' needs a shape: of one stream, without N"),
        (("num_output: 12", "num_output: 16"), "step: layer 'sum' (type 'Eltwise'): "),
        (("dim: 3", "dim: 5"), "step: state 'h' has shape (3, 5), but its next, 'h_t', has (3, 3)"),
        (("bottom: 'f' bottom: 'c'", "bottom: 'f' bottom: 'cc'"), "step: layer 'keep' (type 'Eltwise'): unknown"),
        (("'TanH' bottom: 'c_t'", "'Tanh' bottom: 'c_t'"), "step: layer 'squash' (type 'Tanh'): no layer of this"),
        (("input: 'x_t'", "input: 'x_t' input: 'z' input: 'w'"), "got 2 bottom(s), expected 3 and cont: 3 input(s)"),
        (("output: 'h_t'", "output: 'h_t' output: 'c_t'"), "got 1 top(s), expected 2 output(s) and 0 state(s)"),
        (("input: 'x_t'", "static: 'x_t'"), "recurrent_param needs a step with at least one input"),
        (("bottom: 'c_t' top", "loss_weight: 1 bottom: 'c_t' top"), "a step has no loss of its own"),
        (("top: 'tanh_c' }", "top: 'tanh_c' top: 'z' }"), "layer 'squash' (type 'TanH'): expected 1 top(s), got 2"),
        (
            (
                "layer { name: 'squash'",
                "layer { name: 'more' type: 'TanH' bottom: 'c' top: 'f' } layer { name: 'squash'",
            ),
            "layer 'more' (type 'TanH'): top blob 'f' is there already",
        ),
        (("step {", "num_output: 3 step {"), "num_output is an option of other recurrent layers; here the step"),
        (("step {", "direction: BIDIRECTIONAL step {"), "direction is BIDIRECTIONAL, expected FORWARD or REVERSE"),
    ],
)
def test_mistakes_are_told_with_layer_and_place(change, message, tmp_path):
    old, new = change
    layer = recurrent(LSTM)
    assert old in layer
    text = NET % layer.replace(old, new, 1)
    path = tmp_path / "net.prototxt"
    path.write_text(text)
    with pytest.raises(recaffe.RecaffeError) as caught:
        recaffe.Net(path, recaffe.TRAIN)
    assert str(caught.value).startswith(f"{path}:4: layer 'r' (type 'Recurrent'): ")
    assert message in str(caught.value)


def test_a_misspelt_field_in_a_step_has_its_line(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_text(NET % recurrent("input: 'x'\nlayer {\n  name: 'a' botom: 'x' }"))
    with pytest.raises(recaffe.RecaffeError, match=re.escape(f'{path}:6:13: LayerParameter has no field "botom"')):
        recaffe.Net(path, recaffe.TRAIN)


def test_wrong_bottoms_are_told():
    layer = recurrent(LSTM)
    with pytest.raises(recaffe.RecaffeError, match=r"has shape \(5, 2\), expected T x N = \(5, 3\)"):
        SingleLayer(layer, [x, cont[:, :2]])
    single = SingleLayer(layer, [x, cont])
    single.set_bottoms([x, cont + 0.5])
    with pytest.raises(recaffe.RecaffeError, match=r"\(cont\) is 0.5 at \[0, 0\], expected 0 or 1"):
        single.forward()
    with pytest.raises(recaffe.RecaffeError, match="cont, masks and lengths have no gradient"):
        single.backward([True, True])
    second = "input: 'z' input: 'x_t'" + LSTM.replace("input: 'x_t'", "")
    with pytest.raises(recaffe.RecaffeError, match=r"has shape \(4, 3, 4\), expected 5 x 3 x \.\.\."):
        SingleLayer(recurrent(second), [x, x[:4]])
    begun = LSTM.replace(SHAPED, STATES % ("shape { dim: 3 }", "shape { dim: 3 } start: BOTTOM"))
    with pytest.raises(recaffe.RecaffeError, match=r"\(first 'c'\) has shape \(2, 3\), expected \(3, 3\)"):
        SingleLayer(recurrent(begun), [x, cont, np.ones((2, 3))])


def test_the_example_in_the_docs():
    text = (ROOT / "docs" / "step_nets.md").read_text().split("```")[1]
    net = make_net(
        f"""layer {{ name: "data" type: "Input" top: "x" top: "cont"
              input_param {{ shape {{ dim: 6 dim: 2 dim: 3 }} shape {{ dim: 6 dim: 2 }} }} }}
            {text}
            layer {{ name: "fused" type: "LSTM" bottom: "x" bottom: "cont" top: "expected"
              recurrent_param {{ num_output: 4 }} }}""",
        dtype=np.float64,
    )
    for blob, values in zip(net.params["fused"], net.params["lstm"], strict=True):
        blob.data[...] = values.data
    marks = np.array([[0, 0], [1, 1], [1, 0], [0, 1], [1, 1], [1, 1]])
    tops = net.forward(x=rng.normal(size=(6, 2, 3)), cont=marks)
    assert_close(tops["h"], tops["expected"], 1e-12)
    assert np.abs(tops["h"]).max() > 0.1


def test_states_from_bottoms_that_are_carried_are_read_once():
    step = LSTM.replace(SHAPED, STATES % (("start: BOTTOM last_top: true",) * 2))
    tops = "top: 'y' top: 'h' top: 'c'"
    first, other = ([rng.normal(size=(N, H)) for _ in range(2)] for _ in range(2))
    whole = SingleLayer(recurrent(step, tops=tops), [x, cont, *first], parameters=LSTM_WEIGHTS)
    expected = whole.forward()
    parts = SingleLayer(recurrent(step, "carry_state: true", tops), [x[:3], cont[:3], *first], parameters=LSTM_WEIGHTS)
    for _ in range(2):
        parts.set_bottoms([x[:3], cont[:3], *first])
        y = [parts.run()[0]]
        parts.set_top_diffs([np.ones((3, N, H)), np.zeros((N, H)), np.zeros((N, H))])
        parts.backward([True, False, True, True])
        assert np.abs(parts.bottom_diffs()[2]).max() > 1e-3
        parts.set_bottoms([x[3:], cont[3:], *other])
        tops_after = parts.run()
        y.append(tops_after[0])
        parts.set_top_diffs([np.ones((2, N, H)), np.zeros((N, H)), np.zeros((N, H))])
        parts.backward([True, False, True, True])
        assert not parts.bottom_diffs()[2].any() and not parts.bottom_diffs()[3].any()
        assert_close(np.concatenate(y), expected[0], 1e-12)
        for got, wanted in zip(tops_after[1:], expected[1:], strict=True):
            assert_close(got, wanted, 1e-12)
        parts.restart()


def test_streams_are_selected():
    single = SingleLayer(recurrent(LSTM), [x, np.ones((T, N))], parameters=LSTM_WEIGHTS)
    single.run()
    state = single.layer.get_state()
    expected = single.run()[0]
    single.layer.set_state(state)
    single.layer.select_streams([1, 1])
    single.set_bottoms([x[:, [1, 1]], np.ones((T, 2))])
    assert_close(single.run()[0], expected[:, [1, 1]], 1e-12)
