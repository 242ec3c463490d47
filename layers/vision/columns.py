"""im2col and col2im: every window of an image as a column, and the sum of columns back into an image."""

from typing import Any

from .window import Sizes, needs_padding, overlap, padded, window_views, windows_extent


def im2col(backend: Any, x: Any, columns: Any, stride: Sizes, pad: Sizes, dilation: Sizes) -> None:
    """columns[n, c, k, p] = x[n, c, p * stride + k * dilation - pad], zero outside of x.

    x (N, C, *sizes), columns (N, C, *kernel, *windows); columns may be any strided view.
    """
    kernel, windows = _kernel_and_windows(columns)
    extent = windows_extent(kernel, stride, dilation, windows)
    source = padded(backend, x, pad, extent, 0)
    for offset, view in window_views(source, kernel, stride, dilation, windows):
        columns[(slice(None), slice(None), *offset)] = view


def col2im(backend: Any, columns: Any, x: Any, stride: Sizes, pad: Sizes, dilation: Sizes) -> None:
    """x[n, c, i] = sum of columns[n, c, k, p] over all k, p with p * stride + k * dilation - pad = i."""
    kernel, windows = _kernel_and_windows(columns)
    extent = windows_extent(kernel, stride, dilation, windows)
    target = x
    if needs_padding(x, pad, extent):
        target = backend.scratch("window.padded", (*x.shape[:2], *extent), x.dtype)
    target.fill(0)
    for offset, view in window_views(target, kernel, stride, dilation, windows):
        view += columns[(slice(None), slice(None), *offset)]
    if target is not x:
        outer, inner = overlap(x.shape[2:], pad, extent)
        x.fill(0)
        x[inner] = target[outer]


def _kernel_and_windows(columns: Any) -> tuple[Sizes, Sizes]:
    axes = (columns.ndim - 2) // 2
    return columns.shape[2 : 2 + axes], columns.shape[2 + axes :]
