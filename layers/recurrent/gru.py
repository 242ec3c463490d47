"""GRU: the gated recurrent unit."""

from typing import Any

from ...framework.fusable import fusable
from ...framework.layer import register
from .cell import Arrays, Cell, loop_backward, loop_forward
from .gates import sigmoid, split_gates
from .recurrent_layer import RecurrentLayer
from .reset_after_cell import ResetAfterCell


class GRUCell(Cell):
    """z, r = sigmoid(.), h~ = tanh(W_x x + b + W_h (r h')); h = (1 - z) h' + z h~; extra is r h'."""

    gates = 3
    states = ("h",)

    def weight_shapes(self, H: int) -> dict[str, tuple[int, ...]]:
        return {"W_h": (3 * H, H)}

    def extra(self, H: int) -> int:
        return H

    def step_forward(self, xp: Any, weights: Arrays, gates: Any, extra: Any, before: Arrays, after: Arrays) -> None:
        (W_h,), (h_before,), (h,) = weights, before, after
        H = h.shape[1]
        zr, candidate = gates[:, : 2 * H], gates[:, 2 * H :]
        zr += h_before @ W_h[: 2 * H].T
        sigmoid(xp, zr)
        z, r = split_gates(zr, 2)
        xp.multiply(r, h_before, out=extra)
        candidate += extra @ W_h[2 * H :].T
        xp.tanh(candidate, out=candidate)
        xp.subtract(candidate, h_before, out=h)
        h *= z
        h += h_before

    def step_backward(
        self, xp: Any, weights: Arrays, gates: Any, extra: Any, before: Arrays, after: Arrays,
        d_after: Arrays, d_gates: Any, d_extra: Any, d_before: Arrays,
    ) -> None:  # fmt: skip
        (W_h,), (h_before,), (dh,), (dh_before,) = weights, before, d_after, d_before
        H = dh.shape[1]
        z, r, candidate = split_gates(gates, 3)
        dz, dr, d_candidate = split_gates(d_gates, 3)
        xp.multiply(dh * (candidate - h_before), z * (1 - z), out=dz)
        xp.multiply(dh * z, 1 - candidate * candidate, out=d_candidate)
        xp.matmul(d_candidate, W_h[2 * H :], out=d_extra)
        xp.multiply(d_extra * h_before, r * (1 - r), out=dr)
        xp.matmul(d_gates[:, : 2 * H], W_h[: 2 * H], out=dh_before)
        dh_before += d_extra * r
        dh_before += dh * (1 - z)

    def weight_gradient(
        self, matmul: Any, index: int, h_before: Any, extra: Any, d_gates: Any, d_extra: Any, out: Any
    ) -> None:
        H = h_before.shape[1]
        matmul(d_gates[:, : 2 * H].T, h_before, out[: 2 * H])
        matmul(d_gates[:, 2 * H :].T, extra, out[2 * H :])

    def run_forward(self, backend: Any, *arrays: Any) -> None:
        gru_forward(backend, self, *arrays)

    def run_backward(self, backend: Any, *arrays: Any) -> None:
        gru_backward(backend, self, *arrays)


@fusable
def gru_forward(backend: Any, cell: Cell, *arrays: Any) -> None:
    """The steps of ``GRUCell``: see ``loop_forward``."""
    loop_forward(backend, cell, *arrays)


@fusable
def gru_backward(backend: Any, cell: Cell, *arrays: Any) -> None:
    """The steps of ``GRUCell``, backwards: see ``loop_backward``."""
    loop_backward(backend, cell, *arrays)


@register
class GRU(RecurrentLayer):
    """The gated recurrent unit.

    z_t = sigmoid(W_z [h', x_t] + b_z),  r_t = sigmoid(W_r [h', x_t] + b_r),  h~_t = tanh(W [r_t h', x_t] + b),
    h_t = (1 - z_t) h' + z_t h~_t,  with h' = cont_t h_{t-1} and W [h', x] = W_h h' + W_x x.

    Cho et al., "Learning phrase representations using RNN encoder-decoder", EMNLP 2014.  With ``reset_after``
    (the form of cuDNN and PyTorch) h~_t = tanh(W_x x_t + b + r_t (W_h h' + b_h)).

    Shapes
        bottoms, tops and options: see RecurrentLayer; the exposed state is h.
        parameters of each level and direction: W_x (3H x D), b (3H), W_x_static (3H x S, with a static input),
        W_h (3H x H), and with ``reset_after`` b_h (H); rows in the order z, r, h~.

    Options (recurrent_param)
        reset_after (false).
    """

    type = "GRU"
    input_names = ("W_x", "b", "W_x_static")
    cell_options = ("reset_after",)

    def make_cell(self) -> Cell:
        return ResetAfterCell() if self.param.recurrent_param.reset_after else GRUCell()
