"""Permute: the axes in another order."""

from collections.abc import Sequence

import numpy as np

from ...framework.blob import Blob
from ...framework.layer import Layer, register


class AxisOrderLayer(Layer):
    """y[i_order[0], i_order[1], ...] = x[i_0, i_1, ...]: axis k of y is axis order[k] of x; dx is dy put back."""

    bottoms, tops = (1, 1), (1, 1)

    def axis_order(self, bottom: Blob) -> list[int]:
        """For each axis of the top the bottom's, as the prototxt says."""
        raise NotImplementedError

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, order = bottom[0], self.axis_order(bottom[0])
        if sorted(order) != list(range(x.ndim)):
            self.fail(f"the order {order} is not one of the {x.ndim} axes of bottom {x.name!r} of shape {x.shape}")
        self.order, self.back = order, [int(axis) for axis in np.argsort(order)]
        top[0].reshape(*(x.shape[axis] for axis in order))

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        top[0].data[...] = bottom[0].data.transpose(self.order)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            bottom[0].diff[...] = top[0].diff.transpose(self.back)


@register
class Permute(AxisOrderLayer):
    """y = x with its axes in another order: axis k of y is axis order[k] of x.

    dx = dy with the axes put back.  From SSD's fork of Caffe.

    Shapes
        bottom x: any; top y: x's sizes in that order

    Options (permute_param)
        order: axes of x; those that are not named follow in their own order.
    """

    type = "Permute"

    def axis_order(self, bottom: Blob) -> list[int]:
        order = list(self.param.permute_param.order)
        return order + [axis for axis in range(bottom.ndim) if axis not in order]
