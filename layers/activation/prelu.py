"""PReLU."""

import math
from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import register
from ...proto import FillerParameter
from .neuron_layer import NeuronLayer


@register
class PReLU(NeuronLayer):
    """y = x where x > 0, a_c x elsewhere, with a learnt slope a for each channel c.

    dx = dy where x > 0, a_c dy elsewhere; da_c = sum of dy x where x <= 0.

    He et al., "Delving Deep into Rectifiers", ICCV 2015.

    Shapes
        bottom x: N x C x ...; top y: as x, in place if wanted
        parameter: a (C), or a scalar with ``channel_shared``.

    Options (prelu_param)
        filler: of a (constant 0.25); channel_shared (false).
    """

    type = "PReLU"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.prelu_param
        if bottom[0].ndim < 2:
            self.fail(f"bottom {bottom[0].name!r} has shape {bottom[0].shape}, expected channels on axis 1")
        shape = () if param.channel_shared else (bottom[0].shape[1],)
        filler = param.filler if param.HasField("filler") else FillerParameter(value=0.25)
        self.a = self.add_blob("slope", shape, filler)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        shape = bottom[0].shape
        if self.a.shape and shape[1] != self.a.count:
            self.fail(f"bottom {bottom[0].name!r} has shape {shape}, expected {self.a.count} channels on axis 1")
        super().reshape(bottom, top)
        self.rows = shape[0], shape[1], math.prod(shape[2:])

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, y = self.input(bottom, top).reshape(self.rows), top[0].data.reshape(self.rows)
        self.xp.multiply(x, self._slopes(x), out=y)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        x, dy = self.kept_input(bottom, top).reshape(self.rows), top[0].diff.reshape(self.rows)
        if self.param_propagate_down[0]:
            below = dy * self.xp.minimum(x, 0)
            self.a.add_to_diff(lambda da: below.sum(axis=(0, 2) if da.shape else None, out=da))
        if propagate_down[0]:
            self.xp.multiply(dy, self._slopes(x), out=bottom[0].diff.reshape(self.rows))

    def _slopes(self, x: Any) -> Any:
        """1 where x > 0, the channel's slope elsewhere."""
        return self.xp.where(x > 0, 1, self.a.data.reshape(-1, 1))
