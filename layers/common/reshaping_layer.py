"""The base of layers that see the same values in another shape."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import Layer


class ReshapingLayer(Layer):
    """top[0] has the values of bottom[0] in the shape that ``reshape`` gives it; nothing is copied."""

    bottoms, tops = (1, 1), (1, 1)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        top[0].share_data(bottom[0])

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            bottom[0].share_diff(top[0])
