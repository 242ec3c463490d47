"""Work on (N, C, P) arrays with one number for each channel: sums, batch normalization, scale and bias."""

import numpy as np

from .rows import compiled, summing, unsigned


def channel_sums(backend, x, out):
    """out (C,) = the sums of x (N, C, ...) over all other axes; overwritten."""
    N, C = x.shape[:2]
    positions = x.size // max(1, N * C)
    backend.parallel(lambda start, stop: add_up(x.reshape(-1), out, N, C, positions, start, stop), C, x.size * 0.3)


def channel_dots(backend, x, y, out):
    """out (C,) = the sums of x * y, both (N, C, P), over n and p; overwritten."""
    N, C, P = x.shape
    flat_x, flat_y = x.reshape(-1), y.reshape(-1)
    backend.parallel(lambda start, stop: add_products(flat_x, flat_y, out, N, C, P, start, stop), C, x.size * 0.5)


def scale_channels(backend, x, scale, bias, out):
    """out = x * scale + bias, for x, out (N, C, P), scale (C,), bias (C,) or None; out may be x."""
    _scale(backend, x, np.zeros_like(scale), scale, np.zeros_like(scale) if bias is None else bias, out)


def batch_norm_statistics(backend, x, mean, variance):
    """mean, variance (C,) = those of each channel of x (N, C, P); overwritten."""
    N, C, P = x.shape
    flat = x.reshape(-1)
    backend.parallel(lambda start, stop: find_statistics(flat, mean, variance, N, C, P, start, stop), C, x.size * 0.6)


def batch_norm_forward(backend, x, mean, inverse_std, out):
    """out = (x - mean) * inverse_std, for x, out (N, C, P); out may be x."""
    _scale(backend, x, mean, inverse_std, np.zeros_like(mean), out)


def batch_norm_backward(backend, y, inverse_std, dy, dx):
    """dx = inverse_std * (dy - mean(dy) - y * mean(dy * y)); means are over n and p of (N, C, P); dx may be dy."""
    N, C, P = y.shape
    flat_y, flat_dy, flat_dx = y.reshape(-1), dy.reshape(-1), dx.reshape(-1)
    in_place = _same_memory(dx, dy)

    def backward(start, stop):
        if in_place:
            normalize_slopes_in_place(flat_y, inverse_std, flat_dx, N, C, P, start, stop)
        else:
            normalize_slopes(flat_y, inverse_std, flat_dy, flat_dx, N, C, P, start, stop)

    backend.parallel(backward, C, y.size * 1.2)


def _scale(backend, x, shift, scale, bias, out):
    """out = (x - shift) * scale + bias."""
    N, C, P = x.shape
    flat_x, flat_out = x.reshape(-1), out.reshape(-1)
    in_place = _same_memory(x, out)

    def scale_rows(start, stop):
        if in_place:
            shift_and_scale_in_place(flat_out, C, P, start, stop, shift, scale, bias)
        else:
            shift_and_scale(flat_x, flat_out, C, P, start, stop, shift, scale, bias)

    backend.parallel(scale_rows, N * C, x.size * 0.4)


def _same_memory(a, b):
    return a.__array_interface__["data"][0] == b.__array_interface__["data"][0]


@summing
def add_up(x, out, images, channels, positions, start, stop):
    for c in range(start, stop):
        total = 0.0
        for n in range(images):
            row = (n * channels + c) * positions
            part = x.dtype.type(0)
            for p in range(unsigned(row), unsigned(row + positions)):
                part += x[p]
            total += part
        out[c] = total


@summing
def add_products(x, y, out, images, channels, positions, start, stop):
    for c in range(start, stop):
        total = 0.0
        for n in range(images):
            row = (n * channels + c) * positions
            part = x.dtype.type(0)
            for p in range(unsigned(row), unsigned(row + positions)):
                part += x[p] * y[p]
            total += part
        out[c] = total


@summing
def find_statistics(x, mean, variance, images, channels, positions, start, stop):
    for c in range(start, stop):
        total = 0.0
        for n in range(images):
            row = (n * channels + c) * positions
            part = x.dtype.type(0)
            for p in range(unsigned(row), unsigned(row + positions)):
                part += x[p]
            total += part
        middle = x.dtype.type(total / (images * positions))
        total = 0.0
        for n in range(images):
            row = (n * channels + c) * positions
            part = x.dtype.type(0)
            for p in range(unsigned(row), unsigned(row + positions)):
                part += (x[p] - middle) * (x[p] - middle)
            total += part
        mean[c] = middle
        variance[c] = total / (images * positions)


@compiled
def shift_and_scale(x, out, channels, positions, start, stop, shift, scale, bias):
    for row in range(start, stop):
        a, b, d = shift[row % channels], scale[row % channels], bias[row % channels]
        for p in range(unsigned(row * positions), unsigned((row + 1) * positions)):
            out[p] = (x[p] - a) * b + d


@compiled
def shift_and_scale_in_place(x, channels, positions, start, stop, shift, scale, bias):
    for row in range(start, stop):
        a, b, d = shift[row % channels], scale[row % channels], bias[row % channels]
        for p in range(unsigned(row * positions), unsigned((row + 1) * positions)):
            x[p] = (x[p] - a) * b + d


@summing
def slope_sums(y, dy, images, channels, positions, c):
    """The sums of dy and of dy * y over a channel."""
    sum_dy, sum_dot = 0.0, 0.0
    for n in range(images):
        row = (n * channels + c) * positions
        part_dy, part_dot = y.dtype.type(0), y.dtype.type(0)
        for p in range(unsigned(row), unsigned(row + positions)):
            part_dy += dy[p]
            part_dot += dy[p] * y[p]
        sum_dy += part_dy
        sum_dot += part_dot
    return sum_dy, sum_dot


@compiled
def normalize_slopes(y, inverse_std, dy, dx, images, channels, positions, start, stop):
    for c in range(start, stop):
        factor = inverse_std[c]
        sum_dy, sum_dot = slope_sums(y, dy, images, channels, positions, c)
        mean_dy = y.dtype.type(sum_dy / (images * positions))
        mean_dot = y.dtype.type(sum_dot / (images * positions))
        for n in range(images):
            row = (n * channels + c) * positions
            for p in range(unsigned(row), unsigned(row + positions)):
                dx[p] = factor * (dy[p] - mean_dy - y[p] * mean_dot)


@compiled
def normalize_slopes_in_place(y, inverse_std, dx, images, channels, positions, start, stop):
    for c in range(start, stop):
        factor = inverse_std[c]
        sum_dy, sum_dot = slope_sums(y, dx, images, channels, positions, c)
        mean_dy = y.dtype.type(sum_dy / (images * positions))
        mean_dot = y.dtype.type(sum_dot / (images * positions))
        for n in range(images):
            row = (n * channels + c) * positions
            for p in range(unsigned(row), unsigned(row + positions)):
                dx[p] = factor * (dx[p] - mean_dy - y[p] * mean_dot)
