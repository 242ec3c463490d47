"""Dropout."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import register
from ...proto import TRAIN
from ..fork_options import refuse_fork_options
from .neuron_layer import NeuronLayer
from .slope_layer import slope_backward


@register
class Dropout(NeuronLayer):
    """TRAIN: y = m x / (1 - p), where each m is 0 with probability p, else 1.  TEST: y = x.

    dx = m dy / (1 - p) with the m of the forward pass.

    Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", JMLR 2014.

    Shapes
        bottom x: any; top y: as x, in place if wanted.

    Options (dropout_param)
        dropout_ratio: p, from 0 to below 1 (0.5).
    """

    type = "Dropout"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.dropout_param
        refuse_fork_options(self, param, ("sample_weights_test", "scale_train", "sqrt_scale"))
        self.ratio = float(param.dropout_ratio)
        if not 0 <= self.ratio < 1:
            self.fail(f"dropout_ratio is {self.ratio:g}, expected 0 or more and less than 1")

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        super().reshape(bottom, top)
        if self.phase == TRAIN:
            self.mask = self.xp.empty(bottom[0].shape, self.dtype)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        if self.phase == TRAIN:
            self.backend.uniform(self.mask)
            dropout_forward(self.backend, bottom[0].data, self.mask, top[0].data, self.ratio)
        elif top[0] is not bottom[0]:
            self.xp.copyto(top[0].data, bottom[0].data)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if not propagate_down[0]:
            return
        if self.phase == TRAIN:
            slope_backward(self.backend, top[0].diff, self.mask, bottom[0].diff)
        elif top[0] is not bottom[0]:
            self.xp.copyto(bottom[0].diff, top[0].diff)


@fusable
def dropout_forward(backend: Any, x: Any, mask: Any, y: Any, ratio: float) -> None:
    """mask: uniform numbers on entry, 0 where below ``ratio`` and else 1 / (1 - ratio) on exit; y = x * mask.

    y may be x.
    """
    xp = backend.xp
    xp.greater_equal(mask, ratio, out=mask)
    mask *= 1 / (1 - ratio)
    xp.multiply(x, mask, out=y)
