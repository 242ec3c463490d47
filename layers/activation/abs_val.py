"""AbsVal."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import register
from .neuron_layer import NeuronLayer


@register
class AbsVal(NeuronLayer):
    """y = |x|.

    dx = dy sign(x), with sign(0) = 0.

    Shapes
        bottom x: any; top y: as x, in place if wanted.
    """

    type = "AbsVal"

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.xp.abs(self.input(bottom, top), out=top[0].data)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            sign = self.xp.sign(self.kept_input(bottom, top))
            self.xp.multiply(top[0].diff, sign, out=bottom[0].diff)
