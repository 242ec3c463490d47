"""Convolution with windows of one pixel: matrix products over channels, by BLAS."""

import numpy as np

from .products import NARROW
from .rows import compiled, unsigned
from .splitting import row_ranges, split_by_images

BLOCK = 16  # threads split rows in blocks of so many
POSITIONS = 512  # least length of the sums in one product of a weight gradient


def pointwise_forward(backend, x, weight, bias, out, windows, group):
    """out (N, O, H', W') = weight (O, C/group, 1, 1) x (N, C, H, W) + bias."""
    weights = weight.reshape(group, len(weight) // group, -1)
    _multiply(backend, weights, _pick_pixels(backend, x, windows), bias, out)


def pointwise_backward_data(backend, dy, weight, no_bias, dx, windows, group):
    """dx (N, C, H, W) = the gradient with respect to x."""
    weights = weight.reshape(group, len(weight) // group, -1).transpose(0, 2, 1)
    if windows.straight:
        _multiply(backend, weights, dy, no_bias, dx)
        return
    picked = backend.scratch("pointwise.picked", dx.shape[:2] + dy.shape[2:], dx.dtype)
    _multiply(backend, weights, dy, no_bias, picked)
    seen = _seen_pixels(dx, windows)

    def put(start, stop):
        dx[start:stop] = 0
        seen[start:stop] = picked[start:stop]

    backend.parallel(put, len(dx), dx.size * 0.3 + picked.size * 1.5)


def pointwise_backward_weights(backend, x, dy, dweight, windows, group):
    """dweight (O, C/group, 1, 1) = the gradient with respect to weight, summed over images."""
    x = _pick_pixels(backend, x, windows)
    N, P = len(x), x[0, 0].size
    dweights = dweight.reshape(group, len(dweight) // group, -1)
    O, C = dweights.shape[1:]
    values, slopes = x.reshape(N, group, C, P), dy.reshape(N, group, O, P)

    def by_outputs(start, stop):
        for _, g, o0, o1 in row_ranges(start, stop, O, BLOCK):
            _sum_products(backend, slopes[:, g, o0:o1], values[:, g], dweights[g, o0:o1])

    def by_inputs(start, stop):
        for _, g, c0, c1 in row_ranges(start, stop, C, BLOCK):
            _sum_products(backend, slopes[:, g], values[:, g, c0:c1], dweights[g, :, c0:c1])

    cost = N * P * group * (0.02 * O * C + 0.3 * (O + C))
    if O >= C:
        backend.parallel(by_outputs, group * -(-O // BLOCK), cost)
    else:
        backend.parallel(by_inputs, group * -(-C // BLOCK), cost)


def _multiply(backend, weights, x, bias, out):
    """out (N, group * rows, ...) = weights (group, rows, channels) x (N, group * channels, ...) + bias."""
    N, P, (group, rows, channels) = len(x), x[0, 0].size, weights.shape
    values, results = x.reshape(N, group, channels, P), out.reshape(N, group, rows, P)
    biases = bias.reshape(group, rows)

    def by_images(start, stop):
        for n in range(start, stop):
            np.matmul(weights, values[n], out=results[n])
            add_bias(results[n], biases)

    def by_rows(start, stop):
        for _, g, o0, o1 in row_ranges(start, stop, rows, BLOCK):
            for n in range(N):
                np.matmul(weights[g, o0:o1], values[n, g], out=results[n, g, o0:o1])
                add_bias(results[n, g : g + 1, o0:o1], biases[g : g + 1, o0:o1])

    cost = N * P * group * rows * (0.02 * channels + 0.3)
    if split_by_images(backend, N, weights.nbytes):
        backend.parallel(by_images, N, cost)
    else:
        backend.parallel(by_rows, group * -(-rows // BLOCK), cost)


def _sum_products(backend, slopes, values, target):
    """target (O, C) = the sum over images of slopes (N, O, P) values (N, C, P)^T."""
    step = max(1, POSITIONS // slopes.shape[2])
    for n in range(0, len(slopes), step):
        a = _side_by_side(backend, "pointwise.slopes", slopes[n : n + step])
        b = _side_by_side(backend, "pointwise.values", values[n : n + step])
        if len(a) <= NARROW:
            turned = backend.scratch("pointwise.product", target.shape[::-1], target.dtype)
            product = np.matmul(b, a.T, out=turned).T
        else:
            product = backend.scratch("pointwise.product", target.shape, target.dtype) if n else target
            np.matmul(a, b.T, out=product)
        if n:
            target += product
        elif product is not target:
            np.copyto(target, product)


def _side_by_side(backend, name, x):
    """x (n, C, P) as (C, n * P)."""
    if len(x) == 1:
        return x[0]
    columns = backend.scratch(name, (x.shape[1], len(x), x.shape[2]), x.dtype)
    np.copyto(columns, x.transpose(1, 0, 2))
    return columns.reshape(x.shape[1], -1)


def _pick_pixels(backend, x, windows):
    """The pixels (N, C, H', W') of x that the windows see: x itself where they see all."""
    if windows.straight:
        return x
    picked = backend.scratch("pointwise.picked", x.shape[:2] + windows[2:4], x.dtype)
    seen = _seen_pixels(x, windows)

    def pick(start, stop):
        picked[start:stop] = seen[start:stop]

    backend.parallel(pick, len(x), picked.size * 1.5)
    return picked


def _seen_pixels(x, windows):
    pixels = x[:, :, :: windows.stride_h, :: windows.stride_w]
    return pixels[:, :, : windows.out_height, : windows.out_width]


@compiled
def add_bias(y, bias):
    """y (group, rows, P) += bias (group, rows)."""
    for g in range(y.shape[0]):
        for o in range(y.shape[1]):
            row, value = y[g, o], bias[g, o]
            for p in range(unsigned(len(row))):
                row[p] += value
