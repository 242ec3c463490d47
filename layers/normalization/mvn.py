"""MVN: mean-variance normalisation."""

import math
from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import Layer, register


@register
class MVN(Layer):
    """y = (x - m) / (s + eps), m the mean and s the standard deviation of each channel of each item.

    dx = (dy - mean(dy) - y mean(dy y) (s + eps) / s) / (s + eps); without the variance y = x - m and
    dx = dy - mean(dy).

    Shapes
        bottom x: N x C x ...; top y: as x, in place if wanted

    Options (mvn_param)
        normalize_variance (true); across_channels: one mean and deviation for each item (false); eps (1e-9).
    """

    type = "MVN"
    bottoms, tops = (1, 1), (1, 1)
    in_place = True

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.mvn_param
        if param.add_eps_before_sqrt:
            self.fail("add_eps_before_sqrt is an option of a fork of Caffe that type 'MVN' does not have; remove it")
        self.eps, self.divides = param.eps, param.normalize_variance
        self.axes = 1 if param.across_channels else 2

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        shape = bottom[0].shape
        if len(shape) < 2:
            self.fail(f"bottom {bottom[0].name!r} has shape {shape}, expected items and channels")
        top[0].reshape(*shape)
        self.rows = math.prod(shape[: self.axes]), math.prod(shape[self.axes :])

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, y = bottom[0].data.reshape(self.rows), top[0].data.reshape(self.rows)
        self.xp.subtract(x, x.mean(axis=1, keepdims=True), out=y)
        if self.divides:
            self.deviation = self.xp.sqrt((y * y).mean(axis=1, keepdims=True))
            y /= self.deviation + self.eps
        self.y = self.keep(top[0])

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if not propagate_down[0]:
            return
        dy, dx = top[0].diff.reshape(self.rows), bottom[0].diff.reshape(self.rows)
        if not self.divides:
            self.xp.subtract(dy, dy.mean(axis=1, keepdims=True), out=dx)
            return
        y = self.y.data.reshape(self.rows)
        tiny = self.xp.finfo(self.dtype).tiny  # where s is 0, so is y
        pull = (dy * y).mean(axis=1, keepdims=True) * (1 + self.eps / self.xp.maximum(self.deviation, tiny))
        self.xp.subtract(dy, dy.mean(axis=1, keepdims=True) + y * pull, out=dx)
        dx /= self.deviation + self.eps
