"""Convolution over any number of axes, window by window, in float64."""

import numpy as np


def convolution(x, weight, bias, stride, pad, dilation, group):
    """y (N, O, *windows) of x (N, C, *sizes), weight (O, C / group, *kernel), bias (O) or None."""
    kernel = weight.shape[2:]
    windows = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, p, d, k, s in zip(x.shape[2:], pad, dilation, kernel, stride, strict=True)
    ]
    y = np.zeros((len(x), len(weight), *windows))
    for n, o, *window in np.ndindex(y.shape):
        y[n, o, *window] = 0 if bias is None else bias[o]
        for c, place, value in _products(x, weight, o, window, stride, pad, dilation, group):
            y[n, o, *window] += value * x[n, c, *place]
    return y


def deconvolution(x, weight, bias, stride, pad, dilation, group):
    """y (N, O, *larger) of x (N, C, *sizes), weight (C, O / group, *kernel), bias (O) or None."""
    outputs = weight.shape[1] * group
    sizes = [
        s * (size - 1) + d * (k - 1) + 1 - 2 * p
        for size, p, d, k, s in zip(x.shape[2:], pad, dilation, weight.shape[2:], stride, strict=True)
    ]
    y = np.zeros((len(x), outputs, *sizes))
    if bias is not None:
        y += bias.reshape(-1, *[1] * len(sizes))
    for n, c, *window in np.ndindex(x.shape):
        for o, place, value in _products(y, weight, c, window, stride, pad, dilation, group):
            y[n, o, *place] += value * x[n, c, *window]
    return y


def _products(image, weight, filter_index, window, stride, pad, dilation, group):
    """Each channel and place of ``image`` that a filter meets in a window, with the weight there."""
    first = filter_index // (len(weight) // group) * weight.shape[1]
    for c, *offset in np.ndindex(weight.shape[1:]):
        place = [w * s - p + k * d for w, s, p, k, d in zip(window, stride, pad, offset, dilation, strict=True)]
        if all(0 <= i < size for i, size in zip(place, image.shape[2:], strict=True)):
            yield first + c, place, weight[filter_index, c, *offset]
