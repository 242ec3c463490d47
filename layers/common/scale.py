"""Scale: values multiplied along some axes, and others added if wanted."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import Layer, register
from ...proto import FillerParameter
from ..channel_sums import channel_dots, channel_sums
from ..fork_options import refuse_fork_options
from .channel_parts import channel_parts, learnt_shape, scale_channels


@register
class Scale(Layer):
    """y = x * a + b, with a and b the same along all axes of x that they do not have

    - bottoms: x (any shape); a (x's axes from ``axis`` on, as many as a has), or learnt if there is one bottom
    - top: y like x; in place if it is x
    - parameters: a (``num_axes`` axes of x from ``axis`` on; -1: all, 0: one number), if there is one bottom;
      b, of a's shape, if ``bias_term``

    Options (``scale_param``): axis (1), num_axes (1), filler (constant 1), bias_term (false), bias_filler
    (constant 0).
    """

    type = "Scale"
    bottoms, tops = (1, 2), (1, 1)
    in_place = True
    saves_kept = True

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.scale_param
        refuse_fork_options(self, param, ("dis_mode", "gen_mode", "min_value", "max_value"))
        if len(bottom) == 1:
            shape = learnt_shape(self, bottom[0], param.axis, param.num_axes)
            ones = FillerParameter(type="constant", value=1)
            self.add_blob("scale", shape, param.filler if param.HasField("filler") else ones)
        else:
            shape = bottom[1].shape
        self.bias = self.add_blob("bias", shape, param.bias_filler) if param.bias_term else None

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        scale = bottom[1] if len(bottom) > 1 else self.blobs[0]
        self.parts = channel_parts(self, bottom[0], scale, self.param.scale_param.axis)
        if self.bias is not None and self.bias.shape != scale.shape:
            self.fail(f"bottom {scale.name!r} has shape {scale.shape} now, but the bias has {self.bias.shape}")
        top[0].reshape_like(bottom[0])

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        scale = bottom[1] if len(bottom) > 1 else self.blobs[0]
        x, y = bottom[0].data.reshape(self.parts), top[0].data.reshape(self.parts)
        self.x = self.keep(bottom[0], overwriting=top[0] is bottom[0])
        bias = None if self.bias is None else self.bias.data.reshape(-1)
        scale_channels(self.backend, x, scale.data.reshape(-1), bias, y)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        scale = bottom[1] if len(bottom) > 1 else self.blobs[0]
        x = self.x.data.reshape(self.parts)
        dy = top[0].diff.reshape(self.parts)

        def scale_gradient(out: Any) -> None:
            channel_dots(self.backend, dy, x, out.reshape(-1))

        if self.bias is not None and self.param_propagate_down[-1]:
            self.bias.add_to_diff(lambda out: channel_sums(self.backend, dy, out.reshape(-1)))
        if len(bottom) == 1 and self.param_propagate_down[0]:
            self.blobs[0].add_to_diff(scale_gradient)
        if len(bottom) > 1 and propagate_down[1]:
            scale_gradient(bottom[1].diff)
        if propagate_down[0]:
            dx = bottom[0].diff.reshape(self.parts)
            scale_channels(self.backend, dy, scale.data.reshape(-1), None, dx)
