"""SiLU."""

from typing import Any

from ...framework.layer import register
from .slope_layer import SlopeLayer
from .swish import swish_forward


@register
class SiLU(SlopeLayer):
    """y = x s, with s = sigmoid(x).

    dx = dy s (1 + x (1 - s)).

    Elfwing, Uchibe and Doya, "Sigmoid-Weighted Linear Units for Neural Network Function Approximation in
    Reinforcement Learning", Neural Networks 107, 2018; named in Hendrycks and Gimpel, 2016 (arXiv:1606.08415).

    Shapes
        bottom x: any; top y: as x, in place if wanted.
    """

    type = "SiLU"

    def evaluate(self, x: Any, y: Any, slope: Any) -> None:
        swish_forward(self.backend, x, 1.0, y, slope)
