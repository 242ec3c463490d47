"""ResetAfterCell: the GRU whose reset gate acts after the recurrent product, as in cuDNN and PyTorch."""

from typing import Any

from ...framework.fusable import fusable
from .cell import Arrays, Cell, loop_backward, loop_forward
from .gates import sigmoid, split_gates


class ResetAfterCell(Cell):
    """z, r = sigmoid(.), h~ = tanh(W_x x + b + r (W_h h' + b_h)); h = (1 - z) h' + z h~; extra is W_h h' + b_h."""

    gates = 3
    states = ("h",)

    def weight_shapes(self, H: int) -> dict[str, tuple[int, ...]]:
        return {"W_h": (3 * H, H), "b_h": (H,)}

    def extra(self, H: int) -> int:
        return H

    def step_forward(self, xp: Any, weights: Arrays, gates: Any, extra: Any, before: Arrays, after: Arrays) -> None:
        (W_h, b_h), (h_before,), (h,) = weights, before, after
        H = h.shape[1]
        zr, candidate = gates[:, : 2 * H], gates[:, 2 * H :]
        zr += h_before @ W_h[: 2 * H].T
        sigmoid(xp, zr)
        z, r = split_gates(zr, 2)
        xp.matmul(h_before, W_h[2 * H :].T, out=extra)
        extra += b_h
        candidate += r * extra
        xp.tanh(candidate, out=candidate)
        xp.subtract(candidate, h_before, out=h)
        h *= z
        h += h_before

    def step_backward(
        self, xp: Any, weights: Arrays, gates: Any, extra: Any, before: Arrays, after: Arrays,
        d_after: Arrays, d_gates: Any, d_extra: Any, d_before: Arrays,
    ) -> None:  # fmt: skip
        (W_h, _), (h_before,), (dh,), (dh_before,) = weights, before, d_after, d_before
        H = dh.shape[1]
        z, r, candidate = split_gates(gates, 3)
        dz, dr, d_candidate = split_gates(d_gates, 3)
        xp.multiply(dh * (candidate - h_before), z * (1 - z), out=dz)
        xp.multiply(dh * z, 1 - candidate * candidate, out=d_candidate)
        xp.multiply(d_candidate, r, out=d_extra)
        xp.multiply(d_candidate * extra, r * (1 - r), out=dr)
        xp.matmul(d_gates[:, : 2 * H], W_h[: 2 * H], out=dh_before)
        dh_before += d_extra @ W_h[2 * H :]
        dh_before += dh * (1 - z)

    def weight_gradient(
        self, matmul: Any, index: int, h_before: Any, extra: Any, d_gates: Any, d_extra: Any, out: Any
    ) -> None:
        H = h_before.shape[1]
        if index == 1:
            d_extra.sum(axis=0, out=out)
        else:
            matmul(d_gates[:, : 2 * H].T, h_before, out[: 2 * H])
            matmul(d_extra.T, h_before, out[2 * H :])

    def run_forward(self, backend: Any, *arrays: Any) -> None:
        gru_reset_after_forward(backend, self, *arrays)

    def run_backward(self, backend: Any, *arrays: Any) -> None:
        gru_reset_after_backward(backend, self, *arrays)


@fusable
def gru_reset_after_forward(backend: Any, cell: Cell, *arrays: Any) -> None:
    """The steps of ``ResetAfterCell``: see ``loop_forward``."""
    loop_forward(backend, cell, *arrays)


@fusable
def gru_reset_after_backward(backend: Any, cell: Cell, *arrays: Any) -> None:
    """The steps of ``ResetAfterCell``, backwards: see ``loop_backward``."""
    loop_backward(backend, cell, *arrays)
