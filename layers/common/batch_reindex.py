"""BatchReindex."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import Layer, register
from .embed import add_rows
from .indices import index_values


@register
class BatchReindex(Layer):
    """y[i] = x[p[i]]: items of the batch chosen, repeated or reordered.

    dx[k] = sum of dy[i] where p[i] = k; p has no gradient.

    Shapes
        bottom 0 x: N x ...; bottom 1 p: M, whole numbers from 0 to N - 1; top y: M x ...

    Raises LayerError for a number out of range.
    """

    type = "BatchReindex"
    bottoms, tops = (2, 2), (1, 1)

    def allow_force_backward(self, bottom_index: int) -> bool:
        return bottom_index == 0

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, places = bottom
        if places.ndim != 1 or not x.ndim:
            self.fail(f"bottom {places.name!r} has shape {places.shape}, expected one axis of places in {x.name!r}")
        top[0].reshape(places.count, *x.shape[1:])

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x = bottom[0].data
        self.places = index_values(self, bottom[1], x.shape[0], "place")
        top[0].data[...] = x[self.places]

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[1]:
            self.fail(f"bottom {bottom[1].name!r} holds places, which have no gradient")
        if propagate_down[0]:
            dy, dx = top[0].diff, bottom[0].diff
            dx.fill(0)
            add_rows(self.backend, dy.reshape(dy.shape[0], -1), self.places, dx.reshape(dx.shape[0], -1))
