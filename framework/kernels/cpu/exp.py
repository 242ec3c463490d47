"""exp as loops can vectorise it: a polynomial in float32, the library's in float64.

exp(x) = 2^n exp(r), with n a whole number and |r| <= ln(2) / 2.  Adding MAGIC to x / ln(2) rounds it to n and leaves
n + 127 in the lowest bits, which moved up are the exponent of 2^n; 0 there, for the least x, is the number 0.
"""

import math

import numpy as np
from numba import types
from numba.extending import overload

_LEAST = np.float32(-88)  # n is -127: exp(x) counts as 0
_ONE_OVER_LN2 = np.float32(1.4426950408889634)
_LN2_UPPER = np.float32(0.693359375)  # ln(2) in two parts: n times the first has no rounding error
_LN2_LOWER = np.float32(-2.12194440e-4)
_MAGIC = np.float32(1.5 * 2**23 + 127)
_MANTISSA_BITS = np.int32(23)
_C2, _C3, _C4, _C5, _C6 = [np.float32(c) for c in (
    0.49999993442231744, 0.16666520474545451, 0.041668389421535716, 0.008368738091393298, 0.0013814576414984676,
)]  # fmt: skip
_ONE = np.float32(1)


def exp(x):
    """exp(x) of a float32 up to 88, or of a float64; NaN stays NaN."""
    raise NotImplementedError("for compiled loops only")


@overload(exp, jit_options={"fastmath": {"contract"}})
def _exp(x):
    if x != types.float32:
        return lambda x: math.exp(x)

    def polynomial(x):
        inside = _LEAST if x < _LEAST else x
        shifted = inside * _ONE_OVER_LN2 + _MAGIC
        n = shifted - _MAGIC
        r = inside - n * _LN2_UPPER - n * _LN2_LOWER
        power = ((((_C6 * r + _C5) * r + _C4) * r + _C3) * r + _C2) * (r * r) + r + _ONE
        scale = np.int32(np.float32(shifted).view(np.int32) << _MANTISSA_BITS).view(np.float32)
        return power * scale

    return polynomial
