"""Flatten."""

import math
from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import register
from .reshaping_layer import ReshapingLayer


@register
class Flatten(ReshapingLayer):
    """top = bottom, with the axes from ``axis`` to ``end_axis`` as one.

    Shapes
        bottom: any with these axes
        top: bottom.shape[:axis], product of bottom.shape[axis:end_axis + 1], bottom.shape[end_axis + 1:]

    Options (flatten_param)
        axis: the first (1); end_axis: the last (-1).  Negative ones count from the end.
    """

    type = "Flatten"

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param, shape = self.param.flatten_param, bottom[0].shape
        first, last = self.axis(param.axis, bottom[0]), self.axis(param.end_axis, bottom[0])
        if last < first:
            self.fail(
                f"end_axis {param.end_axis} is before axis {param.axis} in bottom {bottom[0].name!r} of shape {shape}"
            )
        top[0].reshape(*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])
