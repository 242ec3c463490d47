"""Reshape."""

import math
from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import register
from ..fork_options import refuse_fork_options
from .reshaping_layer import ReshapingLayer


@register
class Reshape(ReshapingLayer):
    """top = bottom in another shape of as many values.

    Shapes
        bottom: any
        top: bottom's, with ``num_axes`` axes from ``axis`` on replaced by ``shape``

    Options (reshape_param)
        shape: the new sizes; 0 keeps the bottom's size at this place, one -1 takes what is left
        axis: the first axis replaced (0); -1 means behind the last
        num_axes: how many are replaced (-1: all that follow).
    """

    type = "Reshape"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        refuse_fork_options(self, self.param.reshape_param, ("pixelshuffler",))
        self.sizes = list(self.param.reshape_param.shape.dim)
        if self.sizes.count(-1) > 1 or any(size < -1 for size in self.sizes):
            self.fail(f"shape {self.sizes} is not of sizes, 0 (as the bottom) and at most one -1 (what is left)")

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        old = bottom[0].shape
        first, last = self._replaced_axes(bottom[0])
        new = list(self.sizes)
        for i, size in enumerate(self.sizes):
            if size == 0:
                if first + i >= len(old):
                    self.fail(f"shape {self.sizes} keeps axis {first + i} of bottom {bottom[0].name!r} of shape {old}")
                new[i] = old[first + i]
        if -1 in new:
            known = math.prod(old[:first]) * math.prod(size for size in new if size != -1) * math.prod(old[last:])
            if known == 0 or bottom[0].count % known:
                self._fail_count(bottom[0])
            new[new.index(-1)] = bottom[0].count // known
        shape = (*old[:first], *new, *old[last:])
        if math.prod(shape) != bottom[0].count:
            self._fail_count(bottom[0])
        top[0].reshape(*shape)

    def _replaced_axes(self, bottom: Blob) -> tuple[int, int]:
        param = self.param.reshape_param
        first = param.axis if param.axis >= 0 else bottom.ndim + param.axis + 1
        last = bottom.ndim if param.num_axes == -1 else first + param.num_axes
        if not (0 <= first <= last <= bottom.ndim):
            self.fail(
                f"axis {param.axis} and num_axes {param.num_axes} do not fit bottom {bottom.name!r}"
                f" of shape {bottom.shape}"
            )
        return first, last

    def _fail_count(self, bottom: Blob) -> None:
        self.fail(
            f"bottom {bottom.name!r} of shape {bottom.shape} has {bottom.count} values: shape {self.sizes} does not fit"
        )
