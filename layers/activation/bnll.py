"""BNLL: the binomial normal log likelihood, also called softplus."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import register
from .neuron_layer import NeuronLayer


@register
class BNLL(NeuronLayer):
    """y = log(1 + exp(x)).

    dx = dy (1 - exp(-y)), which is dy sigmoid(x).

    Shapes
        bottom x: any; top y: as x, in place if wanted.
    """

    type = "BNLL"

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.xp.logaddexp(bottom[0].data, 0, out=top[0].data)
        self.y = self.keep(top[0])

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            slope = -self.xp.expm1(-self.y.data)
            self.xp.multiply(top[0].diff, slope, out=bottom[0].diff)
