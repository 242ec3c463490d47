"""LRN across channels, image by image; within channels the plain version runs."""

import numpy as np

from ...fusable import fusables
from .rows import compiled, unsigned


def lrn_forward(backend, x, scale, out, axes, size, alpha, beta, k):
    """scale = k + alpha / size^len(axes) * windowsum(x^2), out = x * scale^-beta; windows lie along ``axes``."""
    if axes != (1,):
        fusables["lrn_forward"].plain(backend, x, scale, out, axes, size, alpha, beta, k)
        return
    N, C = x.shape[:2]
    P = x[0, 0].size
    number = x.dtype.type

    def forward(start, stop):
        for n in range(start, stop):
            image, scales, result = (array[n].reshape(-1) for array in (x, scale, out))
            sum_squares(image, scales, C, P, size // 2, number(alpha / size), number(k))
            if beta == 0.75:
                over_root(image, scales, result)
            else:
                np.power(scales, -beta, out=result)
                result *= image

    backend.parallel(forward, N, x.size * 3)


def lrn_backward(backend, x, scale, dy, dx, axes, size, alpha, beta):
    """dx = dy * scale^-beta - 2 alpha beta / size^len(axes) * x * windowsum(dy * x * scale^(-beta - 1))."""
    if axes != (1,):
        fusables["lrn_backward"].plain(backend, x, scale, dy, dx, axes, size, alpha, beta)
        return
    N, C = x.shape[:2]
    P = x[0, 0].size
    number = x.dtype.type

    def backward(start, stop):
        ratios = backend.scratch("lrn.ratios", (C * P,), x.dtype)
        for n in range(start, stop):
            image, scales, slopes, result = (array[n].reshape(-1) for array in (x, scale, dy, dx))
            if beta == 0.75:
                over_root(slopes, scales, result)
            else:
                np.power(scales, -beta, out=result)
                result *= slopes
            divide_product(result, image, scales, ratios)
            subtract_windows(image, ratios, result, C, P, size // 2, number(2 * alpha * beta / size))

    backend.parallel(backward, N, x.size * 4)


@compiled
def sum_squares(x, scale, channels, positions, half, factor, k):
    """scale = k + factor * the sum of x^2 over the channels c - half to c + half; (channels, positions), flat."""
    for c in range(channels):
        t = unsigned(c * positions)
        for p in range(unsigned(positions)):
            scale[t + p] = 0
        for near in range(max(0, c - half), min(channels, c + half + 1)):
            s = unsigned(near * positions)
            for p in range(unsigned(positions)):
                scale[t + p] += x[s + p] * x[s + p]
        for p in range(unsigned(positions)):
            scale[t + p] = k + factor * scale[t + p]


@compiled
def over_root(x, scale, out):
    """out = x * scale^-0.75"""
    for i in range(len(out)):
        root = np.sqrt(scale[i])
        out[i] = x[i] / (root * np.sqrt(root))


@compiled
def divide_product(a, b, c, out):
    """out = a * b / c"""
    for i in range(len(out)):
        out[i] = a[i] * b[i] / c[i]


@compiled
def subtract_windows(x, ratios, dx, channels, positions, half, factor):
    """dx -= factor * x * the sum of ratios over the channels c - half to c + half; (channels, positions), flat."""
    for c in range(channels):
        t = unsigned(c * positions)
        for near in range(max(0, c - half), min(channels, c + half + 1)):
            s = unsigned(near * positions)
            for p in range(unsigned(positions)):
                dx[t + p] -= factor * x[t + p] * ratios[s + p]
