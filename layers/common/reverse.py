"""Reverse: the other way round along axes."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import Layer, register


@register
class Reverse(Layer):
    """y = x from the end to the start along some axes.

    dx = dy, reversed alike.  From the forks that build a bidirectional LSTM out of two layers.

    Shapes
        bottom x: any with the axes; top y: as x

    Options (reverse_param)
        axis: one or more axes (0).

    The whole axis is turned.  Where sequences end early, or several share a stream, ``direction: REVERSE`` of the
    recurrent layers turns each on its own.
    """

    type = "Reverse"
    bottoms, tops = (1, 1), (1, 1)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        axes = {self.axis(axis, bottom[0]) for axis in self.param.reverse_param.axis or [0]}
        self.turned = tuple(slice(None, None, -1 if axis in axes else 1) for axis in range(bottom[0].ndim))
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        top[0].data[...] = bottom[0].data[self.turned]

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            bottom[0].diff[...] = top[0].diff[self.turned]
