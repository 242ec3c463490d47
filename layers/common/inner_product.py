"""InnerProduct: the fully connected layer."""

import math
from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import Layer, register
from ...framework.matmul import affine, matmul
from ..fork_options import refuse_fork_options
from ..row_sums import row_sums


@register
class InnerProduct(Layer):
    """y = x W^T + b, with the axes of x from ``axis`` on taken as one vector of K values.

    dx = dy W, dW = dy^T x, db = sum over rows of dy.

    Shapes
        bottom x: M... x K..., split before ``axis``
        top y: M... x N
        parameters: W (N x K; K x N with ``transpose``), b (N)

    Options (inner_product_param)
        num_output: N; bias_term (true); axis (1); transpose (false); weight_filler, bias_filler.
    """

    type = "InnerProduct"
    bottoms, tops = (1, 1), (1, 1)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.inner_product_param
        refuse_fork_options(
            self, param, ("dis_mode", "gen_mode", "normalize", "weight_fixed", "relu", "negative_slope")
        )
        if param.num_output < 1:
            self.fail("inner_product_param needs num_output, 1 or more")
        self.split = self.axis(param.axis, bottom[0])
        self.N, self.K = param.num_output, math.prod(bottom[0].shape[self.split :])
        self.transpose = param.transpose
        shape = (self.K, self.N) if self.transpose else (self.N, self.K)
        self.W = self.add_blob("W", shape, param.weight_filler)
        self.b = self.add_blob("b", (self.N,), param.bias_filler) if param.bias_term else None

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        shape = bottom[0].shape
        if math.prod(shape[self.split :]) != self.K:
            self.fail(
                f"bottom {bottom[0].name!r} has shape {shape}: {math.prod(shape[self.split :])} values from axis"
                f" {self.split} on, expected the {self.K} that the weights were made for"
            )
        top[0].reshape(*shape[: self.split], self.N)
        self.M = math.prod(shape[: self.split])

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, y = bottom[0].data.reshape(self.M, self.K), top[0].data.reshape(self.M, self.N)
        W = self.W.data
        affine(self.backend, x, W if self.transpose else W.T, None if self.b is None else self.b.data, y)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        dy = top[0].diff.reshape(self.M, self.N)
        if self.param_propagate_down[0]:
            x = bottom[0].data.reshape(self.M, self.K)
            self.W.add_to_diff(lambda dW: self._weight_gradient(x, dy, dW))
        if self.b is not None and self.param_propagate_down[1]:
            self.b.add_to_diff(lambda db: row_sums(self.backend, dy, db))
        if propagate_down[0]:
            W, dx = self.W.data, bottom[0].diff.reshape(self.M, self.K)
            matmul(self.backend, dy, W.T if self.transpose else W, dx)

    def _weight_gradient(self, x: Any, dy: Any, dW: Any) -> None:
        if self.transpose:
            matmul(self.backend, x.T, dy, dW)
        else:
            matmul(self.backend, dy.T, x, dW)
