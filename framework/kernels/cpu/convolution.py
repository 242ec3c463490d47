"""Convolution as sliding products over padded planes, tile by tile; nothing is unfolded (no im2col).

Each thread pads a tile that fits its cache (several small images, or some rows of a large one) and computes
all outputs that see it with the register tiles of tiles.py.  Windows of one pixel are plain matrix products
(pointwise.py), and one channel a group needs no sum over channels (depthwise.py).
"""

import numpy as np

from .correlation import (
    backward_correlations,
    forward_correlation,
    source_offsets,
    vector_starts,
    window_elements,
    windows_of,
)
from .depthwise import depthwise_backward_data, depthwise_backward_weights, depthwise_forward
from .planes import pad_planes, place_rows, widen_rows
from .pointwise import pointwise_backward_data, pointwise_backward_weights, pointwise_forward
from .rows import compiled, copy_row, unsigned
from .splitting import TILE_BYTES, row_ranges, split_by_images
from .tiles import ROWS, VECTORS, correlate_tile, lanes_of, multiply_tile

STRETCH = 96  # vectors in one sum of a weight gradient: their slopes stay in the first-level cache


def conv2d_forward(backend, x, weight, bias, out, pad, stride, dilation, group):
    """out = weight * x + bias, the correlation of each group; out is overwritten.

    x (N, C, H, W), weight (O, C/group, kh, kw), bias (O,) or None, out (N, O, H', W').
    """
    windows = windows_of(x.shape, out.shape, weight.shape[2:], pad, stride, dilation)
    bias = np.zeros(len(weight), out.dtype) if bias is None else bias
    if windows.single:
        pointwise_forward(backend, x, weight, bias, out, windows, group)
    elif weight.shape[1] == 1 and group > 1:
        depthwise_forward(backend, x, weight, bias, out, windows)
    else:
        # axes: group, row of the product, channel that it sums over, element of the window
        weights = weight.reshape(group, len(weight) // group, weight.shape[1], windows.size)
        _multiply(backend, forward_correlation(windows), x, weights, bias, out)


def conv2d_backward_data(backend, dy, weight, dx, pad, stride, dilation, group):
    """dx = the gradient with respect to x; dx is overwritten.

    dy (N, O, H', W'), weight (O, C/group, kh, kw), dx (N, C, H, W).
    """
    windows = windows_of(dx.shape, dy.shape, weight.shape[2:], pad, stride, dilation)
    no_bias = np.zeros(dx.shape[1], dx.dtype)
    if windows.single:
        pointwise_backward_data(backend, dy, weight, no_bias, dx, windows, group)
    elif weight.shape[1] == 1 and group > 1:
        depthwise_backward_data(backend, dy, weight, no_bias, dx, windows)
    else:
        weights = weight.reshape(group, len(weight) // group, weight.shape[1], windows.size)
        for correlation in backward_correlations(windows):
            _multiply(backend, correlation, dy, weights.transpose(0, 2, 1, 3), no_bias, dx)


def conv2d_backward_weights(backend, x, dy, dweight, pad, stride, dilation, group):
    """dweight = the gradient with respect to weight, summed over images and positions; dweight is overwritten.

    x (N, C, H, W), dy (N, O, H', W'), dweight (O, C/group, kh, kw).
    """
    windows = windows_of(x.shape, dy.shape, dweight.shape[2:], pad, stride, dilation)
    if windows.single:
        pointwise_backward_weights(backend, x, dy, dweight, windows, group)
    elif dweight.shape[1] == 1 and group > 1:
        depthwise_backward_weights(backend, x, dy, dweight, windows)
    else:
        dweights = dweight.reshape(group, len(dweight) // group, dweight.shape[1] * windows.size)
        _correlate(backend, forward_correlation(windows), x, dy, dweights)


def _multiply(backend, correlation, source, weights, bias, target):
    """target (N, group * rows, ...) = weights (group, rows, channels, window) times the shifted source, + bias."""
    N, (group, rows, channels, _) = len(source), weights.shape
    lanes, columns = lanes_of(source.dtype), correlation.columns
    elements = window_elements(correlation)
    K = channels * len(elements)
    row_bytes = columns * (group * channels * np.prod(correlation.strides) + rows) * source.itemsize

    def multiply(n_start, n_stop, block_start, block_stop):
        ranges = list(row_ranges(block_start, block_stop, rows, ROWS))
        packed = backend.scratch("convolution.packed", (block_stop - block_start, K, ROWS), source.dtype)
        for first, g, o0, o1 in ranges:
            pack_weights(weights[g, o0:o1], elements, packed[first - block_start :])
        for n0, n1, r0, r1 in _tiles(n_start, n_stop, correlation.rows, row_bytes):
            planes, image_size = _pad(backend, correlation, source, (n0, n1, 0, group * channels), r0, r1)
            offsets = source_offsets(correlation, channels, r1 - r0)
            vectors = -(-correlation.length(r1 - r0) // lanes)
            starts = vector_starts(n1 - n0, image_size, vectors, lanes)
            for first, g, o0, o1 in ranges:
                wide = backend.scratch("convolution.wide", (o1 - o0, n1 - n0, vectors * lanes), source.dtype)
                group_planes = planes[g * image_size // group :]
                multiply_planes(group_planes, starts, offsets, packed[first - block_start :], wide)
                block = (n0, n1, g * rows + o0, g * rows + o1)
                corner, strides = correlation.target_corner_of_row(r0), correlation.target_strides
                place_rows(wide, columns, target, block, r1 - r0, corner, strides, bias)

    blocks = group * -(-rows // ROWS)
    cost = N * correlation.rows * correlation.width * group * rows * (0.015 * K + 1)
    if split_by_images(backend, N, weights.nbytes):
        backend.parallel(lambda start, stop: multiply(start, stop, 0, blocks), N, cost)
    else:
        backend.parallel(lambda start, stop: multiply(0, N, start, stop), blocks, cost)


def _correlate(backend, correlation, x, dy, dweights):
    """dweights (group, rows, taps) = the sums over images and positions of dy times the shifted x."""
    N, (group, rows, K) = len(x), dweights.shape
    channels, lanes, columns = x.shape[1] // group, lanes_of(x.dtype), correlation.columns

    def correlate(start, stop):
        for _, g, o0, o1 in row_ranges(start, stop, rows, ROWS):
            dweights[g, o0:o1] = 0
            row_bytes = columns * (channels * np.prod(correlation.strides) + o1 - o0) * x.itemsize
            for n0, n1, r0, r1 in _tiles(0, N, correlation.rows, row_bytes):
                block = (n0, n1, g * channels, (g + 1) * channels)
                planes, image_size = _pad(backend, correlation, x, block, r0, r1)
                offsets = source_offsets(correlation, channels, r1 - r0)
                vectors = -(-correlation.length(r1 - r0) // lanes)
                starts = vector_starts(n1 - n0, image_size, vectors, lanes)
                row = backend.scratch("convolution.row", (1, n1 - n0, vectors * lanes), x.dtype)
                shape = (-(-(o1 - o0) // ROWS), len(starts), ROWS, lanes)
                packed = backend.scratch("convolution.packed", shape, x.dtype)
                pack_slopes(dy, packed, row, columns, (n0, n1, g * rows + o0, g * rows + o1), r0, r1)
                correlate_planes(planes, starts, offsets, packed, dweights[g, o0:o1])

    positions = N * correlation.rows * correlation.width
    backend.parallel(correlate, group * -(-rows // ROWS), positions * group * K * (1 + 0.015 * rows))


def _tiles(n_start, n_stop, rows, row_bytes):
    """Tiles (n0, n1, r0, r1) of images and output rows, each about TILE_BYTES."""
    images = TILE_BYTES // (rows * row_bytes)
    if images >= 1:
        count = -(-(n_stop - n_start) // images)
        bounds = [n_start + (n_stop - n_start) * tile // count for tile in range(count + 1)]
        for tile in range(count):
            yield bounds[tile], bounds[tile + 1], 0, rows
        return
    count = min(rows, -(-rows * row_bytes // TILE_BYTES))
    for n in range(n_start, n_stop):
        for tile in range(count):
            yield n, n + 1, rows * tile // count, rows * (tile + 1) // count


def _pad(backend, correlation, source, block, r0, r1):
    """Padded planes of a block of the source for output rows r0 to r1, and their size per image."""
    n0, n1, c0, c1 = block
    image_size = (c1 - c0) * correlation.plane_size(r1 - r0)
    size = (n1 - n0) * image_size
    planes = backend.scratch("convolution.planes", (size + lanes_of(source.dtype),), source.dtype)
    planes[size:] = 0  # the last vector may read so far
    zero = source.dtype.type(0)
    pad_planes(source, planes, block, correlation.corner_of_row(r0), correlation.layout(r1 - r0), zero)
    return planes, image_size


@compiled
def pack_weights(weights, elements, packed):
    """packed (blocks of ROWS rows, channels * elements, ROWS) of weights (rows, channels, window)."""
    rows, channels, _ = weights.shape
    for block in range((rows + ROWS - 1) // ROWS):
        k = 0
        for c in range(channels):
            for element in elements:
                for r in range(ROWS):
                    packed[block, k, r] = weights[min(block * ROWS + r, rows - 1), c, element]
                k += 1


@compiled
def multiply_planes(planes, starts, offsets, packed, wide):
    """wide (rows, vectors) = the packed weights times the shifted planes, by register tiles."""
    rows = wide.shape[0]
    for row in range(0, rows, ROWS):
        for v in range(0, len(starts), VECTORS):
            w = row // ROWS * len(offsets)
            multiply_tile(planes, starts, v, offsets, packed, w, wide, row, rows, wide.shape[1] * wide.shape[2])


@compiled
def pack_slopes(dy, packed, row, columns, block, r0, r1):
    """packed (blocks of ROWS rows, vectors, ROWS, lanes) of rows r0 to r1 of a block of dy.

    The last channel is repeated where ROWS does not divide them; ``row`` (1, n, ...) is space for one channel.
    """
    n0, n1, c0, c1 = block
    wide, target = row.reshape(-1), packed.reshape(-1)
    blocks, vectors, _, lanes = packed.shape
    for b in range(blocks):
        for r in range(ROWS):
            c = min(c0 + b * ROWS + r, c1 - 1)
            widen_rows(dy, row, columns, (n0, n1, c, c + 1), r0, r1)
            for v in range(vectors):
                copy_row(wide, unsigned(v * lanes), target, unsigned(((b * vectors + v) * ROWS + r) * lanes), lanes)


@compiled
def correlate_planes(planes, starts, offsets, packed, out):
    """out (rows, taps) += the sums of packed slopes times the shifted planes, by register tiles."""
    rows, vectors = out.shape[0], len(starts)
    for row in range(0, rows, ROWS):
        for v in range(0, vectors, STRETCH):
            count, s = min(STRETCH, vectors - v), row // ROWS * vectors
            for k in range(0, len(offsets), VECTORS):
                correlate_tile(planes, starts, v, count, offsets, k, packed, s, out, row, rows, out.shape[1])
