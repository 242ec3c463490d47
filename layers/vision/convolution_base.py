"""What Convolution and Deconvolution share: options, parameters and shapes."""

import math
from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.checks import shape_text
from ...framework.layer import Layer
from ..channel_sums import channel_sums
from ..fork_options import refuse_fork_options
from .window import Sizes, read_window

FORK_OPTIONS = (
    "pad_l", "pad_r", "pad_t", "pad_b", "pad_type", "relu", "fusion_type", "coeff", "shape_offset",
    "submanifold_sparse", "dis_mode", "gen_mode", "weight_fixed",
)  # fmt: skip


class ConvolutionBase(Layer):
    """Weights that slide over the spatial axes, the same for every bottom.

    A subclass says how many channels each side of the weight blob has, and what sizes the tops have.
    Bottoms and tops are seen as (N, channels, *sizes) with at least two spatial axes: those before ``axis``
    count as N, and where there are fewer than two spatial axes, axes of size 1 stand in for them.
    """

    bottoms, tops = (1, None), (1, None)
    bottoms_equal_tops = True

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.convolution_param
        refuse_fork_options(self, param, FORK_OPTIONS)
        self.channel_axis = self.axis(param.axis, bottom[0])
        self.spatial_axes = bottom[0].ndim - self.channel_axis - 1
        window = read_window(self, param, self.spatial_axes)
        self.kernel = window.kernel
        self.unit_axes = max(0, 2 - self.spatial_axes)
        self.window = window.with_leading_axes(self.unit_axes)
        self.channels = bottom[0].shape[self.channel_axis]
        self.num_output, self.group = param.num_output, param.group
        self._check_channels(bottom[0])
        shape = (*self.weight_channels(), *self.kernel)
        self.weight = self.add_blob("weight", shape, param.weight_filler)
        self.weight_shape = (*shape[:2], *self.window.kernel)
        self.bias = self.add_blob("bias", (self.num_output,), param.bias_filler) if param.bias_term else None

    def weight_channels(self) -> tuple[int, int]:
        """The first two axes of the weight blob."""
        raise NotImplementedError

    def top_sizes(self, sizes: Sizes) -> Sizes:
        """The spatial sizes of a top whose bottom has ``sizes``."""
        raise NotImplementedError

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        first = bottom[0]
        for blob in bottom:
            if blob.shape != first.shape:
                self.fail(
                    f"bottom {blob.name!r} has shape {blob.shape}, but bottom {first.name!r} has {first.shape};"
                    " all bottoms must have one shape"
                )
        a = self.channel_axis
        spatial_axes = first.ndim - a - 1
        if spatial_axes != self.spatial_axes:
            self.fail(f"bottom {first.name!r} has {spatial_axes} spatial axes now, expected {self.spatial_axes}")
        if first.shape[a] != self.channels:
            self.fail(f"bottom {first.name!r} has {first.shape[a]} channels now, expected {self.channels}")
        outer, ones = first.shape[:a], (1,) * self.unit_axes
        sizes = ones + first.shape[a + 1 :]
        top_sizes = self.top_sizes(sizes)
        if any(size < 1 for size in top_sizes):
            self.fail(
                f"bottom {first.name!r} has spatial sizes {shape_text(first.shape[a + 1 :])}, too small for"
                f" kernel {shape_text(self.kernel)} with dilation {shape_text(self.window.dilation[self.unit_axes :])}"
                f" and pad {shape_text(self.window.pad[self.unit_axes :])}:"
                f" the top would have sizes {shape_text(top_sizes[self.unit_axes :])}"
            )
        self.bottom_shape = (math.prod(outer), self.channels, *sizes)
        self.top_shape = (math.prod(outer), self.num_output, *top_sizes)
        for blob in top:
            blob.reshape(*outer, self.num_output, *top_sizes[self.unit_axes :])

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        for y, down, x in zip(top, propagate_down, bottom, strict=True):
            dy = y.diff.reshape(self.top_shape)
            self._add_param_diffs(x.data.reshape(self.bottom_shape), dy)
            if down:
                self.backward_data(dy, x.diff.reshape(self.bottom_shape))

    def _add_param_diffs(self, x: Any, dy: Any) -> None:
        if self.bias is not None and self.param_propagate_down[1]:
            self.bias.add_to_diff(lambda out: channel_sums(self.backend, dy, out))
        if self.param_propagate_down[0]:
            self.weight.add_to_diff(lambda out: self.backward_weights(x, dy, out.reshape(self.weight_shape)))

    def backward_data(self, dy: Any, dx: Any) -> None:
        """dx from dy."""
        raise NotImplementedError

    def backward_weights(self, x: Any, dy: Any, dweight: Any) -> None:
        """dweight from x and dy."""
        raise NotImplementedError

    def _check_channels(self, bottom: Blob) -> None:
        if self.num_output < 1:
            self.fail(f"num_output is {self.num_output}, expected at least 1")
        if self.group < 1:
            self.fail(f"group is {self.group}, expected at least 1")
        if self.channels % self.group:
            self.fail(f"bottom {bottom.name!r} has {self.channels} channels, expected a multiple of group {self.group}")
        if self.num_output % self.group:
            self.fail(f"num_output is {self.num_output}, expected a multiple of group {self.group}")
