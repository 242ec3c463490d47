"""Work on one number at a time, in one pass over memory; arrays of any shape, C-contiguous.

A kernel that may overwrite its input has a second form for that: a compiled loop over two arrays that turn
out to be the same one does not run in vectors.
"""

import numpy as np

from .jobs import shared
from .rows import compiled, unsigned

BLOCK = 1 << 16  # numbers that stay in the second-level cache from one array of a sum to the next
GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def relu_forward(backend, x, y, slope):
    """y = max(x, 0) + slope * min(x, 0); y may be x."""
    a, b = x.reshape(-1), y.reshape(-1)
    if slope == 0:
        backend.share(clip, x.size, x.size * 0.3, a, b, x is y)
    else:
        backend.share(leak, x.size, x.size * 0.3, a, b, b.dtype.type(slope), x is y)


def relu_backward(backend, x, dy, dx, slope):
    """dx = dy where x > 0, slope * dy elsewhere; dx may be dy."""
    a, b, c = x.reshape(-1), dy.reshape(-1), dx.reshape(-1)
    backend.share(choose, x.size, x.size * 0.4, a, b, c, c.dtype.type(slope), dx is dy)


def dropout_forward(backend, x, mask, y, ratio):
    """mask: uniform numbers on entry, 0 where below ``ratio`` and else 1 / (1 - ratio) on exit; y = x * mask.

    y may be x.
    """
    a, m, b = x.reshape(-1), mask.reshape(-1), y.reshape(-1)
    ratio, scale = mask.dtype.type(ratio), mask.dtype.type(1 / (1 - ratio))
    backend.share(drop, x.size, x.size * 0.5, a, m, ratio, scale, b, x is y)


def slope_backward(backend, dy, slope, dx):
    """dx = dy * slope; dx may be dy."""
    a, b, c = dy.reshape(-1), slope.reshape(-1), dx.reshape(-1)
    backend.share(multiply, dy.size, dy.size * 0.4, a, b, c, dx is dy)


def weighted_sum(backend, arrays, weights, out):
    """out = weights[0] * arrays[0] + weights[1] * arrays[1] + ..., in this order; at least one array.

    out may be arrays[0].
    """
    flat, y = [array.reshape(-1) for array in arrays], out.reshape(-1)
    plain = len(arrays) > 1 and all(weight == 1 for weight in weights)
    if len(arrays) == 1 and out is not arrays[0]:
        backend.share(scale, out.size, out.size * 0.3, flat[0], y.dtype.type(weights[0]), y)
        return
    if plain and len(arrays) == 2:
        backend.share(add, out.size, out.size * 0.6, *flat, y, out is arrays[0])
        return

    def add_up(start, stop):
        for i in range(start, stop, BLOCK):
            part = slice(i, min(i + BLOCK, stop))
            if plain:
                np.add(flat[0][part], flat[1][part], out=y[part])
                for array in flat[2:]:
                    np.add(y[part], array[part], out=y[part])
            else:
                np.multiply(flat[0][part], weights[0], out=y[part])
                for array, weight in zip(flat[1:], weights[1:], strict=True):
                    add_scaled(array[part], y.dtype.type(weight), y[part])

    backend.parallel(add_up, out.size, out.size * 0.3 * len(arrays))


def uniform_numbers(backend, out, seed, position):
    """out[i] = number ``position + i`` of the stream ``seed``, in [0, 1) with 24 bits; out is contiguous."""
    flat = out.reshape(-1)
    start_state = np.uint64((seed + position * int(GOLDEN_GAMMA)) & ((1 << 64) - 1))
    backend.share(fill, out.size, out.size, flat, start_state)


@shared
def clip(part, start, stop, x, y, in_place):
    if in_place:
        clip_in_place(y[start:stop])
    else:
        clip_to(x[start:stop], y[start:stop])


@shared
def leak(part, start, stop, x, y, slope, in_place):
    if in_place:
        leak_in_place(y[start:stop], slope)
    else:
        choose_to(x[start:stop], x[start:stop], slope, y[start:stop])


@shared
def choose(part, start, stop, x, source, target, slope, in_place):
    if in_place:
        choose_in_place(x[start:stop], slope, target[start:stop])
    else:
        choose_to(x[start:stop], source[start:stop], slope, target[start:stop])


@shared
def drop(part, start, stop, x, mask, ratio, scale, y, in_place):
    keep(mask[start:stop], ratio, scale)
    multiply_slice(start, stop, x, mask, y, in_place)


@shared
def multiply(part, start, stop, x, factors, y, in_place):
    multiply_slice(start, stop, x, factors, y, in_place)


@compiled
def multiply_slice(start, stop, x, factors, y, in_place):
    if in_place:
        multiply_in_place(factors[start:stop], y[start:stop])
    else:
        multiply_to(x[start:stop], factors[start:stop], y[start:stop])


@shared
def add(part, start, stop, x, other, y, in_place):
    if in_place:
        add_in_place(other[start:stop], y[start:stop])
    else:
        add_to(x[start:stop], other[start:stop], y[start:stop])


@shared
def scale(part, start, stop, x, factor, y):
    scale_to(x[start:stop], factor, y[start:stop])


@shared
def fill(part, start, stop, out, state):
    fill_uniform(out, state, start, stop)


@compiled
def clip_in_place(y):
    zero = y.dtype.type(0)
    for i in range(len(y)):
        y[i] = zero if y[i] < zero else y[i]


@compiled
def clip_to(x, y):
    zero = y.dtype.type(0)
    for i in range(len(y)):
        y[i] = zero if x[i] < zero else x[i]


@compiled
def leak_in_place(y, slope):
    for i in range(len(y)):
        y[i] = y[i] if y[i] > 0 else slope * y[i]


@compiled
def choose_in_place(x, slope, target):
    for i in range(len(target)):
        target[i] = target[i] if x[i] > 0 else slope * target[i]


@compiled
def choose_to(x, source, slope, target):
    for i in range(len(target)):
        target[i] = source[i] if x[i] > 0 else slope * source[i]


@compiled
def keep(mask, ratio, scale):
    for i in range(len(mask)):
        mask[i] = scale if mask[i] >= ratio else mask.dtype.type(0)


@compiled
def multiply_in_place(factors, y):
    for i in range(len(y)):
        y[i] *= factors[i]


@compiled
def multiply_to(x, factors, y):
    for i in range(len(y)):
        y[i] = x[i] * factors[i]


@compiled
def scale_to(x, factor, y):
    for i in range(len(y)):
        y[i] = factor * x[i]


@compiled
def add_in_place(other, y):
    for i in range(len(y)):
        y[i] += other[i]


@compiled
def add_to(x, other, y):
    for i in range(len(y)):
        y[i] = x[i] + other[i]


@compiled
def add_scaled(source, factor, target):
    for i in range(len(target)):
        target[i] += factor * source[i]


@compiled
def fill_uniform(out, state, start, stop):
    """SplitMix64 of state + (i + 1) * GOLDEN_GAMMA, the upper 24 bits."""
    for i in range(unsigned(start), unsigned(stop)):
        z = state + (i + unsigned(1)) * GOLDEN_GAMMA
        z = (z ^ (z >> unsigned(30))) * unsigned(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> unsigned(27))) * unsigned(0x94D049BB133111EB)
        z = (z ^ (z >> unsigned(31))) >> unsigned(40)
        out[i] = np.float32(np.int32(z)) * np.float32(2.0**-24)
