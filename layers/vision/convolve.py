"""Convolution as one matrix product: the weights times the windows of the image, laid out as columns.

Over any number of spatial axes; over two of them a backend may have a fused version.  Shapes: x (N, C, *sizes),
weight (O, C / group, *kernel), y (N, O, *windows).  Columns are made for a few images at a time, so that they
take little memory.
"""

import math
from collections.abc import Iterator
from typing import Any

from ...framework.fusable import fusable
from ...framework.matmul import matmul
from .columns import col2im, im2col
from .window import Sizes, Window

COLUMN_VALUES = 1 << 22  # about as many values as the columns of one product have


def conv_forward(backend: Any, x: Any, weight: Any, bias: Any, out: Any, window: Window, group: int) -> None:
    """out = weight * x + bias (a cross-correlation, the kernel is not flipped); bias (O,) or None."""
    run = conv2d_forward if x.ndim == 4 else _forward
    run(backend, x, weight, bias, out, window.pad, window.stride, window.dilation, group)


def conv_backward_data(backend: Any, dy: Any, weight: Any, dx: Any, window: Window, group: int) -> None:
    """dx = the gradient of the convolution with respect to x."""
    run = conv2d_backward_data if dx.ndim == 4 else _backward_data
    run(backend, dy, weight, dx, window.pad, window.stride, window.dilation, group)


def conv_backward_weights(backend: Any, x: Any, dy: Any, dweight: Any, window: Window, group: int) -> None:
    """dweight = the gradient of the convolution with respect to weight."""
    run = conv2d_backward_weights if x.ndim == 4 else _backward_weights
    run(backend, x, dy, dweight, window.pad, window.stride, window.dilation, group)


@fusable
def conv2d_forward(
    backend: Any, x: Any, weight: Any, bias: Any, out: Any, pad: Sizes, stride: Sizes, dilation: Sizes, group: int
) -> None:
    """conv_forward over two spatial axes."""
    _forward(backend, x, weight, bias, out, pad, stride, dilation, group)


@fusable
def conv2d_backward_data(
    backend: Any, dy: Any, weight: Any, dx: Any, pad: Sizes, stride: Sizes, dilation: Sizes, group: int
) -> None:
    """conv_backward_data over two spatial axes."""
    _backward_data(backend, dy, weight, dx, pad, stride, dilation, group)


@fusable
def conv2d_backward_weights(
    backend: Any, x: Any, dy: Any, dweight: Any, pad: Sizes, stride: Sizes, dilation: Sizes, group: int
) -> None:
    """conv_backward_weights over two spatial axes."""
    _backward_weights(backend, x, dy, dweight, pad, stride, dilation, group)


def _forward(
    backend: Any, x: Any, weight: Any, bias: Any, out: Any, pad: Sizes, stride: Sizes, dilation: Sizes, group: int
) -> None:
    n, channels = x.shape[:2]
    kernel, windows = weight.shape[2:], out.shape[2:]
    w = weight.reshape(group, weight.shape[0] // group, -1)  # (G, O/G, K)
    y = out.reshape(n, group, w.shape[1], -1)  # (N, G, O/G, P)
    for images in _chunks(n, channels * math.prod(kernel + windows)):
        if _is_pointwise(kernel, stride, pad):
            columns = x[images]
        else:
            shape = (images.stop - images.start, channels, *kernel, *windows)
            columns = backend.scratch("conv.columns", shape, x.dtype)
            im2col(backend, x[images], columns, stride, pad, dilation)
        matmul(backend, w, columns.reshape(-1, group, w.shape[2], y.shape[3]), y[images])
    if bias is not None:
        per_channel = out.reshape(n, out.shape[1], -1)
        per_channel += bias[:, None]


def _backward_data(
    backend: Any, dy: Any, weight: Any, dx: Any, pad: Sizes, stride: Sizes, dilation: Sizes, group: int
) -> None:
    n, channels = dx.shape[:2]
    kernel, windows = weight.shape[2:], dy.shape[2:]
    w = weight.reshape(group, weight.shape[0] // group, -1)  # (G, O/G, K)
    dy = dy.reshape(n, group, w.shape[1], -1)  # (N, G, O/G, P)
    for images in _chunks(n, channels * math.prod(kernel + windows)):
        pointwise = _is_pointwise(kernel, stride, pad)
        shape = (images.stop - images.start, channels, *kernel, *windows)
        columns = dx[images] if pointwise else backend.scratch("conv.columns", shape, dx.dtype)
        matmul(backend, w.swapaxes(1, 2), dy[images], columns.reshape(-1, group, w.shape[2], dy.shape[3]))
        if not pointwise:
            col2im(backend, columns, dx[images], stride, pad, dilation)


def _backward_weights(
    backend: Any, x: Any, dy: Any, dweight: Any, pad: Sizes, stride: Sizes, dilation: Sizes, group: int
) -> None:
    n, channels = x.shape[:2]
    outputs, kernel, windows = dweight.shape[0], dweight.shape[2:], dy.shape[2:]
    positions = math.prod(windows)
    dw = dweight.reshape(group, outputs // group, -1)  # (G, O/G, K)
    dw.fill(0)
    part = backend.scratch("conv.part", dw.shape, dw.dtype)
    dy = dy.reshape(n, outputs, positions)
    # Channels come before images here, so that one product sums over images and positions.
    for images in _chunks(n, channels * math.prod(kernel + windows)):
        count = images.stop - images.start
        columns = backend.scratch("conv.columns", (channels, *kernel, count, *windows), x.dtype)
        images_first = backend.xp.moveaxis(columns, 1 + len(kernel), 0)
        im2col(backend, x[images], images_first, stride, pad, dilation)
        dy_columns = backend.scratch("conv.dy", (outputs, count, positions), dy.dtype)
        dy_columns[...] = dy[images].swapaxes(0, 1)
        matmul(
            backend,
            dy_columns.reshape(group, outputs // group, count * positions),
            columns.reshape(group, dw.shape[2], count * positions).swapaxes(1, 2),
            part,
        )
        dw += part


def _is_pointwise(kernel: Sizes, stride: Sizes, pad: Sizes) -> bool:
    """Whether the columns are the image itself."""
    return all(k == 1 for k in kernel) and all(s == 1 for s in stride) and not any(pad)


def _chunks(images: int, values: int) -> Iterator[slice]:
    """Slices of the batch whose columns, ``values`` an image, have about COLUMN_VALUES values."""
    step = max(1, COLUMN_VALUES // max(1, values))
    for start in range(0, images, step):
        yield slice(start, min(start + step, images))
