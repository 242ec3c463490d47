"""TanH."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import register
from .neuron_layer import NeuronLayer


@register
class TanH(NeuronLayer):
    """y = tanh(x).

    dx = dy (1 - y^2).

    Shapes
        bottom x: any; top y: as x, in place if wanted.
    """

    type = "TanH"

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        tanh_forward(self.backend, bottom[0].data, top[0].data)
        self.y = self.keep(top[0])

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            tanh_backward(self.backend, self.y.data, top[0].diff, bottom[0].diff)


@fusable
def tanh_forward(backend: Any, x: Any, y: Any) -> None:
    """y = tanh(x); y may be x."""
    backend.xp.tanh(x, out=y)


@fusable
def tanh_backward(backend: Any, y: Any, dy: Any, dx: Any) -> None:
    """dx = dy * (1 - y^2); dx may be dy."""
    xp = backend.xp
    slope = xp.multiply(y, y)
    xp.subtract(1, slope, out=slope)
    xp.multiply(dy, slope, out=dx)
