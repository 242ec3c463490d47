"""The base of activations that find their slope together with their value."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import LayerContext
from ...proto import LayerParameter
from .neuron_layer import NeuronLayer


class SlopeLayer(NeuronLayer):
    """y = f(x) and, where backward will run, the slope f'(x), which is all that it needs; dx = dy f'(x).

    A subclass writes ``evaluate(x, y, slope)``, where y may be x, and slope is None if nobody wants it.
    """

    def __init__(self, param: LayerParameter, context: LayerContext | None = None):
        super().__init__(param, context)
        self.slope = Blob((), self.dtype, self.backend, f"{self.name}.slope")  # takes memory when it is used

    def evaluate(self, x: Any, y: Any, slope: Any) -> None:
        """y = f(x), slope = f'(x)."""
        raise NotImplementedError

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        super().reshape(bottom, top)
        self.slope.reshape_like(bottom[0])

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.evaluate(bottom[0].data, top[0].data, self.slope.data if self.needs_backward else None)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            slope_backward(self.backend, top[0].diff, self.slope.data, bottom[0].diff)


@fusable
def slope_backward(backend: Any, dy: Any, slope: Any, dx: Any) -> None:
    """dx = dy * slope; dx may be dy."""
    backend.xp.multiply(dy, slope, out=dx)
