"""What cont, carried states and padding mean for RNN, LSTM and GRU, and what is told of bottoms that do not fit."""

import numpy as np
import pytest
import recaffe
from recaffe.framework.backend import CpuBackend
from recaffe.framework.single_layer import SingleLayer

from tests.support import assert_close, make_net

TYPES = ["RNN", "LSTM", "GRU"]
FILLERS = "weight_filler { type: 'uniform' min: -0.6 max: 0.6 } bias_filler { type: 'uniform' min: -0.6 max: 0.6 }"
rng = np.random.default_rng(3)


def recurrent_net(type, options="", T=4, N=2, with_cont=True, phase=recaffe.TRAIN):
    """x (T x N x 3) and cont into one recurrent layer of four units, in float64."""
    inputs = "top: 'x'" + " top: 'cont'" * with_cont
    shapes = f"shape {{ dim: {T} dim: {N} dim: 3 }}" + f" shape {{ dim: {T} dim: {N} }}" * with_cont
    bottoms = inputs.replace("top", "bottom")
    text = (
        f"force_backward: true layer {{ name: 'in' type: 'Input' {inputs} input_param {{ {shapes} }} }}"
        f" layer {{ name: 'r' type: '{type}' {bottoms} top: 'y'"
        f" recurrent_param {{ num_output: 4 {FILLERS} {options} }} }}"
    )
    return make_net(text, phase, dtype=np.float64, backend=CpuBackend(seed=1, threads=1))


def run(net, x, cont=None):
    """The output for x (and cont), whose T and N may be new."""
    values = {"x": x} if cont is None else {"x": x, "cont": cont}
    for name, value in values.items():
        net.blobs[name].reshape(*value.shape)
    return net.forward(**values)["y"].copy()


def starts(T, N, *at):
    """cont with a sequence start at each (t, n) of ``at``."""
    cont = np.ones((T, N))
    for t, n in at:
        cont[t, n] = 0
    return cont


@pytest.mark.parametrize("options", ["", "direction: REVERSE", "direction: BIDIRECTIONAL num_layers: 2"])
@pytest.mark.parametrize("type", TYPES)
def test_packed_sequences_are_those_run_alone(type, options):
    net = recurrent_net(type, options)
    x, dy = rng.normal(size=(9, 2, 3)), rng.normal(size=(9, 2, 4 * (2 if "BI" in options else 1)))
    packed = run(net, x, starts(9, 2, (0, 0), (0, 1), (3, 0), (4, 0), (7, 1)))
    net.clear_param_diffs()
    net.backward(y=dy)
    d_packed, dW_packed = net.blobs["x"].diff.copy(), [blob.diff.copy() for blob in net.params["r"]]
    net.clear_param_diffs()
    for n, start, stop in ((0, 0, 3), (0, 3, 4), (0, 4, 9), (1, 0, 7), (1, 7, 9)):
        alone = run(net, x[start:stop, n : n + 1], starts(stop - start, 1, (0, 0)))
        assert_close(alone, packed[start:stop, n : n + 1], 1e-12)
        net.backward(y=dy[start:stop, n : n + 1])
        assert_close(net.blobs["x"].diff, d_packed[start:stop, n : n + 1], 1e-12)
    for blob, expected in zip(net.params["r"], dW_packed, strict=True):
        assert_close(blob.diff, expected, 1e-12)


@pytest.mark.parametrize("options", ["", "num_layers: 2"])
@pytest.mark.parametrize("type", TYPES)
def test_two_halves_are_the_whole(type, options):
    net = recurrent_net(type, options)
    x, cont = rng.normal(size=(8, 2, 3)), starts(8, 2, (0, 0), (0, 1), (5, 1))
    whole = run(net, x, cont)
    net.reset_states()
    assert_close(np.concatenate([run(net, x[:3], cont[:3]), run(net, x[3:], cont[3:])]), whole, 1e-12)


@pytest.mark.parametrize("type", TYPES)
def test_states_are_carried_where_a_sequence_goes_on(type):
    net = recurrent_net(type)
    x, goes_on = rng.normal(size=(4, 2, 3)), np.ones((4, 2))
    first = run(net, x, goes_on)
    second = run(net, x, goes_on)
    assert np.abs(second - first).max() > 1e-3
    new_sequence = run(net, x, starts(4, 2, (0, 1)))
    assert_close(new_sequence[:, 1], first[:, 1], 1e-12)
    assert np.abs(new_sequence[:, 0] - first[:, 0]).max() > 1e-3
    net.reset_states()
    assert np.array_equal(run(net, x, goes_on), first)


@pytest.mark.parametrize(
    ("options", "with_cont", "carries"),
    [("", True, True), ("carry_state: false", True, False), ("", False, False), ("carry_state: true", False, True)],
)
def test_who_carries(options, with_cont, carries):
    net = recurrent_net("LSTM", options, with_cont=with_cont)
    x, cont = rng.normal(size=(4, 2, 3)), np.ones((4, 2)) if with_cont else None
    assert np.array_equal(run(net, x, cont), run(net, x, cont)) != carries
    assert bool(net.get_state()) == carries


EXPOSED = {"RNN": 1, "LSTM": 2, "GRU": 1}


def exposed_net(type, options, T, N):
    """x, cont and first states into one recurrent layer that exposes its states, in float64."""
    states = [f"s{k}" for k in range(EXPOSED[type])]
    tops = " ".join(f"top: '{name}'" for name in ("x", "cont", *states))
    shapes = f"shape {{ dim: {T} dim: {N} dim: 3 }} shape {{ dim: {T} dim: {N} }}"
    shapes += f" shape {{ dim: 1 dim: {N} dim: 4 }}" * len(states)
    last = " ".join(f"top: 'last_{name}'" for name in states)
    text = (
        f"force_backward: true layer {{ name: 'in' type: 'Input' {tops} input_param {{ {shapes} }} }}"
        f" layer {{ name: 'r' type: '{type}' {tops.replace('top', 'bottom')} top: 'y' {last}"
        f" recurrent_param {{ num_output: 4 {FILLERS} expose_hidden: true {options} }} }}"
    )
    return make_net(text, recaffe.TRAIN, dtype=np.float64, backend=CpuBackend(seed=1, threads=1)), states


@pytest.mark.parametrize("type", TYPES)
def test_exposed_states_that_are_carried_are_read_once(type):
    net, states = exposed_net(type, "carry_state: true", 4, 2)
    x, cont = rng.normal(size=(8, 2, 3)), starts(8, 2, (6, 1))
    first = {name: rng.normal(size=(1, 2, 4)) for name in states}
    other = {name: rng.normal(size=(1, 2, 4)) for name in states}
    whole, _ = exposed_net(type, "", 8, 2)
    for mine, its in zip(net.params["r"], whole.params["r"], strict=True):
        its.data[...] = mine.data
    expected = whole.forward(x=x, cont=cont, **first)
    for _ in range(2):
        halves = [{name: y.copy() for name, y in net.forward(x=x[:4], cont=cont[:4], **first).items()}]
        net.backward(y=np.ones((4, 2, 4)))
        assert np.abs(net.blobs["s0"].diff).max() > 1e-3
        halves.append(net.forward(x=x[4:], cont=cont[4:], **other))
        net.backward(y=np.ones((4, 2, 4)))
        assert not any(net.blobs[name].diff.any() for name in states)
        assert_close(np.concatenate([half["y"] for half in halves]), expected["y"], 1e-12)
        for name in states:
            assert_close(halves[1][f"last_{name}"], expected[f"last_{name}"], 1e-12)
        net.reset_states()


@pytest.mark.parametrize("type", TYPES)
def test_streams_are_selected(type):
    net = recurrent_net(type, "num_layers: 2")
    x, goes_on = rng.normal(size=(4, 3, 3)), np.ones((4, 3))
    run(net, x, goes_on)
    state = net.get_state()
    expected = run(net, x, goes_on)
    net.set_state(state)
    net.select_streams([2, 0, 0, 1])
    order = np.array([2, 0, 0, 1])
    assert_close(run(net, x[:, order], np.ones((4, 4))), expected[:, order], 1e-12)


def lstm_biases(options, blobs=""):
    """The biases of an LSTM of two units, as they start."""
    text = (
        "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 4 dim: 2 dim: 1 } } }"
        f" layer {{ name: 'r' type: 'LSTM' bottom: 'x' top: 'y' {blobs}"
        f" recurrent_param {{ num_output: 2 {options} }} }}"
    )
    return [run.b.data.tolist() for run in make_net(text).layer_dict["r"].runs]


@pytest.mark.parametrize(("forget_bias", "expected"), [("forget_bias: 1", 1), ("", 0.25)])
def test_forget_bias(forget_bias, expected):
    options = f"bias_filler {{ value: 0.25 }} {forget_bias} direction: BIDIRECTIONAL num_layers: 2"
    assert lstm_biases(options) == [[0.25, 0.25, expected, expected, 0.25, 0.25, 0.25, 0.25]] * 4


def test_forget_bias_leaves_given_parameters():
    W = "blobs { shape { dim: 8 dim: 1 } data: [0, 0, 0, 0, 0, 0, 0, 0] }"
    b = "blobs { shape { dim: 8 } data: [1, 2, 3, 4, 5, 6, 7, 8] }"
    W_h = f"blobs {{ shape {{ dim: 8 dim: 2 }} data: {[0] * 16} }}"
    assert lstm_biases("forget_bias: 1", W + b + W_h) == [[1, 2, 3, 4, 5, 6, 7, 8]]


@pytest.mark.parametrize("type", TYPES)
def test_steps_and_streams_may_change(type):
    x = rng.normal(size=(7, 5, 3))
    net = recurrent_net(type, "direction: BIDIRECTIONAL num_layers: 2")
    for T, N in ((4, 2), (7, 5), (1, 1), (7, 1), (2, 5)):
        cont = np.ones((T, N))
        net.reset_states()
        fresh = recurrent_net(type, "direction: BIDIRECTIONAL num_layers: 2")
        for mine, its in zip(net.params["r"], fresh.params["r"], strict=True):
            its.data[...] = mine.data
        results = []
        for each in (net, fresh):
            each.clear_param_diffs()
            y = run(each, x[:T, :N], cont)
            each.backward(y=np.cos(y))
            results.append([y, each.blobs["x"].diff.copy(), *(blob.diff.copy() for blob in each.params["r"])])
        assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))


def test_a_new_number_of_streams_starts_from_zeros():
    net, x = recurrent_net("LSTM"), rng.normal(size=(4, 3, 3))
    first = run(net, x, np.ones((4, 3)))
    run(net, x[:, :2], np.ones((4, 2)))
    assert np.array_equal(run(net, x, np.ones((4, 3))), first)


@pytest.mark.parametrize("type", TYPES)
def test_resumed_training_goes_on_with_the_same_bits(type):
    options = "num_layers: 2 dropout_ratio: 0.5"
    x, cont = rng.normal(size=(4, 2, 3)), np.ones((4, 2))
    net, other = recurrent_net(type, options), recurrent_net(type, options)
    for mine, its in zip(net.params["r"], other.params["r"], strict=True):
        its.data[...] = mine.data
    run(net, x, cont)
    other.set_state(net.get_state())
    other.backend.set_random_state(net.backend.random_state())
    assert np.array_equal(run(other, x, cont), run(net, x, cont))


def test_dropout_between_levels():
    x, cont = rng.normal(size=(4, 2, 3)), starts(4, 2, (0, 0), (0, 1))
    options = "output_hidden: true num_layers: 2 dropout_ratio: 0.5"
    trained, scored = recurrent_net("RNN", options), recurrent_net("RNN", options, phase=recaffe.TEST)
    y, again = run(trained, x, cont), run(trained, x, cont)
    assert np.abs(y - again).max() > 1e-3
    for mine, its in zip(trained.params["r"], scored.params["r"], strict=True):
        its.data[...] = mine.data
    dropped = trained.layer_dict["r"].levels[1].dropped.data
    assert set(np.unique(dropped)) == {0.0, 2.0}
    for got, factors in ((again, dropped), (run(scored, x, cont), np.ones_like(dropped))):
        h = x
        for parameters, factor in ((trained.params["r"][:3], 1), (trained.params["r"][3:], factors)):
            h = plain_rnn(h * factor, *(blob.data for blob in parameters))
        assert_close(got, h, 1e-12)


def plain_rnn(x, W_x, b, W_h):
    h = [np.zeros((x.shape[1], len(b)))]
    for x_t in x:
        h.append(np.tanh(x_t @ W_x.T + h[-1] @ W_h.T + b))
    return np.array(h[1:])


@pytest.mark.parametrize("type", TYPES)
def test_what_stands_in_padding_does_not_matter(type):
    net = recurrent_net(type, "padding: MASK direction: BIDIRECTIONAL")  # bottom 1 is the mask: there is no other
    x, mask = rng.normal(size=(4, 2, 3)), np.array([[1, 1], [1, 0], [1, 0], [0, 0]], float)
    y = run(net, x, mask)
    assert not y[mask == 0].any() and y[mask == 1].all()
    x[mask == 0] = np.nan
    assert np.array_equal(run(net, x, mask), y)


def test_one_value_a_step():
    single = SingleLayer("type: 'GRU' recurrent_param { num_output: 3 }", [rng.normal(size=(4, 2))])
    expected = SingleLayer("type: 'GRU' recurrent_param { num_output: 3 }", [single.values[0][:, :, None]])
    assert np.array_equal(single.forward()[0], expected.forward()[0])


ones = np.ones((4, 2))
x = np.ones((4, 2, 3))
BAD = {
    # what is wrong: (options, bottoms, tops, message)
    "one axis": ("", [np.ones(4)], 1, r"shape \(4,\), expected T x N x"),
    "no step": ("", [np.ones((0, 2, 3))], 1, r"shape \(0, 2, 3\), expected T x N x .* each size 1 or more"),
    "cont's shape": ("", [x, np.ones((4, 3))], 1, r"\(cont\) has shape \(4, 3\), expected T x N = \(4, 2\)"),
    "cont's values": ("", [x, 2 * ones], 1, r"\(cont\) is 2 at \[0, 0\], expected 0 or 1"),
    "NaN in cont": ("", [x, ones * np.nan], 1, r"\(cont\) is nan at \[0, 0\], expected 0 or 1"),
    "static's shape": ("", [x, ones, np.ones((3, 5))], 1, r"\(static\) has shape \(3, 5\), expected N x S = \(2, 5\)"),
    "too many bottoms": ("", [x, ones, ones.T, ones], 1, r"got 4 bottom\(s\), expected x, cont and a static input"),
    "one first state of two": (
        "expose_hidden: true", [x, ones, np.ones((2, 5)), np.ones((1, 2, 5))], 3,
        r"got 4 bottom\(s\), .* 2 first state\(s\), L x N x H, if wanted",
    ),
    "tops": ("", [x], 2, r"got 2 top\(s\), expected 1"),
    "tops of exposed states": ("expose_hidden: true", [x], 2, r"got 2 top\(s\), expected 3"),
    "an option of GRU": ("reset_after: true", [x], 1, "reset_after is an option of other recurrent layers"),
    "a first state's shape": (
        "expose_hidden: true", [x, ones, np.ones((2, 2, 5)), np.ones((1, 2, 5))], 3,
        r"\(first h\) has shape \(2, 2, 5\), expected L x N x H = \(1, 2, 5\)",
    ),
    "lengths beyond T": ("padding: LENGTHS", [x, np.array([4, 5])], 1, r"\(lengths\) is 5 at \[1\], .* 0 to T = 4"),
    "half a step": ("padding: LENGTHS", [x, np.array([4, 1.5])], 1, r"\(lengths\) is 1.5 at \[1\], .* whole number"),
    "lengths' shape": ("padding: LENGTHS", [x, ones], 1, r"\(lengths\) has shape \(4, 2\), expected N = \(2,\)"),
    "mask's values": ("padding: MASK", [x, ones / 2], 1, r"\(mask\) is 0.5 at \[0, 0\], expected 0 or 1"),
    "no level": ("num_layers: 0", [x], 1, "num_layers is 0"),
    "dropout": ("dropout_ratio: 1", [x], 1, "dropout_ratio is 1, expected 0 or more and less than 1"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bottoms_that_do_not_fit(what):
    options, bottoms, tops, message = BAD[what]
    names = " ".join(f"top: 'top{k}'" for k in range(tops))
    text = f"name: 'memory' type: 'LSTM' {names} recurrent_param {{ num_output: 5 {options} }}"
    with pytest.raises(recaffe.RecaffeError, match=message) as raised:
        SingleLayer(text, bottoms).forward()
    assert "layer 'memory' (type 'LSTM')" in str(raised.value)


def test_num_output_is_needed():
    with pytest.raises(recaffe.RecaffeError, match="needs num_output"):
        SingleLayer("type: 'GRU'", [x])


def test_another_number_of_values_a_step():
    single = SingleLayer("type: 'RNN' recurrent_param { num_output: 5 }", [x])
    single.set_bottoms([np.ones((4, 2, 7))])
    with pytest.raises(recaffe.RecaffeError, match="expected T x N x 3 values a step"):
        single.forward()


def test_marks_have_no_gradient():
    single = SingleLayer("type: 'RNN' recurrent_param { num_output: 5 }", [x, ones])
    single.forward()
    with pytest.raises(recaffe.RecaffeError, match="no gradient; set propagate_down: false for bottom 1"):
        single.backward([True, True])
