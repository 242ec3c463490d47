"""Run: one level of a recurrent layer in one direction."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.matmul import matmul
from ..row_sums import row_sums
from .cell import Cell, step_states
from .sequence_layer import SequenceLayer


class Run:
    """The steps of one level in one direction, with parameters of its own: W_x, b, (W_static) and the cell's weights.

    Forward: the gates' inputs W_x x_t + b (+ W_static s) of all steps in one product over T N rows, then the cell's
    steps.  Backward: the steps backwards give d_gates; then, each in one product over T N rows,

        dW_x = sum d_gates_t x_t^T,   db = sum d_gates_t,   dW_static = sum d_gates_t s^T,
        dx_t = W_x^T d_gates_t,       ds = sum W_static^T d_gates_t,

    and the gradients of the cell's weights from h' = keep_t h_{t-1}.
    """

    def __init__(
        self, layer: SequenceLayer, cell: Cell, reverse: bool, names: Sequence[str], prefix: str,
        H: int, D: int, S: int | None,
    ):  # fmt: skip
        self.layer, self.cell, self.reverse, self.H = layer, cell, reverse, H
        self.backend, self.xp, self.dtype = layer.backend, layer.xp, layer.dtype
        self.carried: Any = None  # the last states of the pass before, K x N x H
        param, rows = layer.param.recurrent_param, cell.gates * H
        W_x, b, W_static = (prefix + name for name in names)
        self.W_x = layer.add_blob(W_x, (rows, D), param.weight_filler)
        self.b = layer.add_blob(b, (rows,), param.bias_filler)
        self.W_static = None if S is None else layer.add_blob(W_static, (rows, S), param.weight_filler)
        self.weights = [
            layer.add_blob(prefix + name, shape, param.weight_filler if len(shape) > 1 else param.bias_filler)
            for name, shape in cell.weight_shapes(H).items()
        ]
        self.gates, self.extra, self.states = (Blob((), self.dtype, self.backend) for _ in range(3))

    def forward(self, x: Blob, static: Blob | None, keep: Any, mask: Any, first: Any) -> Any:
        """The output at every step, T x N x H; ``first`` states K x N x H, or None for zeros."""
        (T, N), H, rows = x.shape[:2], self.H, self.cell.gates * self.H
        self.keep, self.mask = keep, mask
        extra = (T, N, self.cell.extra(H))
        if self.gates.shape != (T, N, rows) or self.extra.shape != extra:
            self.gates.reshape(T, N, rows)
            self.extra.reshape(*extra)
            self.states.reshape(len(self.cell.states), T + 1, N, H)
        matmul(self.backend, x.data.reshape(T * N, -1), self.W_x.data.T, self.gates.data.reshape(T * N, rows))
        bias = self.b.data[None]
        if static is not None and self.W_static is not None:
            bias = bias + static.data.reshape(N, -1) @ self.W_static.data.T
        self.states.data[:, T if self.reverse else 0] = 0 if first is None else first
        self.cell.run_forward(
            self.backend, bias, [weight.data for weight in self.weights], keep, mask, self.reverse,
            self.gates.data, self.extra.data, self.states.data,
        )  # fmt: skip
        return self.output()

    def backward(
        self, x: Blob, static: Blob | None, d_output: Any, d_states: Any, wants_x: bool, wants_static: bool
    ) -> None:
        """Add to the gradients of all parameters, and to those of ``x`` and ``static`` where they are wanted.

        ``d_states`` (K x N x H) is the gradient of the last states on entry, and of the first states on exit.
        """
        gates, extra = self.gates.data, self.extra.data
        d_gates = self.backend.scratch("recurrent.d_gates", gates.shape, self.dtype)
        d_extra = self.backend.scratch("recurrent.d_extra", extra.shape, self.dtype)
        weights = [weight.data for weight in self.weights]
        self.cell.run_backward(
            self.backend, weights, self.keep, self.mask, self.reverse,
            gates, extra, self.states.data, d_output, d_gates, d_extra, d_states,
        )  # fmt: skip
        count = gates.shape[0] * gates.shape[1]
        d_rows, x_rows = d_gates.reshape(count, -1), x.data.reshape(count, -1)
        self.add_gradient(self.W_x, lambda out: self.product(d_rows.T, x_rows, out))
        self.add_gradient(self.b, lambda out: row_sums(self.backend, d_rows, out))
        self.add_weight_gradients(d_rows, d_extra.reshape(count, -1))
        if static is not None and self.W_static is not None:
            self.add_static_gradients(self.W_static, static, d_gates.sum(axis=0), wants_static)
        if wants_x:
            x.add_to_diff(lambda out: self.product(d_rows, self.W_x.data, out.reshape(count, -1)))

    def add_weight_gradients(self, d_rows: Any, d_extra: Any) -> None:
        """The gradients of the cell's weights; the arrays have T N rows."""
        h_before, extra = self.h_before(), self.extra.data.reshape(d_extra.shape)
        for index, weight in enumerate(self.weights):
            self.add_gradient(
                weight,
                lambda out, index=index: self.cell.weight_gradient(
                    self.product, index, h_before, extra, d_rows, d_extra, out
                ),
            )

    def add_static_gradients(self, W_static: Blob, static: Blob, d_sum: Any, wants_static: bool) -> None:
        """The gradients of W_static and of the static input, from the gates' summed over time (N x G H)."""
        N = len(d_sum)
        self.add_gradient(W_static, lambda out: self.product(d_sum.T, static.data.reshape(N, -1), out))
        if wants_static:
            static.add_to_diff(lambda out: self.product(d_sum, W_static.data, out.reshape(N, -1)))

    def output(self) -> Any:
        """h at every step, T x N x H."""
        states = self.states.data[0]
        return states[:-1] if self.reverse else states[1:]

    def h_before(self) -> Any:
        """The h that every step read, (T N) x H."""
        h = step_states(self.states.data, self.reverse)[0][0]
        if self.keep is not None:
            read = self.backend.scratch("recurrent.h_before", h.shape, self.dtype)
            h = self.xp.multiply(self.keep[:, :, None], h, out=read)
        return h.reshape(-1, self.H)

    def last_states(self) -> Any:
        """The states after the step that ran last, K x N x H."""
        return self.states.data[:, 0 if self.reverse else -1]

    def product(self, a: Any, b: Any, out: Any) -> None:
        """out = a b."""
        matmul(self.backend, a, b, out)

    def add_gradient(self, parameter: Blob, write: Any) -> None:
        """Add to the diff of ``parameter`` what ``write`` gives, where it is learnt."""
        learnt = zip(self.layer.blobs, self.layer.param_propagate_down, strict=True)
        if any(blob is parameter and wanted for blob, wanted in learnt):
            parameter.add_to_diff(write)
