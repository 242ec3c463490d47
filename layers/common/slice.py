"""Slice."""

from collections.abc import Sequence
from itertools import pairwise

from ...framework.blob import Blob
from ...framework.layer import Layer, register
from .axis_parts import axis_parts


@register
class Slice(Layer):
    """The tops are consecutive parts of the bottom along one axis; the bottom's diff is theirs, joined.

    Shapes
        bottom: any with the axis
        tops: as the bottom but for the axis, which is cut at the slice points, or else into equal parts

    Options (slice_param)
        axis: which (1); slice_dim is its old name
        slice_point: where each top but the first begins, increasing.
    """

    type = "Slice"
    bottoms, tops = (1, 1), (1, None)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.slice_param
        if param.HasField("axis") and param.HasField("slice_dim"):
            self.fail("slice_param has axis and slice_dim, which mean the same; give axis alone")
        axis = param.slice_dim if param.HasField("slice_dim") else param.axis
        self.along = self.axis(axis, bottom[0])
        self.points = list(param.slice_point)
        if self.points and len(self.points) != len(top) - 1:
            self.fail(f"{len(self.points)} slice points for {len(top)} tops, expected {len(top) - 1}")

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        shape, size = bottom[0].shape, bottom[0].shape[self.along]
        bounds = [0, *self.points, size]
        if not self.points:
            if size % len(top):
                self.fail(
                    f"bottom {bottom[0].name!r} has size {size} along axis {self.along},"
                    f" which {len(top)} tops cannot share equally; give slice points"
                )
            bounds = [size * i // len(top) for i in range(len(top) + 1)]
        elif any(start >= stop for start, stop in pairwise(bounds)):
            self.fail(f"slice points {self.points} must increase and lie between 0 and {size}")
        self.parts = axis_parts(bounds, self.along)
        for blob, (start, stop) in zip(top, pairwise(bounds), strict=True):
            blob.reshape(*shape[: self.along], stop - start, *shape[self.along + 1 :])

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x = bottom[0].data
        for blob, part in zip(top, self.parts, strict=True):
            blob.data[...] = x[part]

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            dx = bottom[0].diff
            for blob, part in zip(top, self.parts, strict=True):
                dx[part] = blob.diff
