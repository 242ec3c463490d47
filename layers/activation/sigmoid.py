"""Sigmoid."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import register
from .neuron_layer import NeuronLayer


@register
class Sigmoid(NeuronLayer):
    """y = 1 / (1 + exp(-x)).

    dx = dy y (1 - y).

    Shapes
        bottom x: any; top y: as x, in place if wanted.
    """

    type = "Sigmoid"

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        sigmoid_forward(self.backend, bottom[0].data, top[0].data)
        self.y = self.keep(top[0])

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            sigmoid_backward(self.backend, self.y.data, top[0].diff, bottom[0].diff)


@fusable
def sigmoid_forward(backend: Any, x: Any, y: Any) -> None:
    """y = (tanh(x / 2) + 1) / 2, the sigmoid without overflow; y may be x."""
    xp = backend.xp
    xp.multiply(x, 0.5, out=y)
    xp.tanh(y, out=y)
    y *= 0.5
    y += 0.5


@fusable
def sigmoid_backward(backend: Any, y: Any, dy: Any, dx: Any) -> None:
    """dx = dy * y * (1 - y); dx may be dy."""
    slope = 1 - y
    slope *= y
    backend.xp.multiply(dy, slope, out=dx)


def sigmoid_with_slope(xp: Any, x: Any) -> tuple[Any, Any]:
    """1 / (1 + exp(-x)) and its slope, both to their last digits for large |x| too."""
    small = xp.exp(-xp.abs(x))
    large = 1 / (1 + small)
    slope = small * large * large
    return xp.where(x > 0, large, small * large), slope
