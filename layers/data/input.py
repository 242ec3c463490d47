"""Input: blobs that the caller fills."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import Layer, register


@register
class Input(Layer):
    """top = what the caller put into ``net.blobs[top].data``.

    Shapes
        top i: ``input_param.shape[i]``, or the one shape given for all tops.  The caller may change it later
        with ``net.blobs[top].reshape(...)``.

    Options (input_param)
        shape: once for each top, once for all, or not at all.
    """

    type = "Input"
    bottoms, tops = (0, 0), (1, None)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        shapes = [tuple(shape.dim) for shape in self.param.input_param.shape]
        if len(shapes) not in (0, 1, len(top)):
            self.fail(f"{len(shapes)} shapes for {len(top)} tops; give one for each, one for all, or none")
        if len(shapes) == 1:
            shapes *= len(top)
        for blob, shape in zip(top, shapes, strict=False):
            blob.reshape(*shape)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """The caller's shapes stay."""

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """The caller's values stay."""

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        """There is nothing below."""
