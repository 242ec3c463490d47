"""Crop."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import Layer, register
from ..fork_options import refuse_fork_options


@register
class Crop(Layer):
    """y = the part of x that has the size of a second blob, from ``offset`` on, in the axes from ``axis`` on.

    dx is dy there and 0 around it; the second blob gives its shape alone.

    Shapes
        bottom 0 x: any; bottom 1: as many axes; top y: as x before ``axis``, as bottom 1 from it on

    Options (crop_param)
        axis (2); offset: none (0), one for all axes cropped, or one for each.
    """

    type = "Crop"
    bottoms, tops = (2, 2), (1, 1)

    def allow_force_backward(self, bottom_index: int) -> bool:
        return bottom_index == 0

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.crop_param
        refuse_fork_options(self, param, ("crop_width", "crop_height"))
        self.first = self.axis(param.axis, bottom[0])
        axes = bottom[0].ndim - self.first
        offsets = list(param.offset) or [0]
        if len(offsets) not in (1, axes):
            self.fail(f"{len(offsets)} offsets for {axes} axes cropped; give one for each, one for all, or none")
        self.offsets = offsets * axes if len(offsets) == 1 else offsets

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, size = bottom
        if x.ndim != size.ndim:
            self.fail(f"bottom {x.name!r} has shape {x.shape} and {size.name!r} {size.shape}; expected as many axes")
        for offset, whole, part in zip(self.offsets, x.shape[self.first :], size.shape[self.first :], strict=True):
            if offset + part > whole:
                self.fail(
                    f"{part} values from {offset} on do not fit {whole}: bottom {x.name!r} has shape {x.shape},"
                    f" {size.name!r} {size.shape}, offsets {self.offsets}"
                )
        sizes = size.shape[self.first :]
        parts = [slice(offset, offset + part) for offset, part in zip(self.offsets, sizes, strict=True)]
        self.part = (slice(None),) * self.first + tuple(parts)
        top[0].reshape(*x.shape[: self.first], *sizes)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        top[0].data[...] = bottom[0].data[self.part]

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            dx = bottom[0].diff
            dx.fill(0)
            dx[self.part] = top[0].diff
