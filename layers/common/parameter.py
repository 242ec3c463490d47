"""Parameter."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import Layer, register


@register
class Parameter(Layer):
    """top = W, a learnt blob that other layers may read; dW is the diff of the top.

    Shapes
        no bottoms; top: as W, sharing its values
        parameter: W

    Options (parameter_param)
        shape: W's; blob_filler: its first values (zeros).
    """

    type = "Parameter"
    bottoms, tops = (0, 0), (1, 1)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.parameter_param
        filler = param.blob_filler if param.HasField("blob_filler") else None
        self.W = self.add_blob("W", tuple(param.shape.dim), filler)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        top[0].reshape(*self.W.shape)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        top[0].share_data(self.W)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if self.param_propagate_down[0]:
            self.W.add_to_diff(lambda dW: self.xp.copyto(dW, top[0].diff))
