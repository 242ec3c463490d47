"""LSTM: long short-term memory."""

from typing import Any

from ...framework.fusable import fusable
from ...framework.layer import register
from .cell import Arrays, Cell, loop_backward, loop_forward
from .gates import sigmoid, split_gates
from .recurrent_layer import RecurrentLayer
from .run import Run


class LSTMCell(Cell):
    """i, f, o = sigmoid(.), g = tanh(.) of W_xc x + b_c + W_hc h'; c = f c' + i g; h = o tanh(c)."""

    gates = 4
    states = ("h", "c")

    def weight_shapes(self, H: int) -> dict[str, tuple[int, ...]]:
        return {"W_hc": (4 * H, H)}

    def step_forward(self, xp: Any, weights: Arrays, gates: Any, extra: Any, before: Arrays, after: Arrays) -> None:
        (W_hc,), (h_before, c_before), (h, c) = weights, before, after
        gates += h_before @ W_hc.T
        i, f, o, g = split_gates(gates, 4)
        sigmoid(xp, gates[:, : 3 * h.shape[1]])
        xp.tanh(g, out=g)
        xp.multiply(f, c_before, out=c)
        c += i * g
        xp.tanh(c, out=h)
        h *= o

    def step_backward(
        self, xp: Any, weights: Arrays, gates: Any, extra: Any, before: Arrays, after: Arrays,
        d_after: Arrays, d_gates: Any, d_extra: Any, d_before: Arrays,
    ) -> None:  # fmt: skip
        (W_hc,), (_, c_before), (_, c) = weights, before, after
        (dh, dc), (dh_before, dc_before) = d_after, d_before
        i, f, o, g = split_gates(gates, 4)
        di, df, do, dg = split_gates(d_gates, 4)
        tanh_c = xp.tanh(c)
        xp.multiply(dh * tanh_c, o * (1 - o), out=do)
        dc = dc + dh * o * (1 - tanh_c * tanh_c)
        xp.multiply(dc * g, i * (1 - i), out=di)
        xp.multiply(dc * c_before, f * (1 - f), out=df)
        xp.multiply(dc * i, 1 - g * g, out=dg)
        xp.multiply(dc, f, out=dc_before)
        xp.matmul(d_gates, W_hc, out=dh_before)

    def weight_gradient(
        self, matmul: Any, index: int, h_before: Any, extra: Any, d_gates: Any, d_extra: Any, out: Any
    ) -> None:
        matmul(d_gates.T, h_before, out)

    def run_forward(self, backend: Any, *arrays: Any) -> None:
        lstm_forward(backend, self, *arrays)

    def run_backward(self, backend: Any, *arrays: Any) -> None:
        lstm_backward(backend, self, *arrays)


@fusable
def lstm_forward(backend: Any, cell: Cell, *arrays: Any) -> None:
    """The steps of ``LSTMCell``: see ``loop_forward``."""
    loop_forward(backend, cell, *arrays)


@fusable
def lstm_backward(backend: Any, cell: Cell, *arrays: Any) -> None:
    """The steps of ``LSTMCell``, backwards: see ``loop_backward``."""
    loop_backward(backend, cell, *arrays)


@register
class LSTM(RecurrentLayer):
    """Long short-term memory.

    i_t = sigmoid(W_xi x_t + W_hi h' + b_i),  f_t = sigmoid(W_xf x_t + W_hf h' + b_f),
    o_t = sigmoid(W_xo x_t + W_ho h' + b_o),  g_t = tanh(W_xg x_t + W_hg h' + b_g),
    c_t = f_t c' + i_t g_t,  h_t = o_t tanh(c_t),  with h' = cont_t h_{t-1} and c' = cont_t c_{t-1}.

    Hochreiter and Schmidhuber, "Long Short-Term Memory", Neural Computation 1997; forget gate: Gers et al., 2000.

    Shapes
        bottoms, tops and options: see RecurrentLayer; the exposed states are h and c.
        parameters of each level and direction: W_xc (4H x D), b_c (4H), W_xc_static (4H x S, with a static input),
        W_hc (4H x H); rows in the order i, f, o, g.

    Options (recurrent_param)
        forget_bias: where b_f starts, in place of what bias_filler gives; 1 lets the cell remember from the start
        (Jozefowicz et al., "An empirical exploration of recurrent network architectures", ICML 2015).
    """

    type = "LSTM"
    input_names = ("W_xc", "b_c", "W_xc_static")
    cell_options = ("forget_bias",)

    def make_cell(self) -> Cell:
        return LSTMCell()

    def make_run(self, *args: Any) -> Run:
        run, param = super().make_run(*args), self.param.recurrent_param
        if param.HasField("forget_bias") and not self.param.blobs:  # with blobs, the text has the parameters' values
            run.b.data[run.H : 2 * run.H] = param.forget_bias
        return run
