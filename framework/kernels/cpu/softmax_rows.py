"""Softmax along the rows of arrays (M, C).

The loops over a row take the whole array and the row's number: a row cut out would cost more than a short row's sum.
"""

import numpy as np
from numba import types
from numba.extending import overload

from .exp import exp
from .rows import compiled, summing

BITS = {4: np.int32, 8: np.int64}  # whole numbers as wide as a float


def softmax_rows(x, y):
    """y = softmax(x) over axis 1; y may be x."""
    _softmax_rows(x, x.view(BITS[x.dtype.itemsize]), y)


@compiled
def _softmax_rows(x, bits, y):
    powers = np.empty(x.shape[1], x.dtype)
    for m in range(len(x)):
        total = exp_row(x, m, largest(bits, m), powers)
        scale_row(x.dtype.type(1) / total, powers, m, y)


def largest(bits, m):
    """The largest of the floats in row m with these bits, found in vectors; NaN is larger than all numbers.

    As whole numbers, the bits of floats are in the floats' order once those of negative ones are turned round.
    """
    raise NotImplementedError("for compiled loops only")


@overload(largest)
def _largest(bits, m):
    whole, number, sign = (np.int32, np.float32, 31) if bits.dtype == types.int32 else (np.int64, np.float64, 63)
    shift, most, least = whole(sign), whole(2**sign - 1), whole(-(2**sign))

    def find(bits, m):
        top = least
        for c in range(bits.shape[1]):
            b = bits[m, c]
            top = max(top, b ^ ((b >> shift) & most))
        return whole(top ^ ((top >> shift) & most)).view(number)

    return find


@summing
def exp_row(x, m, top, powers):
    """powers = exp(x[m] - top); gives their sum."""
    total = x.dtype.type(0)
    for c in range(len(powers)):
        power = exp(x[m, c] - top)
        powers[c] = power
        total += power
    return total


@compiled
def scale_row(factor, powers, m, y):
    for c in range(len(powers)):
        y[m, c] = factor * powers[c]


@compiled
def softmax_row_slopes(y, dy, dx):
    slopes = np.empty(y.shape[1], y.dtype)  # dx may be dy
    for m in range(len(y)):
        multiply_differences(y, m, slopes, dot_row(y, dy, m, slopes), dx)


@summing
def dot_row(y, dy, m, slopes):
    """slopes = dy[m]; gives their sum times y[m]."""
    total = y.dtype.type(0)
    for c in range(len(slopes)):
        slopes[c] = dy[m, c]
        total += y[m, c] * dy[m, c]
    return total


@compiled
def multiply_differences(y, m, slopes, total, dx):
    for c in range(len(slopes)):
        dx[m, c] = y[m, c] * (slopes[c] - total)


@compiled
def loss_row_slopes(p, labels, dx, scale, rest, most):
    none = p.dtype.type(0)
    for m in range(len(p)):
        if labels[m] < 0:
            shift_row(none, p, m, none, dx)  # NaN stays NaN
        else:
            shift_row(scale, p, m, rest, dx)
            dx[m, labels[m]] -= most


@compiled
def shift_row(scale, p, m, rest, dx):
    for c in range(p.shape[1]):
        dx[m, c] = scale * p[m, c] - rest
