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
    _kept: Any = None

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        top[0].reshape(*bottom[0].shape)

    def input(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> Any:
        """The values of bottom[0], which backward will find again."""
        x = bottom[0].data
        if bottom[0] is top[0]:
            if self._kept is None or self._kept.shape != x.shape:
                self._kept = self.xp.empty_like(x)
            self.xp.copyto(self._kept, x)
            return self._kept
        return x

    def kept_input(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> Any:
        """The values of bottom[0] at the last forward pass."""
        return self._kept if bottom[0] is top[0] else bottom[0].data
