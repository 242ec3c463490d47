"""The product of two large matrices on the register tiles of small_products.py.

A block of b is copied to panels as wide as a tile, which stay in the second-level cache while all rows of a pass by.
The rows of a are read where they lie.
"""

import numpy as np

from .attention_rows import copy_numbers, turn_square
from .jobs import shared
from .rows import compiled
from .small_products import MOST_VECTORS, multiply, multiply_onto
from .tables import add_to_rows
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
        and min(a.strides) == out.strides[1] == min(b.strides) == out.itemsize
        and not any(stride % out.itemsize for matrix in (a, b, out) for stride in matrix.strides)
    )


def multiply_large(backend, a, b, row, out, cost):
    """out = a @ b + row; out (M, N) has dense rows, a (M, K) and b (K, N) dense rows or columns; row (N,) or None."""
    lanes, by_columns = lanes_of(out.dtype), out.shape[1] >= out.shape[0]
    count, width = -(-(out.shape[1] if by_columns else out.shape[0]) // STEP), MOST_VECTORS * lanes
    parts = backend.pool.shares(count, cost)
    panels = backend.scratch("gemm.panels", (parts, BLOCK_BYTES // (width * out.itemsize), width), out.dtype)
    strips = backend.scratch("gemm.strips", (parts, ROWS, DEPTH), out.dtype)
    edges = backend.scratch("gemm.edges", (parts, ROWS, lanes), out.dtype)
    a_turned, b_turned, has_row = a.strides[0] < a.strides[1], b.strides[0] < b.strides[1], row is not None
    row = np.ascontiguousarray(row, out.dtype) if has_row else out[0]  # its vectors are read as they lie
    backend.share(
        multiply_part, count, cost,
        by_columns, a.T if a_turned else a, a_turned, b.T if b_turned else b, b_turned,
        row, has_row, out, panels, strips, edges,
    )  # fmt: skip


@shared
def multiply_part(
    part, start, stop, by_columns, a, a_turned, b, b_turned, row, has_row, out, panels, strips, edges
):  # fmt: skip
    """``multiply_blocks`` for some of the columns of out, or some of its rows."""
    r0, r1, c0, c1 = 0, out.shape[0], 0, out.shape[1]
    if by_columns:
        c0, c1 = start * STEP, min(stop * STEP, c1)
    else:
        r0, r1 = start * STEP, min(stop * STEP, r1)
    multiply_blocks(
        rows_of(a, a_turned, r0, r1), a_turned, rows_of(b, not b_turned, c0, c1), b_turned, row[c0:c1], has_row,
        out[r0:r1, c0:c1], panels[part], strips[part], edges[part],
    )  # fmt: skip


@compiled
def rows_of(matrix, turned, first, last):
    """Rows first to last of the matrix, or of what it is the transposed of."""
    return matrix[:, first:last] if turned else matrix[first:last, 0 : matrix.shape[1]]


@compiled
def multiply_blocks(a, a_turned, b, b_turned, row, has_row, out, panels, strip, edge):
    """out = a b + row, block by block of b; a or b may come transposed; panels, strip and edge are scratch."""
    (M, N), K, width, lanes = out.shape, a.shape[0 if a_turned else 1], panels.shape[1], edge.shape[1]
    blocks = -(-K // DEPTH)
    columns = len(panels) // -(-K // blocks) * width
    for c0 in range(0, N, columns):
        c1 = min(c0 + columns, N)
        for block in range(blocks):
            k0, k1, add = K * block // blocks, K * (block + 1) // blocks, block > 0
            depth = k1 - k0
            pack(b, b_turned, k0, k1, c0, c1, panels)
            for r0 in range(0, M, ROWS):
                r1 = min(r0 + ROWS, M)
                if a_turned:
                    turn_block(a, k0, k1, r0, r1, strip)
                    left = strip[: r1 - r0, :depth]
                else:
                    left = a[r0:r1, k0:k1]
                for p, column in enumerate(range(c0, c1, width)):
                    panel, count = panels[p * depth : (p + 1) * depth], min(width, c1 - column)
                    whole = count - count % lanes
                    if has_row and not add:
                        multiply_onto(left, panel[:, :whole], row[column:], True, out[r0:r1, column : column + whole])
                    else:
                        multiply(left, panel[:, :whole], out[r0:r1, column : column + whole], add)
                    if whole < count:  # a tile writes whole vectors
                        multiply(left, panel[:, whole : whole + lanes], edge, False)
                        put(edge, out[r0:r1, column + whole : column + count], add)
                        if has_row and not add:
                            add_to_rows(row[column + whole : column + count], out[r0:r1, column + whole :])


@compiled
def pack(b, turned, k0, k1, c0, c1, panels):
    """Panels of rows k0 to k1 and columns c0 to c1, one below the other; the last is filled up with zeros."""
    lanes, width, step, one = VECTOR_BYTES // b.itemsize, panels.shape[1], b.strides[0] // b.itemsize, b.dtype.type(1)
    depth = k1 - k0
    for p, column in enumerate(range(c0, c1, width)):
        first, count = p * depth, min(width, c1 - column)
        whole = count - count % lanes
        if turned:
            turn_block(b, column, column + count, k0, k1, panels[first : first + depth])
        else:
            for k in range(depth):
                copy_numbers(b, (k0 + k) * step + column, panels, (first + k) * width, count, one)
        if whole < count:
            for k in range(first, first + depth):
                for j in range(count, whole + lanes):
                    panels[k, j] = 0


@compiled
def turn_block(source, r0, r1, c0, c1, target):
    """The first rows and columns of target = source[r0:r1, c0:c1]^T, in squares as far as possible."""
    lanes, step, width = VECTOR_BYTES // source.itemsize, source.strides[0] // source.itemsize, target.shape[1]
    rows, columns = r1 - r0, c1 - c0
    whole_rows, whole_columns = rows - rows % lanes, columns - columns % lanes
    for r in range(0, whole_rows, lanes):
        for c in range(0, whole_columns, lanes):
            turn_square(source, (r0 + r) * step + c0 + c, step, target, c * width + r, width)
    for r in range(rows):
        for c in range(whole_columns if r < whole_rows else 0, columns):
            target[c, r] = source[r0 + r, c0 + c]


@compiled
def put(source, target, add):
    """target = the first rows and columns of source, or target += these."""
    for r in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[r, j] = source[r, j] + (target[r, j] if add else 0)
