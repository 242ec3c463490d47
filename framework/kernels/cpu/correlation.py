"""What the products of a convolution have in common: where outputs, inputs and weights meet.

Every product slides over padded planes (planes.py).  Forward, output (r, q) meets under window element (i, j)
the padded pixel (r * stride + i * dilation, ...), which is pixel (r + i * dilation // stride, ...) of the
phase i * dilation % stride.  Backward, the input pixels of each phase meet only the elements of that phase,
and the outputs' slopes i * dilation // stride rows higher: a product of stride 1 for each phase.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np


class Windows(NamedTuple):
    """The windows of a convolution: output (r, q) sees pixels from (r * stride_h - pad_h, q * stride_w - pad_w) on."""

    height: int
    width: int
    out_height: int
    out_width: int
    kernel_h: int
    kernel_w: int
    pad_h: int
    pad_w: int
    stride_h: int
    stride_w: int
    dilation_h: int
    dilation_w: int

    @property
    def size(self):
        """Elements of a window."""
        return self.kernel_h * self.kernel_w

    @property
    def single(self):
        """Whether every output pixel sees just one input pixel."""
        return self[4:8] == (1, 1, 0, 0)

    @property
    def straight(self):
        """Whether this is the pixel in its own place."""
        return self.single and self[:2] == self[2:4] and self.stride_h == self.stride_w == 1


def windows_of(image_shape, out_shape, kernel, pad, stride, dilation):
    """The ``Windows`` of size ``kernel`` on (..., H, W) images with (..., H', W') outputs."""
    return Windows(*image_shape[-2:], *out_shape[-2:], *kernel, *pad, *stride, *dilation)


class Correlation(NamedTuple):
    """One product of weights with shifted planes."""

    rows: int  # of the output
    width: int
    taps: tuple  # (phase, row, column, element of the window) of every shift
    margin_h: int  # the largest row and column shift
    margin_w: int
    corner: tuple  # the source pixel at padded (0, 0)
    strides: tuple  # of the source's phases
    target_corner: tuple  # outputs go to this pixel of the target, and every stride from there on
    target_strides: tuple

    @property
    def columns(self):
        """Columns of a phase of a padded plane, and of a row of wide outputs."""
        return self.width + self.margin_w

    def layout(self, rows):
        """Of the padded planes for so many output rows: (rows, columns, stride_h, stride_w)."""
        return rows + self.margin_h, self.columns, *self.strides

    def plane_size(self, rows):
        """Numbers in a padded plane for so many output rows."""
        return (rows + self.margin_h) * self.columns * self.strides[0] * self.strides[1]

    def length(self, rows):
        """Wide numbers from the first output to the last, for so many output rows."""
        return (rows - 1) * self.columns + self.width

    def corner_of_row(self, row):
        """``corner`` for outputs from this row on."""
        return self.corner[0] + row * self.strides[0], self.corner[1]

    def target_corner_of_row(self, row):
        """``target_corner`` for outputs from this row on."""
        return self.target_corner[0] + row * self.target_strides[0], self.target_corner[1]


@lru_cache(maxsize=1024)
def forward_correlation(windows):
    """Outputs from inputs."""
    _, _, out_height, out_width, kernel_h, kernel_w, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w = windows
    taps = tuple(
        (
            i * dilation_h % stride_h * stride_w + j * dilation_w % stride_w,
            i * dilation_h // stride_h,
            j * dilation_w // stride_w,
            i * kernel_w + j,
        )
        for i in range(kernel_h)
        for j in range(kernel_w)
    )
    margin_h, margin_w = (kernel_h - 1) * dilation_h // stride_h, (kernel_w - 1) * dilation_w // stride_w
    strides = (stride_h, stride_w)
    return Correlation(out_height, out_width, taps, margin_h, margin_w, (-pad_h, -pad_w), strides, (0, 0), (1, 1))


@lru_cache(maxsize=1024)
def backward_correlations(windows):
    """Input slopes from output slopes, one product for each phase of the input."""
    height, width, _, _, kernel_h, kernel_w, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w = windows
    margin_h, margin_w = (kernel_h - 1) * dilation_h // stride_h, (kernel_w - 1) * dilation_w // stride_w
    top, left = pad_h // stride_h, pad_w // stride_w  # the first padded pixels inside the image, by phase
    rows, columns = (height - 1 + pad_h) // stride_h + 1 - top, (width - 1 + pad_w) // stride_w + 1 - left

    def of_phase(phase_h, phase_w):
        taps = tuple(
            (0, margin_h - i * dilation_h // stride_h, margin_w - j * dilation_w // stride_w, i * kernel_w + j)
            for i in range(kernel_h)
            for j in range(kernel_w)
            if i * dilation_h % stride_h == phase_h and j * dilation_w % stride_w == phase_w
        )
        corner = (top - margin_h, left - margin_w)
        target_corner = (top * stride_h + phase_h - pad_h, left * stride_w + phase_w - pad_w)
        strides = (stride_h, stride_w)
        return Correlation(rows, columns, taps, margin_h, margin_w, corner, (1, 1), target_corner, strides)

    return tuple(of_phase(phase_h, phase_w) for phase_h in range(stride_h) for phase_w in range(stride_w))


@lru_cache(maxsize=1024)
def source_offsets(correlation, channels, rows):
    """Where each (channel, tap) is in the padded planes of one image, for so many output rows."""
    phase_size = (rows + correlation.margin_h) * correlation.columns
    taps = np.array(correlation.taps, np.int64).reshape(-1, 4)
    in_plane = taps[:, 0] * phase_size + taps[:, 1] * correlation.columns + taps[:, 2]
    return (np.arange(channels)[:, None] * correlation.plane_size(rows) + in_plane).reshape(-1)


@lru_cache(maxsize=1024)
def window_elements(correlation):
    """Which element of the window each tap is."""
    return np.array([element for *_, element in correlation.taps], np.int64)


@lru_cache(maxsize=1024)
def vector_starts(images, image_size, vectors, lanes):
    """Where in the planes the run of each vector of outputs starts."""
    return (np.arange(images)[:, None] * image_size + np.arange(vectors) * lanes).reshape(-1)
