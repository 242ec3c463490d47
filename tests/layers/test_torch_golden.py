"""Layers against what PyTorch computed, in float64 to 1e-10."""

import numpy as np
import pytest
from recaffe.framework.backend import CpuBackend
from recaffe.framework.layer_case import PlainCpuBackend
from recaffe.framework.single_layer import SingleLayer

from tests.support import GOLDEN, assert_close

# The golden cases give GELU twice its input.
CASES = {
    "layer_norm": ("type: 'LayerNorm'", 1),
    "gelu_exact": ("type: 'GELU'", 2),
    "gelu_tanh": ("type: 'GELU' gelu_param { approximate: true }", 2),
    "silu": ("type: 'SiLU'", 1),
}


def kind(name: str, prefix: str) -> list[np.ndarray]:
    """The arrays of one kind of the golden case ``name``."""
    with np.load(GOLDEN / "torch" / f"{name}.npz") as stored:
        return [stored[key] for key in stored.files if key.startswith(prefix)]


@pytest.mark.parametrize("backend", [PlainCpuBackend, CpuBackend])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_pytorchs(name, in_place, backend):
    text, factor = CASES[name]
    (x,) = kind(name, "in:")
    options = {"parameters": kind(name, "param:"), "in_place": in_place, "backend": backend()}
    single = SingleLayer(text, [factor * x], **options)
    assert_close(single.forward()[0], kind(name, "out:")[0], 1e-10)
    for blob in single.layer.blobs:
        blob.clear_diff()
    single.set_top_diffs(kind(name, "top_diff:"))
    single.backward([True])
    assert_close(factor * single.bottom_diffs()[0], kind(name, "in_diff:")[0], 1e-10)
    for got, expected in zip(single.parameter_diffs(), kind(name, "param_diff:"), strict=True):
        assert_close(got, expected, 1e-10)


@pytest.mark.parametrize("backend", [PlainCpuBackend, CpuBackend])
def test_label_smoothing_is_pytorchs(backend):
    name = "softmax_loss_label_smoothing"
    single = SingleLayer(
        "type: 'SoftmaxWithLoss' loss_param { label_smoothing: 0.1 ignore_label: 2 }",
        kind(name, "in:"),
        backend=backend(),
    )
    single.layer.smoothing = 0.1  # to all digits; prototxts hold float32
    assert_close(single.forward()[0], kind(name, "out:")[0], 1e-10)
    single.set_top_diffs(kind(name, "top_diff:"))
    single.backward([True, False])
    assert_close(single.bottom_diffs()[0], kind(name, "in_diff:")[0], 1e-10)
