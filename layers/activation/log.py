"""Log."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import register
from .exp import log_of_base
from .neuron_layer import NeuronLayer


@register
class Log(NeuronLayer):
    """y = log_base(scale x + shift).

    dx = dy scale / ((scale x + shift) ln(base)).

    Shapes
        bottom x: any; top y: as x, in place if wanted.

    Options (log_param)
        base: above 0 and not 1, or -1 for e (-1); scale (1); shift (0).
    """

    type = "Log"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.log_param
        self.scale, self.shift = param.scale, param.shift
        log_base = log_of_base(self, param.base)
        if log_base == 0:
            self.fail("base is 1, which has no logarithm")
        self.factor = 1 / log_base

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        y = top[0].data
        self.xp.log(self._argument(self.input(bottom, top)), out=y)
        y *= self.factor

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            dx = bottom[0].diff
            self.xp.divide(top[0].diff, self._argument(self.kept_input(bottom, top)), out=dx)
            dx *= self.scale * self.factor

    def _argument(self, x: Any) -> Any:
        argument = x * self.scale
        argument += self.shift
        return argument
