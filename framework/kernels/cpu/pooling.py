"""Pooling over windows of two spatial axes, plane by plane.

Window (i, j) starts at (i, j) * stride - pad and is cut at the edges of the image.
"""

import numpy as np

from .correlation import forward_correlation, source_offsets, windows_of
from .planes import pad_planes
from .rows import add_row, compiled, copy_row, unsigned


def max_pool2d_forward(backend, x, out, mask, kernel, stride, pad):
    """out = the largest value of each window, mask = the place h * W + w of the first such value.

    NaN counts as largest.  x (N, C, H, W), out and mask (int32) (N, C, H', W'), both overwritten.
    """
    correlation = forward_correlation(windows_of(x.shape, out.shape, kernel, pad, stride, (1, 1)))
    rows = correlation.rows
    offsets, layout = source_offsets(correlation, 1, rows), correlation.layout(rows)

    def forward(start, stop):
        planes = backend.scratch("pooling.planes", (correlation.plane_size(rows),), x.dtype)
        best = backend.scratch("pooling.best", (correlation.length(rows),), x.dtype)
        places = backend.scratch("pooling.places", (correlation.length(rows),), mask.dtype)
        max_planes(x, out, mask, planes, best, places, start, stop, offsets, layout, kernel, pad)

    backend.parallel(forward, x.shape[0] * x.shape[1], x.size * 0.8 + out.size * kernel[0] * kernel[1] * 0.2)


def max_pool2d_backward(backend, dy, mask, dx):
    """dx = each dy added at the place that its mask names; dy and mask (N, C, H', W'), dx (N, C, H, W), overwritten."""

    def backward(start, stop):
        add_at_masks(dy, mask, dx, start, stop)

    backend.parallel(backward, dx.shape[0] * dx.shape[1], dx.size * 0.1 + dy.size * 1.5)


def ave_pool2d_forward(backend, x, out, kernel, stride, pad):
    """out = the sum of each window / its area, to which padding counts.

    x (N, C, H, W), out (N, C, H', W'), overwritten.
    """

    def forward(start, stop):
        sums = backend.scratch("pooling.row", (x.shape[3],), x.dtype)
        average_planes(x, out, sums, start, stop, kernel, stride, pad)

    backend.parallel(forward, x.shape[0] * x.shape[1], x.size * 0.3 + out.size * kernel[1] * 0.6)


def ave_pool2d_backward(backend, dy, dx, kernel, stride, pad):
    """dx = the sum over the windows around it of dy / area; dy (N, C, H', W'), dx (N, C, H, W), overwritten."""

    def backward(start, stop):
        sums = backend.scratch("pooling.row", (dx.shape[3],), dx.dtype)
        spread_planes(dy, dx, sums, start, stop, kernel, stride, pad)

    backend.parallel(backward, dx.shape[0] * dx.shape[1], dx.size * 0.4 + dy.size * kernel[1] * 1.0)


@compiled
def max_planes(x, out, mask, planes, best, places, start, stop, offsets, layout, kernel, pad):
    """``max_pool2d_forward`` for planes start to stop: all windows of a plane at once, place by place.

    ``best`` and ``places`` (relative to the window's corner) have rows of the padded planes' length.
    """
    values, masks = out.reshape(-1), mask.reshape(-1)
    _, channels, out_height, out_width = out.shape
    width, lowest, length = x.shape[3], x.dtype.type(-np.inf), unsigned(len(best))
    (_, columns, stride_h, stride_w), (pad_h, pad_w) = layout, pad
    for plane in range(start, stop):
        n, c = plane // channels, plane % channels
        pad_planes(x, planes, (n, n + 1, c, c + 1), (-pad_h, -pad_w), layout, lowest)
        for p in range(length):
            best[p] = lowest
        for r in range(out_height):  # the first place inside the image
            inner_row = max(0, pad_h - r * stride_h) * width
            for q in range(out_width):
                places[unsigned(r * columns + q)] = inner_row + max(0, pad_w - q * stride_w)
        for k in range(len(offsets)):
            offset, place = unsigned(offsets[k]), np.int32(k // kernel[1] * width + k % kernel[1])
            for p in range(length):
                value = planes[offset + p]
                larger = (value > best[p]) | ((value != value) & (best[p] == best[p]))
                best[p] = value if larger else best[p]
                places[p] = place if larger else places[p]
        for r in range(out_height):
            t = (plane * out_height + r) * out_width
            copy_row(best, unsigned(r * columns), values, unsigned(t), out_width)
            corner = np.int32((r * stride_h - pad_h) * width - pad_w)
            for q in range(out_width):
                masks[unsigned(t + q)] = corner + np.int32(q * stride_w) + places[unsigned(r * columns + q)]


@compiled
def add_at_masks(dy, mask, dx, start, stop):
    """``max_pool2d_backward`` for planes start to stop."""
    slopes, masks, sums = dy.reshape(-1), mask.reshape(-1), dx.reshape(-1)
    out_size, size = dy.shape[2] * dy.shape[3], dx.shape[2] * dx.shape[3]
    for q in range(unsigned(start * size), unsigned(stop * size)):
        sums[q] = 0
    for plane in range(start, stop):
        first = unsigned(plane * size)
        for q in range(unsigned(plane * out_size), unsigned((plane + 1) * out_size)):
            sums[first + unsigned(masks[q])] += slopes[q]


@compiled
def average_planes(x, out, sums, start, stop, kernel, stride, pad):
    """``ave_pool2d_forward`` for planes start to stop: rows are added up first (in ``sums``), then along the row."""
    source, target = x.reshape(-1), out.reshape(-1)
    (_, _, height, width), (_, _, out_height, out_width) = x.shape, out.shape
    for plane in range(start, stop):
        for r in range(out_height):
            top = r * stride[0] - pad[0]
            rows = min(top + kernel[0], height + pad[0]) - top
            sums[:] = 0
            for h in range(max(0, top), min(height, top + kernel[0])):
                add_row(source, unsigned((plane * height + h) * width), sums, unsigned(0), width)
            for q in range(out_width):
                left = q * stride[1] - pad[1]
                columns = min(left + kernel[1], width + pad[1]) - left
                total = sums.dtype.type(0)
                for w in range(max(0, left), min(width, left + kernel[1])):
                    total += sums[unsigned(w)]
                target[unsigned((plane * out_height + r) * out_width + q)] = total / out.dtype.type(rows * columns)


@compiled
def spread_planes(dy, dx, sums, start, stop, kernel, stride, pad):
    """``ave_pool2d_backward`` for planes start to stop: along the row first (in ``sums``), then to all its rows."""
    source, target = dy.reshape(-1), dx.reshape(-1)
    (_, _, height, width), (_, _, out_height, out_width) = dx.shape, dy.shape
    for q in range(unsigned(start * height * width), unsigned(stop * height * width)):
        target[q] = 0
    for plane in range(start, stop):
        for r in range(out_height):
            top = r * stride[0] - pad[0]
            rows = min(top + kernel[0], height + pad[0]) - top
            sums[:] = 0
            for q in range(out_width):
                left = q * stride[1] - pad[1]
                columns = min(left + kernel[1], width + pad[1]) - left
                slope = source[unsigned((plane * out_height + r) * out_width + q)]
                for w in range(max(0, left), min(width, left + kernel[1])):
                    sums[unsigned(w)] += slope / dy.dtype.type(rows * columns)
            for h in range(max(0, top), min(height, top + kernel[0])):
                add_row(sums, unsigned(0), target, unsigned((plane * height + h) * width), width)
