"""Products of a few rows with a matrix: the matrix is read once, and each thread reads a part of its own."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .jobs import shared
from .rows import compiled, summing, unsigned
from .tiles import VECTOR_BYTES, _Code

ROWS = 4  # of the matrix that are read at a time


@shared
def add_row_dots(part, start, stop, a, W, out):
    """out += a W^T for rows start to stop of W (M, K); a (n, K), out (n, M)."""
    add_dots(a, W[start:stop], out[:, start:stop])


@shared
def row_dots(part, start, stop, a, W, row, has_row, out):
    """out = a W^T + row for rows start to stop of W."""
    begin(row, has_row, start, stop, out)
    add_dots(a, W[start:stop], out[:, start:stop])


@shared
def row_combinations(part, start, stop, a, W, row, has_row, out):
    """out = a W + row for columns start to stop of W (K, M)."""
    begin(row, has_row, start, stop, out)
    for n in range(len(a)):
        add_combination(a[n], W, unsigned(start), unsigned(stop), out[n])


@compiled
def begin(row, has_row, start, stop, out):
    for n in range(len(out)):
        if has_row:
            out[n, start:stop] = row[start:stop]
        else:
            out[n, start:stop] = 0


@compiled
def add_dots(a, W, out):
    """out += a W^T; W (M, K) with dense rows, of which four are read at a time."""
    M, K, lanes, step = len(W), W.shape[1], VECTOR_BYTES // W.itemsize, W.strides[0] // W.itemsize
    a_step, a_column = a.strides[0] // a.itemsize, a.strides[1] // a.itemsize
    whole = M - M % ROWS if lanes <= K and a_column == 1 else 0
    sums = np.empty(ROWS, W.dtype)
    for m in range(0, whole, ROWS):
        for n in range(len(a)):
            dots(W, m * step, step, a, n * a_step, K, sums)
            for r in range(ROWS):
                out[n, m + r] += sums[r]
    for m in range(whole, M):
        for n in range(len(a)):
            out[n, m] += dot(a, n, W, m)


@summing
def dot(a, n, W, m):
    """The sum over k of a[n, k] W[m, k]."""
    total = W.dtype.type(0)
    for k in range(W.shape[1]):
        total += a[n, k] * W[m, k]
    return total


@intrinsic
def dots(typing_context, W, place, step, a, first, count, sums):
    """sums[r] = sum over k < count of W[place + r step + k] a[first + k] for ROWS rows, all flat.

    There is a vector of numbers at least.  The rows behind these are fetched meanwhile: a processor's own prefetching
    begins anew on every page.
    """
    signature = types.void(W, types.int64, types.int64, a, types.int64, types.int64, sums)

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature)
        W, place, step, a, first, count, sums = code.open(arguments)
        values = code.place(a, first)
        lines = [code.place(W, builder.add(place, builder.mul(step, code.integer(r)))) for r in range(ROWS)]
        next_lines = [code.place(line, builder.mul(step, code.integer(ROWS))) for line in lines]
        totals = [code.variable() for _ in range(ROWS)]
        with cgutils.for_range(builder, builder.udiv(count, code.integer(code.lanes))) as loop:
            x = code.load_vector(code.vector_place(values, loop.index))
            for line, next_line, total in zip(lines, next_lines, totals, strict=True):
                code.prefetch(code.vector_place(next_line, loop.index), to_write=False)
                code.add_product(total, x, code.load_vector(code.vector_place(line, loop.index)))
        rest = builder.urem(count, code.integer(code.lanes))
        with builder.if_then(builder.icmp_unsigned(">", rest, code.integer(0))):  # the last vector, less what is summed
            last, counted = builder.sub(count, code.integer(code.lanes)), builder.sub(code.integer(code.lanes), rest)
            lanes = ir.Constant(ir.VectorType(ir.IntType(64), code.lanes), list(range(code.lanes)))
            new = builder.icmp_unsigned(">=", lanes, code.broadcast(counted))
            x = builder.select(new, code.load_vector(code.place(values, last)), code.zero)
            for line, total in zip(lines, totals, strict=True):
                code.add_product(total, x, builder.select(new, code.load_vector(code.place(line, last)), code.zero))
        for r, total in enumerate(totals):
            builder.store(code.sum_of_lanes(builder.load(total)), code.place(sums, code.integer(r)))
        return context.get_dummy_value()

    return signature, generate


@compiled
def add_combination(a, W, start, stop, out):
    """out += a W for one row a, from column start to stop; four rows of W are read at a time."""
    whole = len(a) - len(a) % 4
    for k in range(0, whole, 4):
        p, q, r, s = a[k], a[k + 1], a[k + 2], a[k + 3]
        for m in range(start, stop):
            out[m] += (p * W[k, m] + q * W[k + 1, m]) + (r * W[k + 2, m] + s * W[k + 3, m])
    for k in range(whole, len(a)):
        p = a[k]
        for m in range(start, stop):
            out[m] += p * W[k, m]
