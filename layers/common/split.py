"""Split."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import Layer, register
from .eltwise import weighted_sum


@register
class Split(Layer):
    """Each top is the bottom, seen again; the bottom's diff is the sum of the tops', in their order.

    Nets insert it where several layers read one blob.

    Shapes
        bottom: any; tops: at least one, as the bottom, sharing its values.
    """

    type = "Split"
    bottoms, tops = (1, 1), (1, None)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        for blob in top:
            blob.reshape(*bottom[0].shape)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        for blob in top:
            blob.share_data(bottom[0])

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            weighted_sum(self.backend, [blob.diff for blob in top], [1.0] * len(top), bottom[0].diff)
