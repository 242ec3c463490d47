"""Embed: a learnt vector for each word."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import Layer, register
from ..row_sums import add_row, row_sums
from .indices import index_values


@register
class Embed(Layer):
    """y = W[x] + b: row x of W, as an InnerProduct of a one-hot vector gives it.

    dW[k] = sum of dy where x = k, db = sum of dy; x has no gradient.

    Shapes
        bottom x: any, whole numbers from 0 to K - 1
        top y: as x, then N
        parameters: W (K x N), b (N)

    Options (embed_param)
        num_output: N; input_dim: K; bias_term (true); weight_filler, bias_filler.

    Raises LayerError for a word out of range.
    """

    type = "Embed"
    bottoms, tops = (1, 1), (1, 1)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.embed_param
        for field in ("num_output", "input_dim"):
            if getattr(param, field) < 1:
                self.fail(f"embed_param needs {field}, 1 or more")
        self.K, self.N = param.input_dim, param.num_output
        self.W = self.add_blob("W", (self.K, self.N), param.weight_filler)
        self.b = self.add_blob("b", (self.N,), param.bias_filler) if param.bias_term else None

    def allow_force_backward(self, bottom_index: int) -> bool:
        return False

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        top[0].reshape(*bottom[0].shape, self.N)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.x = index_values(self, bottom[0], self.K, "word").reshape(-1)
        y = top[0].data.reshape(-1, self.N)
        take_rows(self.backend, self.W.data, self.x, y)
        if self.b is not None:
            add_row(self.backend, self.b.data, y)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            self.fail(f"bottom {bottom[0].name!r} holds words, which have no gradient")
        dy = top[0].diff.reshape(-1, self.N)
        if self.param_propagate_down[0]:
            add_rows(self.backend, dy, self.x, self.W.diff)
        if self.b is not None and self.param_propagate_down[1]:
            self.b.add_to_diff(lambda db: row_sums(self.backend, dy, db))


@fusable
def take_rows(backend: Any, table: Any, places: Any, out: Any) -> None:
    """out[i] = table[places[i]]; table (K, N), places (M,) int64 from 0 to K - 1, out (M, N)."""
    out[...] = table[places]


@fusable
def add_rows(backend: Any, rows: Any, places: Any, out: Any) -> None:
    """out[places[i]] += rows[i] for each i in turn; rows (M, N), places (M,) int64 from 0 to K - 1, out (K, N)."""
    backend.xp.add.at(out, places, rows)
