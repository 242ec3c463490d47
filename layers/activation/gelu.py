"""GELU."""

import math
from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import register
from .erf import erf
from .sigmoid import sigmoid_with_slope
from .slope_layer import SlopeLayer


@register
class GELU(SlopeLayer):
    """y = x P(x), with P the distribution function of the normal distribution, P(x) = (1 + erf(x / sqrt(2))) / 2.

    dx = dy (P(x) + x p(x)), p(x) = exp(-x^2 / 2) / sqrt(2 pi).  With ``approximate``: y = x (1 + tanh(u)) / 2,
    u = sqrt(2 / pi) (x + 0.044715 x^3), and dx = dy ((1 + tanh(u)) / 2 + x (1 - tanh(u)^2) / 2 du/dx).

    Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016 (arXiv:1606.08415).

    Shapes
        bottom x: any; top y: as x, in place if wanted.

    Options (gelu_param)
        approximate: the form with tanh (false).
    """

    type = "GELU"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.function = gelu_tanh_forward if self.param.gelu_param.approximate else gelu_forward

    def evaluate(self, x: Any, y: Any, slope: Any) -> None:
        self.function(self.backend, x, y, slope)


@fusable
def gelu_forward(backend: Any, x: Any, y: Any, slope: Any) -> None:
    """y = x P(x), slope = P(x) + x p(x); y may be x, slope None."""
    xp = backend.xp
    share = erf(xp, x * math.sqrt(0.5))
    share += 1
    share *= 0.5
    if slope is not None:
        density = xp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        xp.multiply(x, density, out=slope)
        slope += share
    xp.multiply(x, share, out=y)


@fusable
def gelu_tanh_forward(backend: Any, x: Any, y: Any, slope: Any) -> None:
    """y = x (1 + tanh(u)) / 2 = x sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3); y may be x, slope None."""
    scaled, bend = math.sqrt(8 / math.pi) * x, 0.044715 * x * x
    share, change = sigmoid_with_slope(backend.xp, scaled * (1 + bend))
    if slope is not None:
        change *= scaled * (1 + 3 * bend)
        backend.xp.add(share, change, out=slope)
    backend.xp.multiply(x, share, out=y)
