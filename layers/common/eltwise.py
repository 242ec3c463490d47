"""Eltwise: the sum, product or maximum of several blobs."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import Layer, register
from ...proto import EltwiseParameter
from ..fork_options import refuse_fork_options


@register
class Eltwise(Layer):
    """Value by value, over the bottoms x_i:

    - SUM (the default): y = sum_i c_i x_i; dx_i = c_i dy
    - PROD: y = prod_i x_i; dx_i = dy prod_(j != i) x_j, or dy y / x_i without ``stable_prod_grad``
    - MAX: y = max_i x_i; dx_i = dy where x_i is the largest.  Of two equal first bottoms the second counts as
      the largest, of later ones the earlier.

    Shapes
        bottoms x_i: at least two, all the same; top y: as they, for SUM in place of x_0 if wanted.

    Options (eltwise_param)
        operation; coeff: c_i, for SUM, one for each bottom (all 1); stable_prod_grad (true).
    """

    type = "Eltwise"
    bottoms, tops = (2, None), (1, 1)

    @property
    def in_place(self) -> bool:  # type: ignore[override]
        """The others need the bottoms once more in backward."""
        return self.param.eltwise_param.operation == EltwiseParameter.SUM

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.eltwise_param
        refuse_fork_options(self, param, ("coeff_blob", "axis"))
        if param.coeff and param.operation != EltwiseParameter.SUM:
            self.fail("eltwise_param has coeff, which is for operation: SUM")
        if len(param.coeff) not in (0, len(bottom)):
            self.fail(f"{len(param.coeff)} coeff for {len(bottom)} bottoms; give one for each, or none")
        if param.operation == EltwiseParameter.SUM:
            self.operation: Any = Sum(list(param.coeff) or [1.0] * len(bottom))
        elif param.operation == EltwiseParameter.PROD:
            self.operation = Product(param.stable_prod_grad)
        elif param.operation == EltwiseParameter.MAX:
            self.operation = Maximum()
        else:
            name = EltwiseParameter.EltwiseOp.Name(param.operation)
            self.fail(f"operation {name} is a fork's; expected SUM, PROD or MAX")

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        for blob in bottom[1:]:
            if blob.shape != bottom[0].shape:
                self.fail(
                    f"bottom {blob.name!r} has shape {blob.shape}, expected that of bottom {bottom[0].name!r},"
                    f" {bottom[0].shape}"
                )
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.operation.forward(self.backend, [blob.data for blob in bottom], top[0].data)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        for i in reversed(range(len(bottom))):  # in place, the first diff is the top's
            if propagate_down[i]:
                self.operation.backward(self.backend, bottom, top[0], i, bottom[i].diff)


class Sum:
    """y = sum_i c_i x_i."""

    def __init__(self, coefficients: list[float]):
        self.coefficients = coefficients

    def forward(self, backend: Any, x: list[Any], y: Any) -> None:
        weighted_sum(backend, x, self.coefficients, y)

    def backward(self, backend: Any, bottom: Sequence[Blob], top: Blob, i: int, dx: Any) -> None:
        if self.coefficients[i] != 1 or bottom[i] is not top:
            weighted_sum(backend, [top.diff], [self.coefficients[i]], dx)


class Product:
    """y = prod_i x_i."""

    def __init__(self, stable: bool):
        self.stable = stable

    def forward(self, backend: Any, x: list[Any], y: Any) -> None:
        backend.xp.multiply(x[0], x[1], out=y)
        for factor in x[2:]:
            y *= factor

    def backward(self, backend: Any, bottom: Sequence[Blob], top: Blob, i: int, dx: Any) -> None:
        if self.stable:
            backend.xp.copyto(dx, top.diff)
            for j, blob in enumerate(bottom):
                if j != i:
                    dx *= blob.data
        else:
            backend.xp.divide(top.data, bottom[i].data, out=dx)
            dx *= top.diff


class Maximum:
    """y = max_i x_i."""

    def forward(self, backend: Any, x: list[Any], y: Any) -> None:
        xp = backend.xp
        self.largest = (x[0] <= x[1]).astype(xp.int32)
        xp.maximum(x[0], x[1], out=y)
        for i, rival in enumerate(x[2:], start=2):
            self.largest[rival > y] = i
            xp.maximum(y, rival, out=y)

    def backward(self, backend: Any, bottom: Sequence[Blob], top: Blob, i: int, dx: Any) -> None:
        backend.xp.multiply(top.diff, self.largest == i, out=dx)


@fusable
def weighted_sum(backend: Any, arrays: list[Any], weights: Sequence[float], out: Any) -> None:
    """out = weights[0] * arrays[0] + weights[1] * arrays[1] + ..., in this order; at least one array.

    out may be arrays[0].
    """
    backend.xp.multiply(arrays[0], weights[0], out=out)
    for array, weight in zip(arrays[1:], weights[1:], strict=True):
        out += array if weight == 1 else array * weight
