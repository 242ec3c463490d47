"""Deconvolution: the transpose of Convolution, which makes maps larger."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import register
from .convolution_base import ConvolutionBase
from .convolve import conv_backward_data, conv_backward_weights, conv_forward
from .window import Sizes


@register
class Deconvolution(ConvolutionBase):
    """y[n, o, i] = b[o] + sum of W[c, o, k] x[n, c, p] over all c, k, p with p * stride + k * dilation - pad = i

    Zeiler et al., "Deconvolutional networks", CVPR 2010.  Forward is the backward of a Convolution from y to x,
    and backward its forward.

    - bottoms: x (..., C, *sizes), any number of one shape; all use the same weights
    - tops: y (..., num_output, *larger), as many;
      larger = stride (size - 1) + dilation (kernel - 1) + 1 - 2 pad
    - parameters: W (C, num_output / group, *kernel), b (num_output)

    Options (``convolution_param``): those of Convolution.  Upsampling by a factor f: kernel_size 2f - f % 2,
    stride f, pad ceil((f - 1) / 2), num_output and group equal to C, weight_filler bilinear, no bias.

    Errors: those of Convolution; a pad that leaves nothing of the top.
    """

    type = "Deconvolution"

    def weight_channels(self) -> tuple[int, int]:
        return self.channels, self.num_output // self.group

    def top_sizes(self, sizes: Sizes) -> Sizes:
        return self.window.input_sizes(sizes)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        weight = self.weight.data.reshape(self.weight_shape)
        for x, y in zip(bottom, top, strict=True):
            x_data, y_data = x.data.reshape(self.bottom_shape), y.data.reshape(self.top_shape)
            conv_backward_data(self.backend, x_data, weight, y_data, self.window, self.group)
            if self.bias is not None:
                per_channel = y_data.reshape(y_data.shape[0], self.num_output, -1)
                per_channel += self.bias.data[:, None]

    def backward_data(self, dy: Any, dx: Any) -> None:
        weight = self.weight.data.reshape(self.weight_shape)
        conv_forward(self.backend, dy, weight, None, dx, self.window, self.group)

    def backward_weights(self, x: Any, dy: Any, dweight: Any) -> None:
        conv_backward_weights(self.backend, dy, x, dweight, self.window, self.group)
