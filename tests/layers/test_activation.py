"""Activations against their formulas, and what they refuse."""

import math

import numpy as np
import pytest
import recaffe
from recaffe.framework.single_layer import SingleLayer

from tests.reference.classification import softmax
from tests.support import assert_close, backward, make_net

rng = np.random.default_rng(6)
x = 4 * rng.normal(size=(2, 3, 4))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def normal_share(x: np.ndarray) -> np.ndarray:
    """The distribution function of the normal distribution."""
    return np.vectorize(lambda value: math.erfc(-value / math.sqrt(2)) / 2)(x)


def gelu_bend(x: np.ndarray) -> np.ndarray:
    """sqrt(2 / pi) (x + 0.044715 x^3)."""
    return math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)


def gelu_bend_slope(x: np.ndarray) -> np.ndarray:
    return math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)


# text, y(x), dy/dx(x)
NEURONS = {
    "relu": ("type: 'ReLU'", lambda x: np.where(x > 0, x, 0), lambda x: np.where(x > 0, 1, 0)),
    "leaky": (
        "type: 'ReLU' relu_param { negative_slope: 0.1 }",
        lambda x: np.where(x > 0, x, np.float32(0.1) * x),
        lambda x: np.where(x > 0, 1, np.float32(0.1)),
    ),
    "falling": (
        "type: 'ReLU' relu_param { negative_slope: -0.5 }",
        lambda x: np.where(x > 0, x, -0.5 * x),
        lambda x: np.where(x > 0, 1, -0.5),
    ),
    "sigmoid": ("type: 'Sigmoid'", sigmoid, lambda x: sigmoid(x) * sigmoid(-x)),
    "tanh": ("type: 'TanH'", np.tanh, lambda x: 1 / np.cosh(x) ** 2),
    "abs": ("type: 'AbsVal'", lambda x: np.where(x < 0, -x, x), np.sign),
    "bnll": ("type: 'BNLL'", lambda x: np.log(1 + np.exp(x)), sigmoid),
    "clip": (
        "type: 'Clip' clip_param { min: -2 max: 1 }",
        lambda x: np.where(x < -2, -2, np.where(x > 1, 1, x)),
        lambda x: np.where(np.abs(x + 0.5) <= 1.5, 1, 0),
    ),
    "elu": (
        "type: 'ELU' elu_param { alpha: 0.5 }",
        lambda x: np.where(x > 0, x, 0.5 * (np.exp(x) - 1)),
        lambda x: np.where(x > 0, 1, 0.5 * np.exp(x)),
    ),
    "elu, rising on both sides": (
        "type: 'ELU' elu_param { alpha: -0.5 }",
        lambda x: np.where(x > 0, x, -0.5 * (np.exp(x) - 1)),
        lambda x: np.where(x > 0, 1, -0.5 * np.exp(x)),
    ),
    "exp": ("type: 'Exp'", np.exp, np.exp),
    "exp of base 2": (
        "type: 'Exp' exp_param { base: 2 scale: 0.5 shift: 3 }",
        lambda x: 2 ** (0.5 * x + 3),
        lambda x: 2 ** (0.5 * x + 3) * 0.5 * np.log(2),
    ),
    "gelu": (
        "type: 'GELU'",
        lambda x: x * normal_share(x),
        lambda x: normal_share(x) + x * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi),
    ),
    "gelu by tanh": (
        "type: 'GELU' gelu_param { approximate: true }",
        lambda x: x * sigmoid(2 * gelu_bend(x)),
        lambda x: sigmoid(2 * gelu_bend(x)) * (1 + 2 * x * sigmoid(-2 * gelu_bend(x)) * gelu_bend_slope(x)),
    ),
    "log": (
        "type: 'Log' log_param { scale: -2 shift: 32 }",
        lambda x: np.log(32 - 2 * x),
        lambda x: -2 / (32 - 2 * x),
    ),
    "log of base 10": (
        "type: 'Log' log_param { base: 10 shift: 16 }",
        lambda x: np.log10(x + 16),
        lambda x: 1 / (x + 16) / np.log(10),
    ),
    "square": (
        "type: 'Power' power_param { power: 2 scale: 3 shift: 1 }",
        lambda x: (3 * x + 1) ** 2,
        lambda x: 6 * (3 * x + 1),
    ),
    "reciprocal": (
        "type: 'Power' power_param { power: -1 shift: 16 }",
        lambda x: 1 / (x + 16),
        lambda x: -1 / (x + 16) ** 2,
    ),
    "line": ("type: 'Power' power_param { scale: 3 shift: 1 }", lambda x: 3 * x + 1, lambda x: 3 + 0 * x),
    "silu": ("type: 'SiLU'", lambda x: x * sigmoid(x), lambda x: sigmoid(x) * (1 + x * sigmoid(-x))),
    "swish": (
        "type: 'Swish' swish_param { beta: 1.5 }",
        lambda x: x * sigmoid(1.5 * x),
        lambda x: sigmoid(1.5 * x) * (1 + 1.5 * x * sigmoid(-1.5 * x)),
    ),
}


@pytest.mark.parametrize("name", NEURONS)
def test_values_and_gradient(name: str) -> None:
    text, y, slope = NEURONS[name]
    single = SingleLayer(text, [x])
    dy = rng.normal(size=x.shape)
    (top,) = single.forward()
    backward(single, [dy], [True])
    assert_close(top, y(x), 1e-12)
    assert_close(single.bottom_diffs()[0], dy * slope(x), 1e-12)


@pytest.mark.parametrize("name", ["abs", "clip", "gelu", "gelu by tanh", "log", "silu", "square", "swish"])
def test_in_place_gradient_of_what_cannot_be_seen_from_the_output(name: str) -> None:
    text, y, slope = NEURONS[name]
    single = SingleLayer(text, [x], in_place=True)
    (top,) = single.forward()
    assert_close(top, y(x), 1e-12)
    dy = rng.normal(size=x.shape)
    assert_close(backward(single, [dy], [True])[0], dy * slope(x), 1e-12)


@pytest.mark.parametrize(
    "text", ["type: 'GELU'", "type: 'GELU' gelu_param { approximate: true }", "type: 'SiLU'", "type: 'Swish'"]
)
def test_activations_that_keep_their_slope_run_in_nets_without_gradient(text: str) -> None:
    layers = f"""
        layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ dim: [2, 3, 4] }} }} }}
        layer {{ name: "f" bottom: "x" top: "y" {text} }}
    """
    net = make_net(layers, recaffe.TEST, np.float64)
    with_gradient = make_net("force_backward: true" + layers, recaffe.TRAIN, np.float64)
    assert (net.forward(x=x)["y"] == with_gradient.forward(x=x)["y"]).all()


@pytest.mark.parametrize("power", [0, 1, 2])
def test_power_of_zero(power: float) -> None:
    single = SingleLayer(f"type: 'Power' power_param {{ power: {power} }}", [np.zeros(3)])
    assert single.forward()[0].tolist() == [0**power] * 3
    assert backward(single, [np.ones(3)], [True])[0].tolist() == [float(power == 1)] * 3


@pytest.mark.parametrize("shared", [False, True])
def test_prelu(shared: bool) -> None:
    text = f"type: 'PReLU' prelu_param {{ channel_shared: {str(shared).lower()} }}"
    a = np.array(0.3) if shared else np.array([0.3, -0.5, 2.0])
    single = SingleLayer(text, [x], parameters=[a])
    slope = np.where(x > 0, 1, a if shared else a[:, None])
    assert_close(single.forward()[0], x * slope, 1e-12)
    dy = rng.normal(size=x.shape)
    (dx,) = backward(single, [dy], [True])
    assert_close(dx, dy * slope, 1e-12)
    below = np.where(x > 0, 0, dy * x)
    assert_close(single.parameter_diffs()[0], below.sum(axis=None if shared else (0, 2)), 1e-12)


def test_prelu_starts_at_a_quarter() -> None:
    net = make_net("""
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: [2, 3] } } }
        layer { name: "p" type: "PReLU" bottom: "x" top: "y" }
    """)
    assert net.params["p"][0].data.tolist() == [0.25] * 3


def test_threshold() -> None:
    single = SingleLayer("type: 'Threshold' threshold_param { threshold: 0.5 }", [np.array([0.4, 0.5, 0.6])])
    assert single.forward()[0].tolist() == [0, 0, 1]
    with pytest.raises(recaffe.RecaffeError, match="a step has no gradient"):
        backward(single, [np.ones(3)], [True])


def test_bnll_of_large_numbers() -> None:
    single = SingleLayer("type: 'BNLL'", [np.array([-800.0, 800.0])])
    assert single.forward()[0].tolist() == [0, 800]
    assert backward(single, [np.ones(2)], [True])[0].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("type: 'Clip' clip_param { min: 0 }", 'needs the field "max"'),
        ("type: 'Clip' clip_param { min: 2 max: 1 }", "min 2 is above max 1"),
        ("type: 'Exp' exp_param { base: 0 }", "base is 0, expected above 0, or -1 for e"),
        ("type: 'Log' log_param { base: 1 }", "base is 1"),
        ("type: 'PReLU'", "expected channels on axis 1"),
    ],
)
def test_options_out_of_range_are_told(text: str, message: str) -> None:
    with pytest.raises(recaffe.RecaffeError, match=message):
        SingleLayer(text, [np.zeros(3)])


def test_relu_keeps_nan() -> None:
    (top,) = SingleLayer("type: 'ReLU'", [np.array([np.nan, -1.0, 2.0])]).forward()
    assert np.isnan(top[0])
    assert top[1:].tolist() == [0, 2]


def test_relu_with_a_falling_slope_is_refused_in_place() -> None:
    with pytest.raises(recaffe.RecaffeError, match=r"negative_slope is -0.5: below 0 it cannot work in place"):
        SingleLayer("type: 'ReLU' relu_param { negative_slope: -0.5 }", [x], in_place=True)


def test_sigmoid_of_large_numbers() -> None:
    (top,) = SingleLayer("type: 'Sigmoid'", [np.array([-1e4, -40.0, 40.0, 1e4])]).forward()
    assert_close(top, [0, 0, 1, 1], 1e-15)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis: int) -> None:
    single = SingleLayer(f"type: 'Softmax' softmax_param {{ axis: {axis} }}", [x])
    (y,) = single.forward()
    expected = softmax(x, axis)
    assert_close(y, expected, 1e-12)
    dy = rng.normal(size=x.shape)
    backward(single, [dy], [True])
    expected_dx = expected * (dy - (dy * expected).sum(axis=axis, keepdims=True))
    assert_close(single.bottom_diffs()[0], expected_dx, 1e-12)


def test_softmax_of_large_numbers() -> None:
    (y,) = SingleLayer("type: 'Softmax'", [np.array([[1000.0, 999.0, -1000.0]])]).forward()
    assert_close(y, softmax(np.array([[1.0, 0.0, -1999.0]]), 1), 1e-12)


def test_softmax_of_minus_infinity_is_zero() -> None:
    scores = np.array([[0.0, -np.inf, 1.0, -200.0, -np.inf]])
    (y,) = SingleLayer("type: 'Softmax'", [scores], dtype=np.float32).forward()
    assert y[0, [1, 3, 4]].tolist() == [0, 0, 0]
    assert_close(y[0, [0, 2]], softmax(np.array([[0.0, 1.0]]), 1)[0], 1e-6)


def test_softmax_in_float32_keeps_its_digits_over_the_whole_range() -> None:
    scores = np.linspace(-85, 0, 20_001, dtype=np.float32)[None]
    (y,) = SingleLayer("type: 'Softmax'", [scores], dtype=np.float32).forward()
    np.testing.assert_allclose(y, softmax(scores, 1), rtol=2e-6, atol=0)


@pytest.mark.parametrize("name", ["gelu", "gelu by tanh", "silu"])
def test_densely_in_float32(name: str) -> None:
    text, y, slope = NEURONS[name]
    dense = np.linspace(-15, 15, 30_001, dtype=np.float32)
    single = SingleLayer(text, [dense], dtype=np.float32)
    exactly = dense.astype(np.float64)
    np.testing.assert_allclose(single.forward()[0], y(exactly), rtol=1e-6, atol=1e-6)
    (dx,) = backward(single, [np.ones(dense.shape)], [True])
    np.testing.assert_allclose(dx, slope(exactly), rtol=0, atol=1e-6)


@pytest.mark.parametrize("ratio", [0.2, 0.5, 0.9])
def test_dropout_drops_its_share_and_keeps_the_mean(ratio: float) -> None:
    ones = np.ones((100, 200))
    single = SingleLayer(f"type: 'Dropout' dropout_param {{ dropout_ratio: {ratio} }}", [ones])
    (y,) = single.forward()
    kept = y != 0
    assert_close(y[kept], np.full(kept.sum(), 1 / (1 - ratio)), 1e-6)
    assert (~kept).mean() == pytest.approx(ratio, abs=0.01)
    dy = rng.normal(size=ones.shape)
    backward(single, [dy], [True])
    assert_close(single.bottom_diffs()[0], dy * y, 1e-12)


def test_dropout_draws_anew_in_each_pass() -> None:
    single = SingleLayer("type: 'Dropout'", [np.ones((10, 20))])
    first, second = single.run(), single.run()
    assert (first[0] != second[0]).any()


def test_dropout_passes_all_in_test() -> None:
    net = make_net(
        """
        force_backward: true
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
        layer { name: "d" type: "Dropout" bottom: "x" top: "y" }
        """,
        recaffe.TEST,
    )
    values, dy = rng.normal(size=(2, 3)).astype(np.float32), rng.normal(size=(2, 3)).astype(np.float32)
    assert (net.forward(x=values)["y"] == values).all()
    assert (net.backward(y=dy)["x"] == dy).all()


@pytest.mark.parametrize("ratio", [-0.1, 1, 1.5])
def test_dropout_ratio_out_of_range_is_told(ratio: float) -> None:
    with pytest.raises(recaffe.RecaffeError, match=f"dropout_ratio is {ratio:g}, expected 0 or more and less than 1"):
        SingleLayer(f"type: 'Dropout' dropout_param {{ dropout_ratio: {ratio} }}", [x])


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("type: 'ReLU' relu_param { relu6: true }", "relu6"),
        ("type: 'Dropout' dropout_param { scale_train: false }", "scale_train"),
        ("type: 'Softmax' softmax_param { hard_ratio: 0.5 }", "hard_ratio"),
    ],
)
def test_options_of_forks_are_refused(text: str, option: str) -> None:
    with pytest.raises(recaffe.RecaffeError, match=option):
        SingleLayer(text, [x])
