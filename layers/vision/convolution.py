"""Convolution: learnt filters over any number of spatial axes."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import register
from .convolution_base import ConvolutionBase
from .convolve import conv_backward_data, conv_backward_weights, conv_forward
from .window import Sizes


@register
class Convolution(ConvolutionBase):
    """y[n, o, p] = b[o] + sum over c, k of W[o, c, k] x[n, c, p * stride + k * dilation - pad]

    LeCun et al., "Gradient-based learning applied to document recognition", Proc. IEEE 86(11), 1998.
    p and k have as many components as there are spatial axes; x is zero outside of its bounds.  With
    ``group`` g the channels of x and y fall into g groups in order, and y sees x of its own group only.

    - bottoms: x (..., C, *sizes), any number of one shape; all use the same weights
    - tops: y (..., num_output, *windows), as many;
      windows = (size + 2 pad - dilation (kernel - 1) - 1) // stride + 1
    - parameters: W (num_output, C / group, *kernel), b (num_output)

    Options (``convolution_param``): num_output; kernel_size, stride (1), pad (0) and dilation (1), each once
    or once per axis, or kernel_h, kernel_w, ...; group (1); bias_term (true); axis (1), the channels, after
    which all axes are spatial; weight_filler, bias_filler.  engine and force_nd_im2col change nothing.

    Errors: no kernel, or one given twice; a kernel larger than the padded bottom; channels that the groups do
    not divide; bottoms of different shapes.
    """

    type = "Convolution"

    def weight_channels(self) -> tuple[int, int]:
        return self.num_output, self.channels // self.group

    def top_sizes(self, sizes: Sizes) -> Sizes:
        return self.window.output_sizes(sizes)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        weight = self.weight.data.reshape(self.weight_shape)
        bias = None if self.bias is None else self.bias.data
        for x, y in zip(bottom, top, strict=True):
            x_data, y_data = x.data.reshape(self.bottom_shape), y.data.reshape(self.top_shape)
            conv_forward(self.backend, x_data, weight, bias, y_data, self.window, self.group)

    def backward_data(self, dy: Any, dx: Any) -> None:
        weight = self.weight.data.reshape(self.weight_shape)
        conv_backward_data(self.backend, dy, weight, dx, self.window, self.group)

    def backward_weights(self, x: Any, dy: Any, dweight: Any) -> None:
        conv_backward_weights(self.backend, x, dy, dweight, self.window, self.group)
