"""MVN against its formula."""

import numpy as np
import pytest
from recaffe.framework.single_layer import SingleLayer

from tests.support import assert_close, backward

rng = np.random.default_rng(9)


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("eps", [1e-9, 0.5])
def test_values(across: bool, eps: float) -> None:
    x = rng.normal(3, 2, size=(2, 3, 4, 5))
    text = f"type: 'MVN' mvn_param {{ across_channels: {str(across).lower()} eps: {eps} }}"
    axes = (1, 2, 3) if across else (2, 3)
    expected = (x - x.mean(axis=axes, keepdims=True)) / (x.std(axis=axes, keepdims=True) + eps)
    assert_close(SingleLayer(text, [x]).forward()[0], expected, 1e-7)


def test_mean_alone() -> None:
    x, dy = rng.normal(size=(2, 2, 3, 4))
    single = SingleLayer("type: 'MVN' mvn_param { normalize_variance: false }", [x])
    assert_close(single.forward()[0], x - x.mean(axis=2, keepdims=True), 1e-12)
    assert_close(backward(single, [dy], [True])[0], dy - dy.mean(axis=2, keepdims=True), 1e-12)


def test_equal_values_stay_finite() -> None:
    single = SingleLayer("type: 'MVN' mvn_param { eps: 0.1 }", [np.full((1, 2, 4), 7.0)])
    assert (single.forward()[0] == 0).all()
    dy = rng.normal(size=(1, 2, 4))
    (dx,) = backward(single, [dy], [True])
    assert_close(dx, (dy - dy.mean(axis=2, keepdims=True)) / 0.1, 1e-6)
