"""Pooling over windows of two spatial axes.

Window (i, j) starts at (i, j) * stride - pad and is cut at the edges of the image; every window has at least
one pixel of it.  Shapes: x (N, C, H, W), out and dy (N, C, H', W'); a mask holds h * W + w.
"""

from typing import Any

from ...framework.fusable import fusable
from .window import Sizes, needs_padding, overlap, padded, window_views, windows_extent

NO_DILATION = (1, 1)


@fusable
def max_pool2d_forward(backend: Any, x: Any, out: Any, mask: Any, kernel: Sizes, stride: Sizes, pad: Sizes) -> None:
    """out = the largest value of each window, mask = the place of the first such value; NaN counts as largest."""
    xp = backend.xp
    windows, width = out.shape[2:], x.shape[3]
    source = padded(backend, x, pad, windows_extent(kernel, stride, NO_DILATION, windows), -xp.inf)
    rows, columns = (
        xp.arange(count, dtype=mask.dtype) * s - p for count, s, p in zip(windows, stride, pad, strict=True)
    )
    mask[...] = xp.maximum(rows, 0)[:, None] * width + xp.maximum(columns, 0)
    out.fill(-xp.inf)
    views = list(window_views(source, kernel, stride, NO_DILATION, windows))
    for _, view in views:
        xp.maximum(out, view, out=out)
    largest = backend.scratch("pool.largest", out.shape, bool)
    for (i, j), view in reversed(views):  # so that the first place of a window is written last
        xp.equal(view, out, out=largest)
        largest |= xp.isnan(view)
        xp.copyto(mask, (rows + i)[:, None] * width + (columns + j), where=largest)


@fusable
def max_pool2d_backward(backend: Any, dy: Any, mask: Any, dx: Any) -> None:
    """dx = each dy added at the place that its mask names."""
    n, channels, h, w = dx.shape
    dx.fill(0)
    planes = backend.xp.arange(n * channels) * (h * w)
    places = planes[:, None] + mask.reshape(n * channels, -1)
    backend.xp.add.at(dx.reshape(-1), places.reshape(-1), dy.reshape(-1))


@fusable
def ave_pool2d_forward(backend: Any, x: Any, out: Any, kernel: Sizes, stride: Sizes, pad: Sizes) -> None:
    """out = the sum of each window / its area."""
    windows = out.shape[2:]
    source = padded(backend, x, pad, windows_extent(kernel, stride, NO_DILATION, windows), 0)
    out.fill(0)
    for _, view in window_views(source, kernel, stride, NO_DILATION, windows):
        out += view
    out /= _areas(backend, x, windows, kernel, stride, pad)


@fusable
def ave_pool2d_backward(backend: Any, dy: Any, dx: Any, kernel: Sizes, stride: Sizes, pad: Sizes) -> None:
    """dx = the sum over the windows around it of dy / area."""
    windows = dy.shape[2:]
    extent = windows_extent(kernel, stride, NO_DILATION, windows)
    target = dx
    if needs_padding(dx, pad, extent):
        target = backend.scratch("window.padded", (*dx.shape[:2], *extent), dx.dtype)
    target.fill(0)
    share = dy / _areas(backend, dx, windows, kernel, stride, pad)
    for _, view in window_views(target, kernel, stride, NO_DILATION, windows):
        view += share
    if target is not dx:
        outer, inner = overlap(dx.shape[2:], pad, extent)
        dx.fill(0)
        dx[inner] = target[outer]


def _areas(backend: Any, x: Any, windows: Sizes, kernel: Sizes, stride: Sizes, pad: Sizes) -> Any:
    """The area (H', W') of each window within the padded image: padding counts, what lies beyond does not."""
    xp = backend.xp
    heights, widths = (
        xp.minimum(k, size + 2 * p - xp.arange(count) * s).astype(x.dtype)
        for count, k, s, p, size in zip(windows, kernel, stride, pad, x.shape[2:], strict=True)
    )
    return heights[:, None] * widths
