"""Convolution with one input channel a group: every output plane is a few scaled, shifted input planes."""

from .correlation import backward_correlations, forward_correlation, source_offsets
from .planes import pad_planes, place_rows, widen_rows
from .rows import compiled, summing, unsigned


def depthwise_forward(backend, x, weight, bias, out, windows):
    """out (N, C * M, H', W') = weight (C * M, 1, kh, kw) * x (N, C, H, W) + bias."""
    _slide(backend, forward_correlation(windows), x, weight, bias, out)


def depthwise_backward_data(backend, dy, weight, no_bias, dx, windows):
    """dx (N, C, H, W) = the gradient with respect to x."""
    for correlation in backward_correlations(windows):
        _slide(backend, correlation, dy, weight, no_bias, dx)


def depthwise_backward_weights(backend, x, dy, dweight, windows):
    """dweight (C * M, 1, kh, kw) = the gradient with respect to weight, summed over images."""
    correlation = forward_correlation(windows)
    rows, columns = correlation.rows, correlation.columns
    offsets, layout = source_offsets(correlation, 1, rows), correlation.layout(rows)

    def add_up(start, stop):
        planes = backend.scratch("depthwise.planes", (correlation.plane_size(rows),), x.dtype)
        wide = backend.scratch("depthwise.wide", (1, 1, rows * columns), x.dtype)
        sums = dweight.reshape(len(dweight), windows.size)
        correlate_planes(x, dy, sums, planes, wide, start, stop, offsets, correlation.corner, layout)

    backend.parallel(add_up, len(dweight), dy.size * (windows.size * 0.1 + 1))


def _slide(backend, correlation, source, weight, bias, target):
    """Each target channel sums all source channels that share a filter with it."""
    rows, columns = correlation.rows, correlation.columns
    offsets, layout = source_offsets(correlation, 1, rows), correlation.layout(rows)
    filters = weight.reshape(len(weight), -1)[:, [element for *_, element in correlation.taps]]

    def slide(start, stop):
        planes = backend.scratch("depthwise.planes", (correlation.plane_size(rows),), source.dtype)
        wide = backend.scratch("depthwise.wide", (1, 1, rows * columns), source.dtype)
        for plane in range(start, stop):
            n, t = divmod(plane, target.shape[1])
            sums = wide[0, 0, : correlation.length(rows)]
            slide_planes(source, filters, planes, sums, n, t, target.shape[1], offsets, correlation.corner, layout)
            block = (n, n + 1, t, t + 1)
            place_rows(wide, columns, target, block, rows, correlation.target_corner, correlation.target_strides, bias)

    cost = len(source) * len(weight) * rows * columns * (0.1 * len(offsets) + 1)
    backend.parallel(slide, len(target) * target.shape[1], cost)


@compiled
def slide_planes(source, filters, planes, sums, n, t, target_channels, offsets, corner, layout):
    """sums = target channel t of image n, wide and without bias."""
    channels, length, zero = source.shape[1], unsigned(len(sums)), planes.dtype.type(0)
    for p in range(length):
        sums[p] = 0
    for m in range(max(1, channels // target_channels)):
        s = t * channels // target_channels + m
        pad_planes(source, planes, (n, n + 1, s, s + 1), corner, layout, zero)
        for k in range(len(offsets)):
            factor, offset = filters[max(s, t), k], unsigned(offsets[k])
            for p in range(length):
                sums[p] += factor * planes[offset + p]


@summing
def correlate_planes(x, dy, dweight, planes, wide, start, stop, offsets, corner, layout):
    """dweight (filters, taps)[start:stop]"""
    slopes, zero = wide.reshape(-1), planes.dtype.type(0)
    columns = layout[1]
    for o in range(start, stop):
        c = o * x.shape[1] // dy.shape[1]
        for k in range(len(offsets)):
            dweight[o, k] = 0
        for n in range(x.shape[0]):
            pad_planes(x, planes, (n, n + 1, c, c + 1), corner, layout, zero)
            widen_rows(dy, wide, columns, (n, n + 1, o, o + 1), 0, dy.shape[2])
            for k in range(len(offsets)):
                offset, total = unsigned(offsets[k]), zero
                for p in range(unsigned(len(slopes) - (columns - dy.shape[3]))):
                    total += slopes[p] * planes[offset + p]
                dweight[o, k] += total
