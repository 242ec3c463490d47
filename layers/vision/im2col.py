"""Im2col: every window of an image as a column."""

import math
from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.checks import shape_text
from ...framework.layer import Layer, register
from .columns import col2im, im2col
from .window import read_window


@register
class Im2col(Layer):
    """y[n, (c, k), p] = x[n, c, p * stride + k * dilation - pad], zero outside of x

    The layout in which a convolution is one matrix product.  p and k have as many components as there are
    spatial axes, and (c, k) counts through channels and kernel as one axis.

    - bottom: x (..., C, *sizes)
    - top: y (..., C prod(kernel), *windows), windows as in Convolution

    Options (``convolution_param``): kernel_size, stride, pad, dilation and axis of Convolution.
    """

    type = "Im2col"
    bottoms, tops = (1, 1), (1, 1)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.convolution_param
        self.channel_axis = self.axis(param.axis, bottom[0])
        self.spatial_axes = bottom[0].ndim - self.channel_axis - 1
        self.window = read_window(self, param, self.spatial_axes)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        shape, a = bottom[0].shape, self.channel_axis
        if len(shape) - a - 1 != self.spatial_axes:
            self.fail(f"bottom {bottom[0].name!r} has shape {shape}, expected {self.spatial_axes} spatial axes")
        sizes, kernel = shape[a + 1 :], self.window.kernel
        windows = self.window.output_sizes(sizes)
        if any(size < 1 for size in windows):
            self.fail(
                f"bottom {bottom[0].name!r} has spatial sizes {shape_text(sizes)},"
                f" too small for kernel {shape_text(kernel)} with pad {shape_text(self.window.pad)}"
            )
        n, channels = math.prod(shape[:a]), shape[a]
        self.image_shape = (n, channels, *sizes)
        self.column_shape = (n, channels, *kernel, *windows)
        top[0].reshape(*shape[:a], channels * math.prod(kernel), *windows)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, columns = bottom[0].data.reshape(self.image_shape), top[0].data.reshape(self.column_shape)
        im2col(self.backend, x, columns, self.window.stride, self.window.pad, self.window.dilation)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            dx, columns = bottom[0].diff.reshape(self.image_shape), top[0].diff.reshape(self.column_shape)
            col2im(self.backend, columns, dx, self.window.stride, self.window.pad, self.window.dilation)
