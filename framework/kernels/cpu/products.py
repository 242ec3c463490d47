"""Matrix products, split over threads that each run BLAS with one thread, or the tiles of gemm.py."""

import numpy as np

from ... import threads
from .gemm import multiply_large, suits_tiles

STEP = 16  # parts of a product start at multiples of so many rows or columns
NARROW = 128  # up to so many rows, a product with a transposed right side runs faster as its own transpose


def matmul(backend, a, b, out):
    """out = a @ b; 2-D, or batched as in NumPy; transposed views are fine."""
    cost = 0.02 * out.size * a.shape[-1]
    if out.ndim > 2:
        _multiply_batch(backend, a, b, out, cost)
        return
    multiply = _way(a, b, out)
    if cost < threads.WORTH_SPLITTING:
        multiply(backend, a, b, out)
    elif out.shape[1] >= out.shape[0]:

        def by_columns(start, stop):
            part = slice(start * STEP, stop * STEP)
            multiply(backend, a, b[:, part], out[:, part])

        backend.parallel(by_columns, -(-out.shape[1] // STEP), cost)
    else:

        def by_rows(start, stop):
            part = slice(start * STEP, stop * STEP)
            multiply(backend, a[part], b, out[part])

        backend.parallel(by_rows, -(-len(out) // STEP), cost)


def _multiply_batch(backend, a, b, out, cost):
    def by_batch(start, stop):
        parts = (m[start:stop] if m.ndim == out.ndim and len(m) == len(out) else m for m in (a, b))
        np.matmul(*parts, out=out[start:stop])

    backend.parallel(by_batch, len(out), cost)


def _way(a, b, out):
    if suits_tiles(a, b, out):
        return multiply_large
    narrow = 1 < len(out) <= min(NARROW, out.shape[1])
    return _multiply_turned if narrow and _is_transposed(b) and not _is_transposed(a) else _multiply


def _multiply(backend, a, b, out):
    np.matmul(a, b, out=out)


def _multiply_turned(backend, a, b, out):
    product = backend.scratch("matmul.product", out.shape[::-1], out.dtype)
    np.matmul(b.T, a.T, out=product)
    np.copyto(out, product.T)


def _is_transposed(matrix):
    return matrix.strides[0] < matrix.strides[1]
