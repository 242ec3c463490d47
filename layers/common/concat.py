"""Concat."""

from collections.abc import Sequence
from itertools import accumulate

from ...framework.blob import Blob
from ...framework.layer import Layer, register
from .axis_parts import axis_parts


@register
class Concat(Layer):
    """top = the bottoms one after the other along one axis; each bottom's diff is its part of the top's.

    Shapes
        bottoms: at least one, equal but for the size along the axis
        top: as the bottoms, with the sum of the sizes along the axis

    Options (concat_param)
        axis: which (1); concat_dim is its old name.
    """

    type = "Concat"
    bottoms, tops = (1, None), (1, 1)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.concat_param
        if param.HasField("axis") and param.HasField("concat_dim"):
            self.fail("concat_param has axis and concat_dim, which mean the same; give axis alone")
        axis = param.concat_dim if param.HasField("concat_dim") else param.axis
        self.along = self.axis(axis, bottom[0])

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        before, after = bottom[0].shape[: self.along], bottom[0].shape[self.along + 1 :]
        for blob in bottom[1:]:
            if (blob.shape[: self.along], blob.shape[self.along + 1 :]) != (before, after):
                self.fail(
                    f"bottom {blob.name!r} has shape {blob.shape}, expected that of {bottom[0].name!r},"
                    f" {bottom[0].shape}, but for axis {self.along}"
                )
        bounds = list(accumulate([blob.shape[self.along] for blob in bottom], initial=0))
        self.parts = axis_parts(bounds, self.along)
        top[0].reshape(*before, bounds[-1], *after)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        y = top[0].data
        for blob, part in zip(bottom, self.parts, strict=True):
            y[part] = blob.data

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        dy = top[0].diff
        for blob, part, wanted in zip(bottom, self.parts, propagate_down, strict=True):
            if wanted:
                blob.diff[...] = dy[part]
