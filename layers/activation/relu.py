"""ReLU, plain and leaky."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import register
from ..fork_options import refuse_fork_options
from .neuron_layer import NeuronLayer


@register
class ReLU(NeuronLayer):
    """y = max(x, 0) + a min(x, 0), with a = 0 by default.

    dx = dy where x > 0, a dy elsewhere.

    Nair and Hinton, "Rectified Linear Units Improve Restricted Boltzmann Machines", ICML 2010; leaky: Maas,
    Hannun and Ng, ICML 2013.

    Shapes
        bottom x: any; top y: as x, in place if wanted.

    Options (relu_param)
        negative_slope: a.  In place it must not be negative, since x > 0 must be seen from y.
    """

    type = "ReLU"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        refuse_fork_options(self, self.param.relu_param, ("maximum", "minimum", "relu6"))
        self.slope = float(self.param.relu_param.negative_slope)
        if self.slope < 0 and bottom[0] is top[0]:
            self.fail(f"negative_slope is {self.slope:g}: below 0 it cannot work in place; name another top")

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        relu_forward(self.backend, bottom[0].data, top[0].data, self.slope)
        self.x = self.keep(bottom[0])  # in place this is y, which tells the sign of x

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            relu_backward(self.backend, self.x.data, top[0].diff, bottom[0].diff, self.slope)


@fusable
def relu_forward(backend: Any, x: Any, y: Any, slope: float) -> None:
    """y = max(x, 0) + slope * min(x, 0); y may be x."""
    xp = backend.xp
    if slope == 0:
        xp.maximum(x, 0, out=y)
    else:
        xp.multiply(x, xp.where(x > 0, x.dtype.type(1), x.dtype.type(slope)), out=y)


@fusable
def relu_backward(backend: Any, x: Any, dy: Any, dx: Any, slope: float) -> None:
    """dx = dy where x > 0, slope * dy elsewhere; dx may be dy, and x may be relu_forward's y for slope >= 0."""
    xp = backend.xp
    if slope == 0:
        xp.multiply(dy, x > 0, out=dx)
    else:
        xp.multiply(dy, xp.where(x > 0, dy.dtype.type(1), dy.dtype.type(slope)), out=dx)
