"""Reduction."""

import math
from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import Layer, register
from ...proto import ReductionParameter


@register
class Reduction(Layer):
    """Over the n values in the axes from ``axis`` on, times c:

    - SUM: y = c sum x; dx = c dy
    - ASUM: y = c sum |x|; dx = c dy sign(x)
    - SUMSQ: y = c sum x^2; dx = 2 c dy x
    - MEAN: y = c/n sum x; dx = c/n dy

    Shapes
        bottom x: any; top y: as x before ``axis``

    Options (reduction_param)
        operation (SUM); axis (0); coeff: c (1).
    """

    type = "Reduction"
    bottoms, tops = (1, 1), (1, 1)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param, shape = self.param.reduction_param, bottom[0].shape
        axis = self.axis(param.axis, bottom[0])
        self.rows = math.prod(shape[:axis]), math.prod(shape[axis:])
        top[0].reshape(*shape[:axis])
        self.operation, self.factor = param.operation, param.coeff
        if self.operation == ReductionParameter.MEAN:
            self.factor /= self.rows[1]

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, y = bottom[0].data.reshape(self.rows), top[0].data.reshape(-1)
        if self.operation == ReductionParameter.ASUM:
            x = self.xp.abs(x)
        elif self.operation == ReductionParameter.SUMSQ:
            x = x * x
        x.sum(axis=1, out=y)
        y *= self.factor

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if not propagate_down[0]:
            return
        x, dx = bottom[0].data.reshape(self.rows), bottom[0].diff.reshape(self.rows)
        dy = top[0].diff.reshape(-1, 1) * self.factor
        if self.operation == ReductionParameter.ASUM:
            self.xp.multiply(self.xp.sign(x), dy, out=dx)
        elif self.operation == ReductionParameter.SUMSQ:
            self.xp.multiply(x, 2 * dy, out=dx)
        else:
            dx[...] = dy
