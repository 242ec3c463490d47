"""ELU."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import register
from .neuron_layer import NeuronLayer


@register
class ELU(NeuronLayer):
    """y = x where x > 0, a (exp(x) - 1) elsewhere.

    dx = dy where x > 0, dy (y + a) elsewhere.

    Clevert, Unterthiner and Hochreiter, "Fast and Accurate Deep Network Learning by Exponential Linear Units",
    ICLR 2016.

    Shapes
        bottom x: any; top y: as x, in place if wanted.

    Options (elu_param)
        alpha: a (1).  In place it must not be negative, since x > 0 must be seen from y.
    """

    type = "ELU"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.alpha = self.param.elu_param.alpha
        if self.alpha < 0 and bottom[0] is top[0]:
            self.fail(f"alpha is {self.alpha:g}: below 0 it cannot work in place; name another top")

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x = bottom[0].data
        below = self.alpha * self.xp.expm1(self.xp.minimum(x, 0))
        self.xp.maximum(x, 0, out=top[0].data)
        top[0].data[...] += below
        self.x, self.y = self.keep(bottom[0]), self.keep(top[0])  # in place both are y, which tells the sign of x

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            slope = self.xp.where(self.x.data > 0, 1, self.y.data + self.alpha)
            self.xp.multiply(top[0].diff, slope, out=bottom[0].diff)
