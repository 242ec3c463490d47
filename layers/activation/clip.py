"""Clip."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import register
from .neuron_layer import NeuronLayer


@register
class Clip(NeuronLayer):
    """y = min(max(x, least), most).

    dx = dy where least <= x <= most, 0 elsewhere.

    Shapes
        bottom x: any; top y: as x, in place if wanted.

    Options (clip_param)
        min: least; max: most; both are needed.
    """

    type = "Clip"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.clip_param
        self.least, self.most = param.min, param.max
        if self.least > self.most:
            self.fail(f"min {self.least:g} is above max {self.most:g}")

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.xp.clip(self.input(bottom, top), self.least, self.most, out=top[0].data)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            x = self.kept_input(bottom, top)
            self.xp.multiply(top[0].diff, (x >= self.least) & (x <= self.most), out=bottom[0].diff)
