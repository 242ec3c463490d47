"""The base of layers that normalize the values from one axis on, for each row of them by itself."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import Layer
from ...proto import FillerParameter


class RowNorm(Layer):
    """x is M rows of K values, and gamma is K learnt factors, 1 at first.

    A layer that works in place copies x first, since backward needs it.
    """

    bottoms, tops = (1, 1), (1, 1)
    in_place = True
    saves_kept = True

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.layer_norm_param
        self.eps: float = param.eps
        if self.eps < 0:
            self.fail(f"eps is {self.eps:g}, expected 0 or more")
        self.sizes = bottom[0].shape[self.axis(param.axis, bottom[0]) :]
        self.K = math.prod(self.sizes)
        self.affine: bool = param.affine
        if self.affine:
            self.add_blob("gamma", self.sizes, FillerParameter(type="constant", value=1))
        self.ones = self.xp.ones(self.K, self.dtype)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        shape = bottom[0].shape
        if shape[len(shape) - len(self.sizes) :] != self.sizes:
            self.fail(f"bottom {bottom[0].name!r} has shape {shape}, expected {self.sizes} as its last sizes")
        top[0].reshape(*shape)
        self.M = bottom[0].count // max(1, self.K)
        self.inverse = self.xp.empty(self.M, self.dtype)  # what each row is multiplied by

    def gamma(self) -> Any:
        """The factors, as K numbers."""
        return self.blobs[0].data.reshape(-1) if self.affine else self.ones

    def rows(self, array: Any) -> Any:
        """``array`` as M x K."""
        return array.reshape(self.M, self.K)

    def input(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> Any:
        """The rows of x, which backward will find again in ``x``."""
        self.x = self.keep(bottom[0], overwriting=bottom[0] is top[0])
        return self.rows(self.x.data)

    def add_gradients(self, *gradients: Any) -> None:
        """Add the parameters' gradients, in their order, to the diffs of those that are learnt."""
        for blob, wanted, gradient in zip(self.blobs, self.param_propagate_down, gradients, strict=False):
            if wanted:
                blob.add_to_diff(partial(self._write, gradient))

    def _write(self, gradient: Any, out: Any) -> None:
        self.xp.copyto(out, gradient.reshape(out.shape))
