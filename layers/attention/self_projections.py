"""SelfProjections: queries, keys and values of the same steps, in one product."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...framework.blob import Blob
from .attention_layer import AttentionLayer
from .key_value_cache import KeyValueCache
from .projection import Projection
from .rotary import rotate
from .visible import Visible, sequence_edges


class SelfProjections:
    """[q, k, v]_t = W_qkv x_t + b_qkv for x (T x N x D), with cont, rotary positions and a cache where asked for."""

    bottom_names = ("x",)

    def __init__(self, layer: AttentionLayer, bottom: Sequence[Blob], E: int):
        self.layer, self.param, self.E = layer, layer.param.attention_param, E
        self.D = bottom[0].count // (layer.T * layer.N)
        self.heads = self.param.num_heads
        self.qkv = Projection(layer, "qkv", 3 * E, self.D, self.param.bias_term)
        self.rows = Blob((), layer.dtype, layer.backend)
        self.cache = KeyValueCache(layer.backend)
        if self.param.rotary and E // self.heads % 2:
            layer.fail(f"rotary turns pairs: num_output / num_heads is {E // self.heads}, expected an even number")

    def reshape(self, bottom: Sequence[Blob]) -> int:
        """Check the bottoms; gives the number of keys S that the queries of the next pass find."""
        layer, x = self.layer, bottom[0]
        T, N = layer.T, layer.N
        if x.count != T * N * self.D:
            layer.fail(f"bottom {x.name!r} has shape {x.shape}, expected T x N x {self.D} values")
        if self.param.cont_bottom:
            layer.check_marks(bottom[1], "cont")
        layer.check_key_padding(bottom, T)
        if self.cache.streams not in (None, N):
            layer.fail(
                f"bottom {x.name!r} has {N} stream(s), but {self.cache.streams} are carried;"
                " call select_streams or reset_states before"
            )
        self.rows.reshape(T * N, 3 * self.E)
        self.cache.make_room(T, self.param.window)
        return self.cache.length + T

    def forward(self, bottom: Sequence[Blob]) -> tuple[Any, Any, Any, Visible]:
        """q, k, v (T or S x N x heads x d) and which keys each query sees."""
        layer = self.layer
        T, N, cache = layer.T, layer.N, self.cache
        self.qkv.forward(bottom[0].data.reshape(T * N, self.D), self.rows.data)
        self.q, self.k, self.v = self.parts(self.rows.data)
        self.turn(self.q, self.k, inverse=False)
        padding = layer.key_padding(bottom[-1], T)
        if self.param.carry_state:
            padding = self.extend_cache(padding)
        offset = cache.length - T if self.param.carry_state else 0
        segments = None
        if self.param.cont_bottom:
            first = cache.begin if self.param.carry_state else 0
            segments = sequence_edges(layer.xp, layer.marks(bottom[1], "cont"), offset, first)
            if self.param.carry_state:
                cache.begin = segments[0][-1]
        return self.q, self.k, self.v, layer.visible(offset + T, offset, segments, **padding)

    def extend_cache(self, padding: Mapping[str, Any]) -> dict[str, Any]:
        """Let k and v be those of all passes, and give which of them count, as a mask."""
        layer, shown = self.layer, padding.get("mask")
        T, N = layer.T, layer.N
        if "lengths" in padding:
            steps = layer.xp.arange(T, dtype=layer.xp.int32)[:, None]
            shown = (steps < padding["lengths"]).astype(layer.dtype)
        self.cache.append(self.rows.data[:, self.E :].reshape(T, N, 2 * self.E), shown)
        keys = self.cache.rows.reshape(self.cache.length, N, 2, self.heads, -1)
        self.k, self.v = keys[:, :, 0], keys[:, :, 1]
        return {} if shown is None else {"mask": self.cache.shown}

    def gradients(self) -> tuple[Any, Any, Any]:
        """Where the gradients of q, k and v go."""
        self.d_rows = self.layer.backend.scratch("attention.d_qkv", self.rows.shape, self.layer.dtype)
        return self.parts(self.d_rows)

    def backward(self, bottom: Sequence[Blob], propagate_down: Sequence[bool]) -> None:
        """Overwrite the gradient of x, from those of q, k and v, and add to the parameters'."""
        dq, dk, _ = self.parts(self.d_rows)
        self.turn(dq, dk, inverse=True)
        x, rows = bottom[0], len(self.d_rows)
        dx = x.diff.reshape(rows, self.D) if propagate_down[0] else None
        self.qkv.backward(x.data.reshape(rows, self.D), self.d_rows, dx)

    def parts(self, rows: Any) -> tuple[Any, Any, Any]:
        """q, k and v (T x N x heads x d) of rows of all three."""
        parts = rows.reshape(self.layer.T, self.layer.N, 3, self.heads, -1)
        return parts[:, :, 0], parts[:, :, 1], parts[:, :, 2]

    def turn(self, q: Any, k: Any, inverse: bool) -> None:
        """Turn q and k by their positions, if ``rotary`` asks for it."""
        if self.param.rotary:
            xp, position = self.layer.xp, self.cache.position
            positions = xp.arange(position, position + self.layer.T)
            for part in (q, k):
                rotate(self.layer.backend, part, positions, inverse=inverse)

    # what is carried

    def forget(self) -> None:
        """Let the next pass be the first."""
        self.cache.forget()

    def select_streams(self, order: Any) -> None:
        """Go on with these streams."""
        self.cache.select_streams(order)

    def get_state(self) -> dict[str, Any]:
        """What is carried."""
        return self.cache.get_state()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Carry what ``get_state`` gave."""
        self.cache.set_state(state)
