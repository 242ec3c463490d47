"""Threshold."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import register
from .neuron_layer import NeuronLayer


@register
class Threshold(NeuronLayer):
    """y = 1 where x > t, 0 elsewhere.  It has no gradient.

    Shapes
        bottom x: any; top y: as x, in place if wanted.

    Options (threshold_param)
        threshold: t (0).
    """

    type = "Threshold"

    def allow_force_backward(self, bottom_index: int) -> bool:
        return False

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.xp.greater(bottom[0].data, self.param.threshold_param.threshold, out=top[0].data)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            self.fail("a step has no gradient; put propagate_down: false here")
