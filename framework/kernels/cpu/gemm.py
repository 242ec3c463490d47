"""The product of two large matrices on the register tiles of small_products.py.

A block of b is copied to panels as wide as a tile, which stay in the second-level cache while all rows of a pass by.
The rows of a are read where they lie.
"""

import numpy as np

from .attention_rows import copy_numbers, turn_square
from .jobs import shared
from .rows import compiled
from .small_products import MOST_VECTORS, multiply
from .tiles import VECTOR_BYTES, lanes_of

BLOCK_BYTES = 1 << 20  # of b: half of a core's second-level cache
DEPTH = 512  # rows of a block of b, at most
STEP = 16  # parts of a product begin at multiples of so many rows or columns
ROWS = 48  # of a that meet one panel after the other: whole tiles of 6 or 8
LEAST_ROWS, LEAST_DEPTH = 128, 32  # of an a that pays for copying b
LEAST_RAGGED = 512  # columns of an out that pays for one tile not filled


def suits_tiles(a, b, out):
    """Whether ``multiply_large`` can compute out = a @ b, 2-D, and does so faster than a BLAS, as measured."""
    (rows, depth), columns, lanes = a.shape, out.shape[1], lanes_of(out.dtype)
    return (
        VECTOR_BYTES == 64
        and rows >= LEAST_ROWS
        and depth >= LEAST_DEPTH
        and columns >= (LEAST_RAGGED if columns % lanes else MOST_VECTORS * lanes)
        and out.dtype in (np.float32, np.float64)
        and a.dtype == b.dtype == out.dtype
        and a.strides[1] == out.strides[1] == min(b.strides) == out.itemsize
        and not any(stride % out.itemsize for matrix in (a, b, out) for stride in matrix.strides)
    )


def multiply_large(backend, a, b, row, out, cost):
    """out = a @ b + row; a (M, K), out (M, N) of dense rows, b (K, N) of dense rows or columns, row (N,) or None."""
    lanes, by_columns = lanes_of(out.dtype), out.shape[1] >= out.shape[0]
    count, width = -(-(out.shape[1] if by_columns else out.shape[0]) // STEP), MOST_VECTORS * lanes
    parts = backend.pool.shares(count, cost)
    panels = backend.scratch("gemm.panels", (parts, BLOCK_BYTES // (width * out.itemsize), width), out.dtype)
    edges = backend.scratch("gemm.edges", (parts, ROWS, lanes), out.dtype)
    turned, has_row = b.strides[0] < b.strides[1], row is not None
    backend.share(
        multiply_part, count, cost,
        by_columns, a, b.T if turned else b, turned, row if has_row else out[0], has_row, out, panels, edges,
    )  # fmt: skip


@shared
def multiply_part(part, start, stop, by_columns, a, b, turned, row, has_row, out, panels, edges):
    """``multiply_blocks`` for some of the columns of out, or some of its rows."""
    r0, r1, c0, c1 = 0, out.shape[0], 0, out.shape[1]
    if by_columns:
        c0, c1 = start * STEP, min(stop * STEP, c1)
    else:
        r0, r1 = start * STEP, min(stop * STEP, r1)
    b_rows, b_columns = (slice(c0, c1), slice(0, b.shape[1])) if turned else (slice(0, b.shape[0]), slice(c0, c1))
    multiply_blocks(
        a[r0:r1], b[b_rows, b_columns], turned, row[c0:c1], has_row, out[r0:r1, c0:c1], panels[part], edges[part]
    )


@compiled
def multiply_blocks(a, b, turned, row, has_row, out, panels, edge):
    """out = a b, or a b^T if b is ``turned``, block by block of b, and + row; panels and edge are scratch."""
    (M, N), K, width, lanes = out.shape, a.shape[1], panels.shape[1], edge.shape[1]
    blocks = -(-K // DEPTH)
    columns = len(panels) // -(-K // blocks) * width
    for c0 in range(0, N, columns):
        c1 = min(c0 + columns, N)
        for block in range(blocks):
            k0, k1, first = K * block // blocks, K * (block + 1) // blocks, block == 0
            depth = k1 - k0
            pack(b, turned, k0, k1, c0, c1, panels)
            for r0 in range(0, M, ROWS):
                r1 = min(r0 + ROWS, M)
                left = a[r0:r1, k0:k1]
                for p, column in enumerate(range(c0, c1, width)):
                    panel, count = panels[p * depth : (p + 1) * depth], min(width, c1 - column)
                    whole = count - count % lanes
                    if first and has_row:
                        repeat_row(row[column : column + count], out[r0:r1, column : column + count])
                    add = has_row or not first
                    multiply(left, panel[:, :whole], out[r0:r1, column : column + whole], add)
                    if whole < count:  # a tile writes whole vectors
                        multiply(left, panel[:, whole : whole + lanes], edge, False)
                        put(edge, out[r0:r1, column + whole : column + count], add)


@compiled
def repeat_row(row, out):
    for r in range(len(out)):
        for j in range(len(row)):
            out[r, j] = row[j]


@compiled
def pack(b, turned, k0, k1, c0, c1, panels):
    """Panels of rows k0 to k1 and columns c0 to c1, one below the other; the last is filled up with zeros."""
    lanes, width, step, one = VECTOR_BYTES // b.itemsize, panels.shape[1], b.strides[0] // b.itemsize, b.dtype.type(1)
    depth = k1 - k0
    for p, column in enumerate(range(c0, c1, width)):
        first, count = p * depth, min(width, c1 - column)
        whole = count - count % lanes
        if turned:
            deep = depth - depth % lanes
            for j in range(0, whole, lanes):
                for k in range(0, deep, lanes):
                    turn_square(b, (column + j) * step + k0 + k, step, panels, (first + k) * width + j, width)
            for j in range(count):
                for k in range(deep if j < whole else 0, depth):
                    panels[first + k, j] = b[column + j, k0 + k]
        else:
            for k in range(depth):
                copy_numbers(b, (k0 + k) * step + column, panels, (first + k) * width, count, one)
        if whole < count:
            for k in range(first, first + depth):
                for j in range(count, whole + lanes):
                    panels[k, j] = 0


@compiled
def put(source, target, add):
    """target = the first rows and columns of source, or target += these."""
    for r in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[r, j] = source[r, j] + (target[r, j] if add else 0)
