"""Activations that find their slope dy/dx together with y; arrays of any shape, C-contiguous.

A loop over two arrays that turn out to be the same one does not run in vectors: where y overwrites x, blocks of x are
copied first.
"""

import math

import numpy as np
from numba import types
from numba.extending import overload

from .exp import exp
from .jobs import shared
from .rows import compiled

BLOCK = 1 << 14  # numbers of a block, which stays in the second-level cache
_ROOT_HALF = math.sqrt(0.5)
_DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)
_DENSITY_AT_0_32 = np.float32(_DENSITY_AT_0)
_TWICE_TANH_SCALE = math.sqrt(8 / math.pi)
_CUBE = 0.044715
# P(-x) = exp(-x^2 / 2) (C0 + C1 t + ... + C7 t^7) for x >= 0, with t = 1 / (1 + Q x), to 1e-8 of P(-x) + 0.001
_Q = np.float32(0.3)
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7 = [np.float32(c) for c in (
    -0.00179602228, 0.141300905, 0.00744108289, 0.435028633, -0.484207569, 0.655344758, -0.30042676, 0.0473149675,
)]  # fmt: skip
_ZERO = np.float32(0)
_HALF = np.float32(0.5)
_ONE = np.float32(1)


def gelu_forward(backend, x, y, slope):
    """y = x P(x), with P the normal distribution's; slope = P(x) + x P'(x); y may be x, slope None."""
    _share(backend, gelu_blocks, 0.8, x, y, slope)


def gelu_tanh_forward(backend, x, y, slope):
    """y = x (1 + tanh(u)) / 2 = x sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3); y may be x, slope None."""
    _share(backend, gelu_tanh_blocks, 0.7, x, y, slope)


def swish_forward(backend, x, beta, y, slope):
    """y = x s, s = sigmoid(beta x); slope = s + beta x s (1 - s); y may be x, slope None."""
    _share(backend, swish_blocks, 0.7, x, y, slope, x.dtype.type(beta))


def _share(backend, kernel, cost, x, y, slope, *numbers):
    a, b = x.reshape(-1), y.reshape(-1)
    backend.share(
        kernel, x.size, x.size * cost,
        a, x is y, b, b if slope is None else slope.reshape(-1), slope is not None, *numbers,
    )  # fmt: skip


@shared
def gelu_blocks(part, start, stop, x, in_place, y, slope, has_slope):
    copied, dropped = np.empty(BLOCK, x.dtype), np.empty(BLOCK, x.dtype)
    for i in range(start, stop, BLOCK):
        values, slopes = block(x, in_place, slope, has_slope, i, stop, copied, dropped)
        gelu_loop(values, y[i : i + len(values)], slopes)


@shared
def gelu_tanh_blocks(part, start, stop, x, in_place, y, slope, has_slope):
    copied, dropped = np.empty(BLOCK, x.dtype), np.empty(BLOCK, x.dtype)
    for i in range(start, stop, BLOCK):
        values, slopes = block(x, in_place, slope, has_slope, i, stop, copied, dropped)
        gelu_tanh_loop(values, y[i : i + len(values)], slopes)


@shared
def swish_blocks(part, start, stop, x, in_place, y, slope, has_slope, beta):
    copied, dropped = np.empty(BLOCK, x.dtype), np.empty(BLOCK, x.dtype)
    for i in range(start, stop, BLOCK):
        values, slopes = block(x, in_place, slope, has_slope, i, stop, copied, dropped)
        swish_loop(values, y[i : i + len(values)], slopes, beta)


@compiled
def block(x, in_place, slope, has_slope, i, stop, copied, dropped):
    """The next numbers of x from i on, copied where y will overwrite them, and where to put their slopes."""
    count = min(BLOCK, stop - i)
    values, slopes = copied[:count], dropped[:count]
    if in_place:
        values[:] = x[i : i + count]
    else:
        values = x[i : i + count]
    if has_slope:
        slopes = slope[i : i + count]
    return values, slopes


@compiled
def gelu_loop(x, y, slope):
    for i in range(len(x)):
        y[i], slope[i] = gelu(x[i])


@compiled
def gelu_tanh_loop(x, y, slope):
    one, three = x.dtype.type(1), x.dtype.type(3)
    scale, cube = x.dtype.type(_TWICE_TANH_SCALE), x.dtype.type(_CUBE)
    for i in range(len(x)):
        scaled, bend = scale * x[i], cube * x[i] * x[i]
        share, change = sigmoid_with_slope(scaled * (one + bend), one)
        y[i] = x[i] * share
        slope[i] = share + scaled * (one + three * bend) * change


@compiled
def swish_loop(x, y, slope, beta):
    one = x.dtype.type(1)
    for i in range(len(x)):
        share, change = sigmoid_with_slope(beta * x[i], one)
        y[i] = x[i] * share
        slope[i] = share + beta * x[i] * change


@compiled
def sigmoid_with_slope(x, one):
    """1 / (1 + exp(-x)) and its slope, both to their last digits for large |x| too; one is 1 in x's precision."""
    small = exp(-abs(x))
    large = one / (one + small)
    return large if x > 0 else small * large, small * large * large


def gelu(x):
    """x P(x) and its slope."""
    raise NotImplementedError("for compiled loops only")


@overload(gelu, jit_options={"fastmath": {"contract"}})
def _gelu(x):
    if x != types.float32:
        return lambda x: _gelu_by_erf(x)

    def polynomial(x):
        power = exp(-_HALF * x * x)
        t = _ONE / (_ONE + _Q * abs(x))
        p = ((((((_C7 * t + _C6) * t + _C5) * t + _C4) * t + _C3) * t + _C2) * t + _C1) * t + _C0
        tail = p * power
        share = _ONE - tail if x > _ZERO else tail
        return x * share, share + x * _DENSITY_AT_0_32 * power

    return polynomial


@compiled
def _gelu_by_erf(x):
    share = 0.5 * (1 + math.erf(_ROOT_HALF * x))
    return x * share, share + x * _DENSITY_AT_0 * math.exp(-0.5 * x * x)
