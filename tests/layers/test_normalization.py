"""BatchNorm, Scale and Bias against their formulas, and what they refuse."""

import numpy as np
import pytest
import recaffe
from recaffe.framework.backend import CpuBackend
from recaffe.framework.layer_case import PlainCpuBackend
from recaffe.framework.single_layer import SingleLayer

from tests.reference.normalization import batch_norm
from tests.support import assert_close, backward, make_net

rng = np.random.default_rng(6)

BACKENDS = [PlainCpuBackend, CpuBackend]


def random(*shape: int) -> np.ndarray:
    return rng.normal(size=shape)


def refused(message: str, text: str, *bottoms: np.ndarray) -> None:
    """The layer ``text`` must raise RecaffeError with ``message`` in it."""
    with pytest.raises(recaffe.RecaffeError) as error:
        SingleLayer(text, bottoms)
    assert message in str(error.value)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 4, 5), (2, 3, 2, 3, 2)])
def test_batch_norm_in_train(shape, in_place, backend):
    text = "type: 'BatchNorm' batch_norm_param { eps: 0.25 moving_average_fraction: 0.5 }"
    first, second = random(*shape) + 3, 2 * random(*shape)
    single = SingleLayer(text, [first], in_place=in_place, backend=backend())
    y, mean, variance = batch_norm(first, 0.25)
    assert_close(single.forward()[0], y, 1e-12)
    single.set_bottoms([second])
    y, mean_2, variance_2 = batch_norm(second, 0.25)
    assert_close(single.forward()[0], y, 1e-12)
    sums = [0.5 * mean + mean_2, 0.5 * variance + variance_2, np.array([1.5])]
    for got, expected in zip(single.parameters(), sums, strict=True):
        assert_close(got, expected, 1e-12)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("factor", [2.0, 0.0])
def test_batch_norm_with_global_statistics(factor, in_place):
    text = "type: 'BatchNorm' batch_norm_param { eps: 0.25 use_global_stats: true }"
    x, dy, mean, variance = random(4, 3, 2), random(4, 3, 2), random(3, 1), rng.uniform(1, 2, size=(3, 1))
    stored = [mean.ravel(), variance.ravel(), np.array([factor])]
    single = SingleLayer(text, [x], parameters=stored, in_place=in_place)
    inverse = 1 / factor if factor else 0
    std = np.sqrt(variance * inverse + 0.25)
    assert_close(single.forward()[0], (x - mean * inverse) / std, 1e-12)
    backward(single, [dy], [True])
    assert_close(single.bottom_diffs()[0], dy / std, 1e-12)
    for got, expected in zip(single.parameters(), stored, strict=True):
        assert_close(got, expected, 0)


def test_batch_norm_with_mean_far_from_zero_keeps_its_digits():
    """The variance is taken about the mean: in float32, x^2 - mean^2 would leave nothing of it."""
    x = (1000 + random(8, 2, 16, 16)).astype(np.float32)
    single = SingleLayer("type: 'BatchNorm'", [x], dtype=np.float32)
    assert_close(single.forward()[0], batch_norm(x, 1e-5)[0], 1e-4)


def test_batch_norm_takes_stored_statistics_in_test_only():
    text = "type: 'BatchNorm'"
    x = random(4, 3) + 5
    stored = [np.zeros(3), np.ones(3), np.ones(1)]
    (y,) = SingleLayer(text, [x], phase=recaffe.TEST, parameters=stored).forward()
    assert_close(y, x, 1e-5)
    (y,) = SingleLayer(text, [x], phase=recaffe.TRAIN, parameters=stored).forward()
    assert_close(y.mean(axis=0), np.zeros(3), 1e-9)


def test_batch_norm_is_never_learnt():
    net = make_net(
        """
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 3 } } }
        layer { name: "t" type: "Input" top: "t" input_param { shape { dim: 4 dim: 2 } } }
        layer { name: "fc" type: "InnerProduct" bottom: "x" top: "fc" inner_product_param { num_output: 2 } }
        layer { name: "bn" type: "BatchNorm" bottom: "fc" top: "fc" }
        layer { name: "loss" type: "EuclideanLoss" bottom: "fc" bottom: "t" top: "loss" }
        """
    )
    assert list(net.params_lr) == [1, 1, 0, 0, 0]
    assert net.layer_dict["bn"].param_propagate_down == [False] * 3


def test_batch_norm_refuses():
    text = "type: 'BatchNorm' %s"
    refused("param 1 has lr_mult 2, expected 0", text % "param { lr_mult: 0 } param { lr_mult: 2 }", random(4, 3))
    refused("param 0 has lr_mult 1, expected 0", text % "param { name: 'mean' }", random(4, 3))
    refused("is a scalar", text % "", np.array(1.0))
    refused("let a Scale layer follow", text % "batch_norm_param { bias_term: true }", random(4, 3))
    refused("relu is an option of a fork", text % "batch_norm_param { relu: true }", random(4, 3))
    single = SingleLayer(text % "", [random(4, 3)])
    single.set_bottoms([random(4, 2)])
    with pytest.raises(recaffe.RecaffeError, match=r"has shape \(4, 2\), expected 3 channels"):
        single.forward()


# Axes that the learnt values lie along, as an index that stretches them over (2, 3, 4, 5).
LEARNT = {
    "": (None, slice(None), None, None),
    "axis: 0": (slice(None), None, None, None),
    "axis: -1": (None, None, None, slice(None)),
    "axis: 1 num_axes: 2": (None, slice(None), slice(None), None),
    "axis: -2 num_axes: -1": (None, None, slice(None), slice(None)),
    "axis: 0 num_axes: -1": (slice(None),) * 4,
    "num_axes: 0": (None,) * 4,
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("options", LEARNT)
def test_scale_and_bias_along_axes(options, in_place, backend):
    x, dy, stretch = random(2, 3, 4, 5), random(2, 3, 4, 5), LEARNT[options]
    summed = tuple(axis for axis, kept in enumerate(stretch) if kept is None)
    text = f"type: 'Scale' scale_param {{ {options} bias_term: true }}"
    single = SingleLayer(text, [x], in_place=in_place, backend=backend())
    scale, bias = single.parameters()
    assert_close(single.forward()[0], x * scale[stretch] + bias[stretch], 1e-12)
    backward(single, [dy], [True])
    assert_close(single.bottom_diffs()[0], dy * scale[stretch], 1e-12)
    assert_close(single.parameter_diffs()[0], (dy * x).sum(axis=summed), 1e-12)
    assert_close(single.parameter_diffs()[1], dy.sum(axis=summed), 1e-12)

    text = f"type: 'Bias' bias_param {{ {options} }}"
    single = SingleLayer(text, [x], in_place=in_place, backend=backend())
    (bias,) = single.parameters()
    assert_close(single.forward()[0], x + bias[stretch], 1e-12)
    backward(single, [dy], [True])
    assert_close(single.bottom_diffs()[0], dy, 0)
    assert_close(single.parameter_diffs()[0], dy.sum(axis=summed), 1e-12)


@pytest.mark.parametrize("in_place", [False, True])
def test_scale_and_bias_by_a_second_bottom(in_place):
    x, other, dy = random(2, 3, 4), random(3, 4), random(2, 3, 4)
    single = SingleLayer("type: 'Scale' scale_param { bias_term: true }", [x, other], in_place=in_place)
    (bias,) = single.parameters()
    assert_close(single.forward()[0], x * other + bias, 1e-12)
    backward(single, [dy], [True, True])
    assert_close(single.bottom_diffs()[0], dy * other, 1e-12)
    assert_close(single.bottom_diffs()[1], (dy * x).sum(axis=0), 1e-12)
    assert_close(single.parameter_diffs()[0], dy.sum(axis=0), 1e-12)

    single = SingleLayer("type: 'Bias'", [x, other], in_place=in_place)
    assert_close(single.forward()[0], x + other, 1e-12)
    backward(single, [dy], [True, True])
    assert_close(single.bottom_diffs()[0], dy, 0)
    assert_close(single.bottom_diffs()[1], dy.sum(axis=0), 1e-12)


def test_scale_starts_at_one_and_its_bias_at_zero():
    net = make_net(
        """
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
        layer { name: "s" type: "Scale" bottom: "x" top: "y" scale_param { bias_term: true } }
        layer { name: "b" type: "Bias" bottom: "y" top: "z" }
        """
    )
    assert [blob.data.tolist() for blob in net.params["s"]] == [[1, 1, 1], [0, 0, 0]]
    assert net.params["b"][0].data.tolist() == [0, 0, 0]


@pytest.mark.parametrize("type", ["Scale", "Bias"])
def test_scale_and_bias_refuse(type):
    text = f"type: '{type}' {type.lower()}_param {{ %s }}"
    x = random(2, 3, 4)
    refused("axis 3 is out of range", text % "axis: 3", x)
    refused("num_axes is -2, expected -1", text % "num_axes: -2", x)
    refused("num_axes 3 from axis 1 on needs 4 axes", text % "num_axes: 3", x)
    refused("'bottom 1' has shape (4,), expected (3,)", text % "", x, random(4))
    refused("'bottom 1' has shape (4, 2), expected (4,)", text % "axis: 2", x, random(4, 2))
