"""Large matrix products on register tiles, against NumPy in float64: remainders of sizes, transposed and cut views."""

import itertools

import numpy as np
import pytest
from recaffe.framework.backend import CpuBackend

pytest.importorskip("numba")
gemm = pytest.importorskip("recaffe.framework.kernels.cpu.gemm")
BACKEND = CpuBackend(threads=2)
COST = 1e9  # such that it is split
ROWS = (1, 5, 6, 7, 16, 40, 47, 48, 49, 97)
DEPTHS = (1, 15, 16, 17, 40, 63, 64, 65, 129, 513, 1030)
COLUMNS = (1, 15, 16, 17, 31, 40, 63, 64, 65, 127, 128, 129, 1100)


def random(rng, dtype, rows, columns, turned=False):
    """A rows x columns matrix; ``turned``, a transposed view of one."""
    return rng.standard_normal((columns, rows), dtype).T if turned else rng.standard_normal((rows, columns), dtype)


def assert_product(out, a, b, row=None):
    expected = a.astype(np.float64) @ b.astype(np.float64) + (0 if row is None else row)
    np.testing.assert_allclose(out, expected, rtol=0, atol=(20 + 4 * a.shape[1]) * np.finfo(out.dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
def test_products_of_all_remainders(dtype, turned):
    rng = np.random.default_rng(0)
    for M, K, N in itertools.product(ROWS, DEPTHS, COLUMNS):
        a, b = random(rng, dtype, M, K, turned[0]), random(rng, dtype, K, N, turned[1])
        out = np.full((M, N), np.nan, dtype)
        row = random(rng, dtype, 1, N)[0] if N % 3 else None
        gemm.multiply_large(BACKEND, a, b, row, out, COST)
        assert_product(out, a, b, row)


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
def test_cut_views_and_nothing_beside_out(turned):
    rng = np.random.default_rng(0)
    for M, K, N in itertools.product((7, 50, 130), (33, 530), (40, 65, 130)):
        a, b = random(rng, np.float32, M + 2, K + 3, turned[0]), random(rng, np.float32, K + 5, N + 4, turned[1])
        wide = np.full((M + 2, N + 21), 7, np.float32)
        out = wide[1:-1, 1 : N + 1]
        gemm.multiply_large(BACKEND, a[1:-1, 2:-1], b[3:-2, 1:-3], None, out, COST)
        assert_product(out, a[1:-1, 2:-1], b[3:-2, 1:-3])
        out[...] = 7
        assert (wide == 7).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_go_where_numpy_lets_them(value):
    rng = np.random.default_rng(0)
    a, b, out = random(rng, np.float32, 50, 70), random(rng, np.float32, 70, 90), np.empty((50, 90), np.float32)
    a[49, 3] = b[69, 89] = value
    gemm.multiply_large(BACKEND, a, b, None, out, COST)
    with np.errstate(invalid="ignore"):
        expected = a @ b
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(out[~finite], expected[~finite])
    np.testing.assert_allclose(out[finite], expected[finite], rtol=0, atol=1e-4)


def test_which_products_suit_tiles():
    a, b, out = (np.zeros(shape, np.float32) for shape in ((128, 64), (64, 256), (128, 256)))
    suits = gemm.suits_tiles(a, b, out)
    assert suits == (gemm.VECTOR_BYTES == 64)
    assert gemm.suits_tiles(a, np.zeros((256, 64), np.float32).T, out) == suits
    assert not gemm.suits_tiles(a[:64], b, out[:64])
    assert not gemm.suits_tiles(a, b[:, :65], out[:, :65])
    assert gemm.suits_tiles(np.zeros((64, 128), np.float32).T, b, out) == suits
    assert not gemm.suits_tiles(a[:, ::2], b[::2], out)
    assert not gemm.suits_tiles(a, b.astype(np.float64), out)
    assert not gemm.suits_tiles(*(m.astype(np.float16) for m in (a, b, out)))
