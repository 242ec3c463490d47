"""ArgMax."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import Layer, register
from ..fork_options import refuse_fork_options


@register
class ArgMax(Layer):
    """The places of the k largest values, the largest first; of equal values the last counts as larger.

    It has no gradient.

    Shapes
        bottom: N x ...
        top without ``axis``: N x 1 x k, the places in the flattened rest of each of the N items; with
        ``out_max_val`` N x 2 x k, the places and then the values; as many axes as the bottom, at least 3
        top with ``axis``: as the bottom with k along the axis; with ``out_max_val`` the values alone.

    Options (argmax_param)
        top_k: k (1); axis; out_max_val (false).
    """

    type = "ArgMax"
    bottoms, tops = (1, 1), (1, 1)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.argmax_param
        refuse_fork_options(self, param, ("min_first",))
        self.k, self.gives_values = param.top_k, param.out_max_val
        self.along = self.axis(param.axis, bottom[0]) if param.HasField("axis") else None

    def allow_force_backward(self, bottom_index: int) -> bool:
        return False

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        shape = bottom[0].shape
        if self.along is None:
            size = bottom[0].count // shape[0] if shape and shape[0] else 0
            ones = (1,) * (len(shape) - 3)
            top[0].reshape(shape[0] if shape else 1, 2 if self.gives_values else 1, self.k, *ones)
        else:
            size = shape[self.along]
            top[0].reshape(*shape[: self.along], self.k, *shape[self.along + 1 :])
        if not 1 <= self.k <= size:
            self.fail(f"top_k is {self.k}, expected from 1 to the {size} values of bottom {bottom[0].name!r}")

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, y = bottom[0].data, top[0].data
        if self.along is None:
            rows = x.reshape(y.shape[0], -1)
            places = self._largest(rows)
            results = y.reshape(y.shape[:3])
            results[:, 0] = places
            if self.gives_values:
                results[:, 1] = self.xp.take_along_axis(rows, places, axis=-1)
        else:
            rows = self.xp.moveaxis(x, self.along, -1)
            places = self._largest(rows)
            best = self.xp.take_along_axis(rows, places, axis=-1) if self.gives_values else places
            y[...] = self.xp.moveaxis(best, -1, self.along)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            self.fail("a place has no gradient; put propagate_down: false here")

    def _largest(self, rows: Any) -> Any:
        """The places of the k largest along the last axis."""
        from_the_end = self.xp.argsort(-rows[..., ::-1], axis=-1, kind="stable")
        return rows.shape[-1] - 1 - from_the_end[..., : self.k]
