"""Swish."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import register
from .neuron_layer import NeuronLayer
from .sigmoid import sigmoid_forward


@register
class Swish(NeuronLayer):
    """y = x s, with s = sigmoid(b x).

    dx = dy (b y + s (1 - b y)).

    Ramachandran, Zoph and Le, "Searching for Activation Functions", 2017 (arXiv:1710.05941).

    Shapes
        bottom x: any; top y: as x, in place if wanted.

    Options (swish_param)
        beta: b (1).
    """

    type = "Swish"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.beta = self.param.swish_param.beta

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        super().reshape(bottom, top)
        self.s = self.xp.empty(bottom[0].shape, self.dtype)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x = bottom[0].data
        self.xp.multiply(x, self.beta, out=self.s)
        sigmoid_forward(self.backend, self.s, self.s)
        self.xp.multiply(x, self.s, out=top[0].data)
        self.y = self.keep(top[0])

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            scaled = self.beta * self.y.data
            slope = scaled + self.s * (1 - scaled)
            self.xp.multiply(top[0].diff, slope, out=bottom[0].diff)
