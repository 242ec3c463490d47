"""LayerNorm and RMSNorm against their formulas, and what they refuse."""

import numpy as np
import pytest
import recaffe
from recaffe.framework.backend import CpuBackend
from recaffe.framework.layer_case import PlainCpuBackend
from recaffe.framework.single_layer import SingleLayer

from tests.reference.normalization import layer_norm, rms_norm
from tests.support import assert_close, backward, make_net

rng = np.random.default_rng(8)

BACKENDS = [PlainCpuBackend, CpuBackend]
AXES = {"": (5,), "axis: -1": (5,), "axis: 1": (3, 5), "axis: 0": (4, 3, 5)}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("axis", AXES)
def test_layer_norm(axis, in_place, backend):
    x, dy = 3 + rng.normal(size=(4, 3, 5)), rng.normal(size=(4, 3, 5))
    gamma, beta = rng.normal(size=AXES[axis]), rng.normal(size=AXES[axis])
    text = f"type: 'LayerNorm' layer_norm_param {{ eps: 0.25 {axis} }}"
    single = SingleLayer(text, [x], parameters=[gamma, beta], in_place=in_place, backend=backend())
    y, dx, dgamma, dbeta = layer_norm(x, gamma, beta, 0.25, dy)
    assert_close(single.forward()[0], y, 1e-12)
    assert_close(backward(single, [dy], [True])[0], dx, 1e-12)
    assert_close(single.parameter_diffs()[0], dgamma, 1e-12)
    assert_close(single.parameter_diffs()[1], dbeta, 1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("axis", AXES)
def test_rms_norm(axis, in_place, backend):
    x, dy, gamma = 3 + rng.normal(size=(4, 3, 5)), rng.normal(size=(4, 3, 5)), rng.normal(size=AXES[axis])
    text = f"type: 'RMSNorm' layer_norm_param {{ eps: 0.25 {axis} }}"
    single = SingleLayer(text, [x], parameters=[gamma], in_place=in_place, backend=backend())
    y, dx, dgamma = rms_norm(x, gamma, 0.25, dy)
    assert_close(single.forward()[0], y, 1e-12)
    assert_close(backward(single, [dy], [True])[0], dx, 1e-12)
    assert_close(single.parameter_diffs()[0], dgamma, 1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_learnt_values(backend):
    x, dy, ones, zeros = rng.normal(size=(6, 5)), rng.normal(size=(6, 5)), np.ones(5), np.zeros(5)
    text = "type: '%s' layer_norm_param { affine: false }"
    single = SingleLayer(text % "LayerNorm", [x], backend=backend())
    assert single.parameters() == []
    y, dx, *_ = layer_norm(x, ones, zeros, 1e-5, dy)
    assert_close(single.forward()[0], y, 1e-10)
    assert_close(backward(single, [dy], [True])[0], dx, 1e-10)
    single = SingleLayer(text % "RMSNorm", [x], backend=backend())
    assert single.parameters() == []
    y, dx, _ = rms_norm(x, ones, 1e-5, dy)
    assert_close(single.forward()[0], y, 1e-10)
    assert_close(backward(single, [dy], [True])[0], dx, 1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
def test_mean_far_from_zero_keeps_its_digits(backend):
    """The variance is taken about the mean: in float32, x^2 - mean^2 would leave nothing of it."""
    x = (1000 + rng.normal(size=(8, 512))).astype(np.float32)
    single = SingleLayer(
        "type: 'LayerNorm' layer_norm_param { affine: false }", [x], dtype=np.float32, backend=backend()
    )
    y, *_ = layer_norm(x.astype(np.float64), np.ones(512), np.zeros(512), 1e-5, x)
    assert_close(single.forward()[0], y, 1e-4)


def test_rows_that_are_constant_give_beta_and_finite_gradients():
    single = SingleLayer("type: 'LayerNorm'", [np.full((2, 4), 7.0)], parameters=[np.ones(4), np.arange(4.0)])
    assert single.forward()[0].tolist() == [[0, 1, 2, 3]] * 2
    assert np.isfinite(backward(single, [rng.normal(size=(2, 4))], [True])[0]).all()


def test_first_values_and_frozen_parameters():
    net = make_net(
        """
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: [2, 3] } } }
        layer { name: "t" type: "Input" top: "t" input_param { shape { dim: [2, 3] } } }
        layer { name: "norm" type: "LayerNorm" bottom: "x" top: "y" param { lr_mult: 0 } param { lr_mult: 1 } }
        layer { name: "rms" type: "RMSNorm" bottom: "y" top: "z" }
        layer { name: "loss" type: "EuclideanLoss" bottom: "z" bottom: "t" top: "loss" }
        """,
        dtype=np.float64,
    )
    gamma, beta = net.params["norm"]
    assert [blob.data.tolist() for blob in (gamma, beta, *net.params["rms"])] == [[1] * 3, [0] * 3, [1] * 3]
    x = rng.normal(size=(2, 3))
    net.forward(x=x, t=rng.normal(size=(2, 3)))
    net.clear_param_diffs()
    net.backward()
    assert (gamma.diff == 0).all()
    assert_close(beta.diff, net.blobs["y"].diff.sum(axis=0), 1e-12)


@pytest.mark.parametrize("type_name", ["LayerNorm", "RMSNorm"])
def test_refuse(type_name):
    text = f"type: '{type_name}' layer_norm_param {{ %s }}"
    with pytest.raises(recaffe.RecaffeError, match=r"eps is -1, expected 0 or more"):
        SingleLayer(text % "eps: -1", [np.zeros((2, 3))])
    with pytest.raises(recaffe.RecaffeError, match=r"has shape \(2, 3\): axis 2 is out of range"):
        SingleLayer(text % "axis: 2", [np.zeros((2, 3))])
    single = SingleLayer(text % "axis: 1", [np.zeros((2, 3, 4))])
    single.set_bottoms([np.zeros((2, 4, 3))])
    with pytest.raises(recaffe.RecaffeError, match=r"has shape \(2, 4, 3\), expected \(3, 4\) as its last sizes"):
        single.forward()
