"""Copying and adding short rows: the inner loops of the other kernels.

The rows of images are short (7 to 224 numbers), where a general vector loop spends its time on
remainders.  Blocks of constant length compile to a few vector moves each.  Positions are unsigned,
else every access would first be tested for a negative index.
"""

import numba
import numpy as np

unsigned = np.uint64
compiled = numba.njit(nogil=True, cache=True, error_model="numpy")
summing = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc"})  # sums in vector lanes
inlined = numba.njit(nogil=True, inline="always", error_model="numpy")


@inlined
def copy_row(source, s, target, t, length):
    """target[t : t + length] = source[s : s + length], both flat; s and t unsigned."""
    for _ in range(length // 16):
        for q in range(unsigned(16)):
            target[t + q] = source[s + q]
        s += unsigned(16)
        t += unsigned(16)
    if length & 8:
        for q in range(unsigned(8)):
            target[t + q] = source[s + q]
        s += unsigned(8)
        t += unsigned(8)
    if length & 4:
        for q in range(unsigned(4)):
            target[t + q] = source[s + q]
        s += unsigned(4)
        t += unsigned(4)
    for q in range(unsigned(length & 3)):
        target[t + q] = source[s + q]


@inlined
def shift_row(source, s, value, target, t, length):
    """target[t : t + length] = source[s : s + length] + value, both flat; s and t unsigned."""
    for _ in range(length // 16):
        for q in range(unsigned(16)):
            target[t + q] = source[s + q] + value
        s += unsigned(16)
        t += unsigned(16)
    if length & 8:
        for q in range(unsigned(8)):
            target[t + q] = source[s + q] + value
        s += unsigned(8)
        t += unsigned(8)
    if length & 4:
        for q in range(unsigned(4)):
            target[t + q] = source[s + q] + value
        s += unsigned(4)
        t += unsigned(4)
    for q in range(unsigned(length & 3)):
        target[t + q] = source[s + q] + value


@inlined
def add_row(source, s, target, t, length):
    """target[t : t + length] += source[s : s + length], both flat; s and t unsigned."""
    for _ in range(length // 16):
        for q in range(unsigned(16)):
            target[t + q] += source[s + q]
        s += unsigned(16)
        t += unsigned(16)
    if length & 8:
        for q in range(unsigned(8)):
            target[t + q] += source[s + q]
        s += unsigned(8)
        t += unsigned(8)
    if length & 4:
        for q in range(unsigned(4)):
            target[t + q] += source[s + q]
        s += unsigned(4)
        t += unsigned(4)
    for q in range(unsigned(length & 3)):
        target[t + q] += source[s + q]
