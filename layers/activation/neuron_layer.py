"""The base of layers that work on each value by itself."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import Layer


class NeuronLayer(Layer):
    """top[0] has the shape of bottom[0] and may be the same blob.

    A layer whose gradient is a function of its input reads ``self.input(bottom, top)`` in forward and
    ``self.kept_input(bottom, top)`` in backward: in place, the input is copied before it is overwritten.
    """

    bottoms, tops = (1, 1), (1, 1)
    in_place = True

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        top[0].reshape(*bottom[0].shape)

    def input(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> Any:
        """The values of bottom[0], which backward will find again."""
        self.kept = self.keep(bottom[0], overwriting=bottom[0] is top[0])
        return self.kept.data

    def kept_input(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> Any:
        """The values of bottom[0] at the last forward pass."""
        return self.kept.data
