"""Stochastic pooling over windows of two spatial axes: a window's values, none below 0, are its chances.

Shapes: x (N, C, H, W), all others (N, C, H', W').  Windows start at (i, j) * stride and are cut at the edges.
"""

from typing import Any

from .window import Sizes, padded, window_views, windows_extent

NO_PAD, NO_DILATION = (0, 0), (1, 1)


def pick(backend: Any, x: Any, chance: Any, out: Any, mask: Any, kernel: Sizes, stride: Sizes) -> None:
    """out = one value of each window, drawn by ``chance`` in [0, 1); mask = its place h * W + w.

    It is the first value at which the running sum of the window reaches chance * the whole sum.
    """
    xp = backend.xp
    width = x.shape[3]
    rows, columns = (xp.arange(count, dtype=mask.dtype) * s for count, s in zip(out.shape[2:], stride, strict=True))
    views = list(_views(backend, x, out, kernel, stride))
    threshold = sum(view for _, view in views) * chance
    reached = xp.zeros_like(out)
    picked = xp.zeros(out.shape, bool)
    out[...] = views[0][1]
    mask[...] = rows[:, None] * width + columns
    for (i, j), view in views:
        reached += view
        here = (reached >= threshold) & ~picked
        xp.copyto(out, view, where=here)
        xp.copyto(mask, (rows + i)[:, None] * width + (columns + j), where=here)
        picked |= here


def expect(backend: Any, x: Any, total: Any, out: Any, kernel: Sizes, stride: Sizes) -> None:
    """out = sum x^2 / sum x over each window, total = sum x; 0 where the sum is not above 0."""
    xp = backend.xp
    total.fill(0)
    out.fill(0)
    for _, view in _views(backend, x, out, kernel, stride):
        total += view
        out += view * view
    positive = total > 0
    out /= xp.where(positive, total, 1)
    out *= positive


def expect_backward(backend: Any, x: Any, total: Any, y: Any, dy: Any, dx: Any, kernel: Sizes, stride: Sizes) -> None:
    """dx = the sum over windows of dy (2 x - y) / total."""
    xp = backend.xp
    share = xp.where(total > 0, dy / xp.where(total > 0, total, 1), 0)
    extent = windows_extent(kernel, stride, NO_DILATION, dy.shape[2:])
    target = xp.zeros((*dx.shape[:2], *map(max, zip(extent, dx.shape[2:], strict=True))), dx.dtype)
    sums = window_views(target, kernel, stride, NO_DILATION, dy.shape[2:])
    for (_, view), (_, sum_view) in zip(_views(backend, x, dy, kernel, stride), sums, strict=True):
        sum_view += share * (2 * view - y)
    dx[...] = target[:, :, : dx.shape[2], : dx.shape[3]]


def _views(backend: Any, x: Any, out: Any, kernel: Sizes, stride: Sizes) -> Any:
    extent = windows_extent(kernel, stride, NO_DILATION, out.shape[2:])
    return window_views(padded(backend, x, NO_PAD, extent, 0), kernel, stride, NO_DILATION, out.shape[2:])
