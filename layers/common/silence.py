"""Silence."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import Layer, register


@register
class Silence(Layer):
    """Takes blobs that nothing else reads, so that they are no outputs of the net; their diffs are 0.

    Shapes
        bottoms: at least one, any; no tops.
    """

    type = "Silence"
    bottoms, tops = (1, None), (0, 0)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """There are no tops."""

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """There are no tops."""

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        for blob, wanted in zip(bottom, propagate_down, strict=True):
            if wanted:
                blob.clear_diff()
