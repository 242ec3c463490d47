"""RNN: the plain recurrent net."""

from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import register
from ...proto import RecurrentParameter
from .cell import Arrays, Cell, loop_backward, loop_forward
from .gates import sigmoid
from .recurrent_layer import RecurrentLayer
from .run import Run


class RNNCell(Cell):
    """h = f(W_xh x + b_h + W_hh h') with f tanh, ReLU or sigmoid, whose derivative can be read off f itself."""

    gates = 1
    states = ("h",)

    def __init__(self, nonlinearity: int):
        self.nonlinearity = nonlinearity

    def weight_shapes(self, H: int) -> dict[str, tuple[int, ...]]:
        return {"W_hh": (H, H)}

    def step_forward(self, xp: Any, weights: Arrays, gates: Any, extra: Any, before: Arrays, after: Arrays) -> None:
        (W_hh,), (h_before,), (h,) = weights, before, after
        gates += h_before @ W_hh.T
        if self.nonlinearity == RecurrentParameter.RELU:
            xp.maximum(gates, 0, out=gates)
        elif self.nonlinearity == RecurrentParameter.SIGMOID:
            sigmoid(xp, gates)
        else:
            xp.tanh(gates, out=gates)
        h[...] = gates

    def step_backward(
        self, xp: Any, weights: Arrays, gates: Any, extra: Any, before: Arrays, after: Arrays,
        d_after: Arrays, d_gates: Any, d_extra: Any, d_before: Arrays,
    ) -> None:  # fmt: skip
        (W_hh,), (dh,), (dh_before,) = weights, d_after, d_before
        if self.nonlinearity == RecurrentParameter.RELU:
            xp.multiply(dh, gates > 0, out=d_gates)
        elif self.nonlinearity == RecurrentParameter.SIGMOID:
            xp.multiply(dh, gates * (1 - gates), out=d_gates)
        else:
            xp.multiply(dh, 1 - gates * gates, out=d_gates)
        xp.matmul(d_gates, W_hh, out=dh_before)

    def weight_gradient(
        self, matmul: Any, index: int, h_before: Any, extra: Any, d_gates: Any, d_extra: Any, out: Any
    ) -> None:
        matmul(d_gates.T, h_before, out)

    def run_forward(self, backend: Any, *arrays: Any) -> None:
        rnn_forward(backend, self, *arrays)

    def run_backward(self, backend: Any, *arrays: Any) -> None:
        rnn_backward(backend, self, *arrays)


@fusable
def rnn_forward(backend: Any, cell: Cell, *arrays: Any) -> None:
    """The steps of ``RNNCell``: see ``loop_forward``."""
    loop_forward(backend, cell, *arrays)


@fusable
def rnn_backward(backend: Any, cell: Cell, *arrays: Any) -> None:
    """The steps of ``RNNCell``, backwards: see ``loop_backward``."""
    loop_backward(backend, cell, *arrays)


class OutputRun(Run):
    """A run whose output is o_t = tanh(W_ho h_t + b_o), in one product over all steps."""

    def __init__(self, layer: RecurrentLayer, *args: Any):
        super().__init__(layer, *args)
        param, prefix = layer.param.recurrent_param, args[3]
        self.W_ho = layer.add_blob(prefix + "W_ho", (self.H, self.H), param.weight_filler)
        self.b_o = layer.add_blob(prefix + "b_o", (self.H,), param.bias_filler)
        self.o = Blob((), self.dtype, self.backend)

    def forward(self, *args: Any) -> Any:
        h = super().forward(*args)
        self.o.reshape(*h.shape)
        o = self.o.data
        self.product(h.reshape(-1, self.H), self.W_ho.data.T, o.reshape(-1, self.H))
        o += self.b_o.data
        self.xp.tanh(o, out=o)
        return o

    def backward(self, x: Any, static: Any, d_output: Any, *args: Any) -> None:
        h, o = self.output(), self.o.data
        d_rows = (d_output * (1 - o * o)).reshape(-1, self.H)
        self.add_gradient(self.W_ho, lambda out: self.product(d_rows.T, h.reshape(-1, self.H), out))
        self.add_gradient(self.b_o, lambda out: d_rows.sum(axis=0, out=out))
        dh = self.backend.scratch("recurrent.dh", h.shape, self.dtype)
        self.product(d_rows, self.W_ho.data, dh.reshape(-1, self.H))
        super().backward(x, static, dh, *args)


@register
class RNN(RecurrentLayer):
    """The plain recurrent net.

    h_t = f(W_xh x_t + W_hh h' + b_h) with h' = cont_t h_{t-1}, and the top o_t = tanh(W_ho h_t + b_o) as in Caffe, or
    with ``output_hidden`` the top h_t itself (V h + c is then an InnerProduct of its own).

    Elman, "Finding Structure in Time", Cognitive Science 1990.

    Shapes
        bottoms, tops and options: see RecurrentLayer; the exposed state is h.
        parameters of each level and direction: W_xh (H x D), b_h (H), W_xh_static (H x S, with a static input),
        W_hh (H x H), and without ``output_hidden`` W_ho (H x H), b_o (H).

    Options (recurrent_param)
        nonlinearity: f, TANH (default), RELU or SIGMOID; output_hidden (false).
    """

    type = "RNN"
    input_names = ("W_xh", "b_h", "W_xh_static")
    cell_options = ("nonlinearity", "output_hidden")

    def make_cell(self) -> Cell:
        return RNNCell(self.param.recurrent_param.nonlinearity)

    def make_run(self, *args: Any) -> Run:
        return Run(self, *args) if self.param.recurrent_param.output_hidden else OutputRun(self, *args)
