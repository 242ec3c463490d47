"""Exp."""

import math
from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import register
from .neuron_layer import NeuronLayer


@register
class Exp(NeuronLayer):
    """y = base^(scale x + shift).

    dx = dy y scale ln(base).

    Shapes
        bottom x: any; top y: as x, in place if wanted.

    Options (exp_param)
        base: above 0, or -1 for e (-1); scale (1); shift (0).
    """

    type = "Exp"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.exp_param
        log_base = log_of_base(self, param.base)
        self.scale = param.scale * log_base
        self.factor = math.exp(param.shift * log_base)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        y = top[0].data
        self.xp.multiply(bottom[0].data, self.scale, out=y)
        self.xp.exp(y, out=y)
        y *= self.factor
        self.y = self.keep(top[0])

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            dx = bottom[0].diff
            self.xp.multiply(top[0].diff, self.y.data, out=dx)
            dx *= self.scale


def log_of_base(layer: NeuronLayer, base: float) -> float:
    """ln(base), where -1 stands for e; other bases must be above 0."""
    if base == -1:
        return 1.0
    if base <= 0:
        layer.fail(f"base is {base:g}, expected above 0, or -1 for e")
    return math.log(base)
