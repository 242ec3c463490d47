"""Bias: values added along some axes."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import Layer, register
from ..channel_sums import channel_sums
from .channel_parts import channel_parts, learnt_shape


@register
class Bias(Layer):
    """y = x + b, with b the same along all axes of x that it does not have

    - bottoms: x (any shape); b (x's axes from ``axis`` on, as many as b has), or learnt if there is one bottom
    - top: y like x; in place if it is x
    - parameter: b (``num_axes`` axes of x from ``axis`` on; -1: all, 0: one number), if there is one bottom

    Options (``bias_param``): axis (1), num_axes (1), filler (constant 0).
    """

    type = "Bias"
    bottoms, tops = (1, 2), (1, 1)
    in_place = True

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.bias_param
        if len(bottom) == 1:
            self.add_blob("bias", learnt_shape(self, bottom[0], param.axis, param.num_axes), param.filler)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        bias = bottom[1] if len(bottom) > 1 else self.blobs[0]
        self.parts = channel_parts(self, bottom[0], bias, self.param.bias_param.axis)
        top[0].reshape_like(bottom[0])

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        bias = bottom[1] if len(bottom) > 1 else self.blobs[0]
        x, y = bottom[0].data.reshape(self.parts), top[0].data.reshape(self.parts)
        self.xp.add(x, bias.data.reshape(-1, 1), out=y)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        dy = top[0].diff.reshape(self.parts)

        def add_up(out: Any) -> None:
            channel_sums(self.backend, dy, out.reshape(-1))

        if len(bottom) == 1 and self.param_propagate_down[0]:
            self.blobs[0].add_to_diff(add_up)
        if len(bottom) > 1 and propagate_down[1]:
            add_up(bottom[1].diff)
        if propagate_down[0] and bottom[0] is not top[0]:
            bottom[0].diff[...] = top[0].diff
