"""Pooling over two axes, window by window, in float64."""

import math

import numpy as np


def pooling(x, reduce, kernel, stride, pad=(0, 0), ceil=True):
    """y and a list of its windows: reduce(values, area, places) for the values of each window of x (N, C, H, W)."""
    counts = [_count(*sizes, ceil) for sizes in zip(x.shape[2:], kernel, stride, pad, strict=True)]
    y = np.zeros((*x.shape[:2], *counts))
    for n, c, *window in np.ndindex(y.shape):
        ranges, area = [], 1
        for i, size, k, s, p in zip(window, x.shape[2:], kernel, stride, pad, strict=True):
            start = i * s - p
            area *= min(start + k, size + p) - start
            ranges.append(range(max(start, 0), min(start + k, size)))
        places = [(h, w) for h in ranges[0] for w in ranges[1]]
        y[n, c, *window] = reduce([x[n, c, h, w] for h, w in places], area, [h * x.shape[3] + w for h, w in places])
    return y


def largest(values, area, places):
    return max(values)


def place_of_largest(values, area, places):
    return places[values.index(max(values))]


def average(values, area, places):
    return sum(values) / area


def expected_draw(values, area, places):
    return sum(v * v for v in values) / sum(values) if sum(values) > 0 else 0


def _count(size, kernel, stride, pad, ceil):
    count = (math.ceil if ceil else math.floor)((size + 2 * pad - kernel) / stride) + 1
    while (count - 1) * stride >= size + pad:
        count -= 1
    return count
