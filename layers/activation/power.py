"""Power."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import register
from .neuron_layer import NeuronLayer


@register
class Power(NeuronLayer):
    """y = (scale x + shift)^power.

    dx = dy scale power (scale x + shift)^(power - 1).

    Shapes
        bottom x: any; top y: as x, in place if wanted.

    Options (power_param)
        power (1), scale (1), shift (0).
    """

    type = "Power"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.power_param
        self.power, self.scale, self.shift = param.power, param.scale, param.shift

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        top[0].data[...] = self._base(self.input(bottom, top)) ** self.power

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if not propagate_down[0]:
            return
        if self.power == 1 or self.scale * self.power == 0:  # the slope is the same everywhere, even at 0
            self.xp.multiply(top[0].diff, self.scale * self.power, out=bottom[0].diff)
        else:
            slope = self._base(self.kept_input(bottom, top)) ** (self.power - 1)
            slope *= self.scale * self.power
            self.xp.multiply(top[0].diff, slope, out=bottom[0].diff)

    def _base(self, x: Any) -> Any:
        base = x * self.scale
        base += self.shift
        return base
