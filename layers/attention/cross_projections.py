"""CrossProjections: queries of one sequence, keys and values of another."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...framework.blob import Blob
from .attention_layer import AttentionLayer
from .projection import Projection
from .visible import Visible


class CrossProjections:
    """q_t = W_q x_t + b_q;  [k, v]_s = W_kv m_s + b_kv for x (T x N x D) and a memory m (S x N x D_m).

    With ``carry_state`` keys, values and padding of the first pass serve all that follow.
    """

    bottom_names = ("x", "memory")

    def __init__(self, layer: AttentionLayer, bottom: Sequence[Blob], E: int):
        self.layer, self.param, self.E = layer, layer.param.attention_param, E
        for name in ("cont_bottom", "rotary"):
            if getattr(self.param, name):
                layer.fail(f"{name} is for self-attention: the positions of x are not those of the memory")
        layer.check_keys(bottom[1], None, "memory")
        self.D = bottom[0].count // (layer.T * layer.N)
        self.D_m = bottom[1].count // (bottom[1].shape[0] * layer.N)
        self.heads = self.param.num_heads
        self.q = Projection(layer, "q", E, self.D, self.param.bias_term)
        self.kv = Projection(layer, "kv", 2 * E, self.D_m, self.param.bias_term)
        self.q_rows, self.kv_rows = (Blob((), layer.dtype, layer.backend) for _ in range(2))
        self.kept: Any = None  # keys and values of the first pass, S x N x 2E,
        self.padding: dict[str, Any] = {}  # what is padding there,
        self.position = 0  # and how many queries came since

    def reshape(self, bottom: Sequence[Blob]) -> int:
        """Check the bottoms; gives the number of keys S."""
        layer, x, memory = self.layer, bottom[0], bottom[1]
        if x.count != layer.T * layer.N * self.D:
            layer.fail(f"bottom {x.name!r} has shape {x.shape}, expected T x N x {self.D} values")
        self.q_rows.reshape(layer.T * layer.N, self.E)
        if self.kept is not None:
            S, streams = self.kept.shape[:2]
            if streams != layer.N:
                layer.fail(
                    f"bottom {x.name!r} has {layer.N} stream(s), but the memory of {streams} is carried;"
                    " call select_streams or reset_states before"
                )
            return S
        S = layer.check_keys(memory, self.D_m, "memory")
        layer.check_key_padding(bottom, S)
        self.kv_rows.reshape(S * layer.N, 2 * self.E)
        return S

    def forward(self, bottom: Sequence[Blob]) -> tuple[Any, Any, Any, Visible]:
        """q (T x N x heads x d), k, v (S x N x heads x d), and which keys each query sees."""
        layer, T, N = self.layer, self.layer.T, self.layer.N
        self.q.forward(bottom[0].data.reshape(T * N, self.D), self.q_rows.data)
        kv, padding = self.kept, self.padding
        if kv is None:
            S = bottom[1].shape[0]
            self.kv.forward(bottom[1].data.reshape(S * N, self.D_m), self.kv_rows.data)
            kv, padding = self.kv_rows.data.reshape(S, N, -1), layer.key_padding(bottom[-1], S)
        if self.param.carry_state:
            if self.kept is None:
                self.kept, self.padding = kv.copy(), {name: array.copy() for name, array in padding.items()}
            self.position += T
        self.k, self.v = self.parts(kv)
        offset = max(self.position - T, 0)
        visible = layer.visible(len(kv), offset, **padding)
        return self.q_rows.data.reshape(T, N, self.heads, -1), self.k, self.v, visible

    def gradients(self) -> tuple[Any, Any, Any]:
        """Where the gradients of q, k and v go."""
        backend, dtype, T, N = self.layer.backend, self.layer.dtype, self.layer.T, self.layer.N
        self.d_q = backend.scratch("attention.d_q", self.q_rows.shape, dtype)
        self.d_kv = backend.scratch("attention.d_kv", self.kv_rows.shape, dtype)
        return self.d_q.reshape(T, N, self.heads, -1), *self.parts(self.d_kv.reshape(-1, N, 2 * self.E))

    def backward(self, bottom: Sequence[Blob], propagate_down: Sequence[bool]) -> None:
        """Overwrite the gradients of x and the memory, from those of q, k and v, and add to the parameters'."""
        for projection, blob, d_rows, wanted in zip(
            (self.q, self.kv), bottom, (self.d_q, self.d_kv), propagate_down, strict=False
        ):
            rows = (len(d_rows), projection.D)
            projection.backward(blob.data.reshape(rows), d_rows, blob.diff.reshape(rows) if wanted else None)

    def parts(self, kv: Any) -> tuple[Any, Any]:
        """k and v (S x N x heads x d) of both side by side."""
        parts = kv.reshape(*kv.shape[:2], 2, self.heads, -1)
        return parts[:, :, 0], parts[:, :, 1]

    # what is carried

    def forget(self) -> None:
        """Let the next pass be the first."""
        self.kept, self.padding, self.position = None, {}, 0

    def select_streams(self, order: Any) -> None:
        """Go on with these streams."""
        if self.kept is not None:
            order = self.layer.xp.asarray(order)
            self.kept = self.kept[:, order]
            self.padding = {name: array[..., order] for name, array in self.padding.items()}

    def get_state(self) -> dict[str, Any]:
        """What is carried."""
        if self.kept is None:
            return {}
        arrays = {"memory": self.kept, **self.padding}
        return {"position": self.position} | {name: self.layer.backend.to_host(a) for name, a in arrays.items()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Carry what ``get_state`` gave."""
        self.forget()
        arrays = {name: self.layer.backend.to_device(state[name]) for name in state if name != "position"}
        if arrays:
            self.position = int(state["position"])
            self.kept = arrays.pop("memory")
            self.padding = arrays
