"""Swish."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import register
from .sigmoid import sigmoid_with_slope
from .slope_layer import SlopeLayer


@register
class Swish(SlopeLayer):
    """y = x s, with s = sigmoid(b x).

    dx = dy s (1 + b x (1 - s)).

    Ramachandran, Zoph and Le, "Searching for Activation Functions", 2017 (arXiv:1710.05941).

    Shapes
        bottom x: any; top y: as x, in place if wanted.

    Options (swish_param)
        beta: b (1).
    """

    type = "Swish"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.beta = self.param.swish_param.beta

    def evaluate(self, x: Any, y: Any, slope: Any) -> None:
        swish_forward(self.backend, x, self.beta, y, slope)


@fusable
def swish_forward(backend: Any, x: Any, beta: float, y: Any, slope: Any) -> None:
    """y = x s, s = sigmoid(beta x); slope = s + beta x s (1 - s); y may be x, slope None."""
    scaled = beta * x
    s, change = sigmoid_with_slope(backend.xp, scaled)
    if slope is not None:
        change *= scaled
        backend.xp.add(s, change, out=slope)
    backend.xp.multiply(x, s, out=y)
