"""Matrix products, split over threads that each run BLAS with one thread, or the tiles of gemm.py."""

import numpy as np

from ... import threads
from .few_rows import row_combinations, row_dots
from .gemm import STEP, multiply_large, suits_tiles

NS_PER_PRODUCT, NS_PER_WEIGHT = 0.02, 0.05  # of the right side, which must be read for the narrowest product as well
FEW_ROWS = 4  # up to so many, a BLAS is slower than to read the right side's columns once
LARGE = 1 << 20  # numbers of a right side with dense rows that is read faster by two threads than by a BLAS in one
NARROW = 128  # up to so many rows, a product with a transposed right side runs faster as its own transpose


def matmul(backend, a, b, out):
    """out = a @ b; 2-D, or batched as in NumPy; transposed views are fine."""
    if out.ndim > 2:
        _multiply_batch(backend, a, b, out)
    else:
        affine(backend, a, b, None, out)


def affine(backend, a, b, row, out):
    """out = a @ b + row, 2-D; each thread takes some columns of a wide out, some rows of a tall one."""
    cost = NS_PER_PRODUCT * out.size * a.shape[1] + NS_PER_WEIGHT * b.size
    if suits_few_rows(a, b, out):
        kernel, W = (row_dots, b.T) if _is_transposed(b) else (row_combinations, b)
        backend.share(kernel, out.shape[1], cost, a, W, out[0] if row is None else row, row is not None, out)
        return
    if suits_tiles(a, b, out):
        multiply_large(backend, a, b, row, out, cost)
        return
    multiply = _way(a, b, out)
    if cost < threads.WORTH_SPLITTING:
        multiply(backend, a, b, row, out)
    elif out.shape[1] >= out.shape[0]:

        def by_columns(start, stop):
            part = slice(start * STEP, stop * STEP)
            multiply(backend, a, b[:, part], None if row is None else row[part], out[:, part])

        backend.parallel(by_columns, -(-out.shape[1] // STEP), cost)
    else:

        def by_rows(start, stop):
            part = slice(start * STEP, stop * STEP)
            multiply(backend, a[part], b, row, out[part])

        backend.parallel(by_rows, -(-len(out) // STEP), cost)


def suits_few_rows(a, b, out):
    """Whether the kernels of few_rows.py can compute out = a @ b, 2-D, and do so faster than a BLAS, as measured."""
    rows = len(a)
    return (
        0 < rows <= FEW_ROWS
        and (_is_transposed(b) or (rows == 1 and b.size >= LARGE))
        and out.dtype in (np.float32, np.float64)
        and a.dtype == b.dtype == out.dtype
        and a.strides[1] == out.strides[1] == min(b.strides) == out.itemsize
        and (a.strides[0] | out.strides[0] | max(b.strides)) % out.itemsize == 0
    )


def _multiply_batch(backend, a, b, out):
    def by_batch(start, stop):
        parts = (m[start:stop] if m.ndim == out.ndim and len(m) == len(out) else m for m in (a, b))
        np.matmul(*parts, out=out[start:stop])

    backend.parallel(by_batch, len(out), NS_PER_PRODUCT * out.size * a.shape[-1])


def _way(a, b, out):
    narrow = 1 < len(out) <= min(NARROW, out.shape[1])
    return _multiply_turned if narrow and _is_transposed(b) and not _is_transposed(a) else _multiply


def _multiply(backend, a, b, row, out):
    np.matmul(a, b, out=out)
    if row is not None:
        out += row


def _multiply_turned(backend, a, b, row, out):
    product = backend.scratch("matmul.product", out.shape[::-1], out.dtype)
    np.matmul(b.T, a.T, out=product)
    if row is None:
        np.copyto(out, product.T)
    else:
        np.add(product.T, row, out=out)


def _is_transposed(matrix):
    return matrix.strides[0] < matrix.strides[1]
