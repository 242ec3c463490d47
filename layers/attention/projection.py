"""Projection: y = x W^T + b over many rows, one of a layer's several."""

from typing import Any

from ...framework.layer import Layer
from ...framework.matmul import affine, matmul
from ...proto import FillerParameter
from ..row_sums import row_sums


class Projection:
    """y = x W^T + b for x (rows x D) and y (rows x K), with parameters W (K x D) and, if wanted, b (K).

    dx = dy W, dW = dy^T x, db = sum over rows of dy.
    """

    def __init__(self, layer: Layer, name: str, K: int, D: int, bias: bool):
        param = layer.param.attention_param
        self.layer, self.K, self.D = layer, K, D
        self.index = len(layer.blobs)
        self.W = layer.add_blob(f"W_{name}", (K, D), weight_filler(param))
        self.b = layer.add_blob(f"b_{name}", (K,), param.bias_filler) if bias else None

    def forward(self, x: Any, y: Any) -> None:
        """y = x W^T + b."""
        affine(self.layer.backend, x, self.W.data.T, None if self.b is None else self.b.data, y)

    def backward(self, x: Any, dy: Any, dx: Any = None) -> None:
        """Add to the gradients of W and b; dx = dy W, unless it is None."""
        backend, learnt = self.layer.backend, self.layer.param_propagate_down
        if learnt[self.index]:
            self.W.add_to_diff(lambda out: matmul(backend, dy.T, x, out))
        if self.b is not None and learnt[self.index + 1]:
            self.b.add_to_diff(lambda out: row_sums(backend, dy, out))
        if dx is not None:
            matmul(backend, dy, self.W.data, dx)


def weight_filler(param: Any) -> FillerParameter:
    """What fills the weights of a layer with these options: xavier where they say nothing."""
    return param.weight_filler if param.HasField("weight_filler") else FillerParameter(type="xavier")


def score_vector_filler(param: Any) -> FillerParameter:
    """What fills the vector v of an additive score (K): xavier as for a matrix 1 x K, where the options say nothing."""
    return (
        param.weight_filler
        if param.HasField("weight_filler")
        else FillerParameter(type="xavier", variance_norm=FillerParameter.FAN_OUT)
    )
