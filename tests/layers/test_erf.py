"""The error function against the library's."""

import math

import numpy as np
import pytest
from recaffe.layers.activation.erf import erf


def library(x: np.ndarray) -> np.ndarray:
    return np.array([math.erf(value) for value in x])


def test_dense_values_to_a_few_units_in_the_last_place() -> None:
    x = np.concatenate([np.linspace(-7, 7, 100_001), 0.46875 + 1e-9 * np.arange(-50, 50)])
    expected = library(x)
    np.testing.assert_allclose(erf(np, x), expected, rtol=1e-15, atol=0)


def test_tiny_and_large_values() -> None:
    x = np.concatenate([10.0 ** np.arange(-300, 300), -(10.0 ** np.arange(-300, 300))])
    np.testing.assert_allclose(erf(np, x), library(x), rtol=1e-15, atol=0)


def test_float32_stays_float32() -> None:
    x = np.linspace(-6, 6, 10_001, dtype=np.float32)
    y = erf(np, x)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, library(x), rtol=0, atol=2e-7)


@pytest.mark.parametrize(("x", "y"), [(np.inf, 1.0), (-np.inf, -1.0), (0.0, 0.0), (6.5, 1.0)])
def test_ends(x: float, y: float) -> None:
    assert erf(np, np.array([x]))[0] == y


def test_nan_stays_nan_and_zero_keeps_its_sign() -> None:
    assert np.isnan(erf(np, np.array([np.nan]))[0])
    assert np.signbit(erf(np, np.array([-0.0]))[0])
