"""The loops of ``LSTMCell``."""

from typing import Any

from .recurrent_steps import bias_rows, marks, step_kernel, steps_backward, steps_forward

SOURCE = """
extern "C" __global__ void lstm_forward(
    int N, int H, const real* keep, const real* mask, const real* bias, const real* product,
    const real* h_previous, const real* c_previous, real* gates, real* h, real* c)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x, n = k / H, j = k % H;
    if (n >= N) return;
    const real c_before = keep[n] * c_previous[k];
    if (mask[n] == 0) {
        h[k] = keep[n] * h_previous[k];
        c[k] = c_before;
        return;
    }
    const int at_i = 4 * H * n + j, at_f = at_i + H, at_o = at_f + H, at_g = at_o + H;
    const real i = sigmoid(gates[at_i] + bias[at_i] + keep[n] * product[at_i]);
    const real f = sigmoid(gates[at_f] + bias[at_f] + keep[n] * product[at_f]);
    const real o = sigmoid(gates[at_o] + bias[at_o] + keep[n] * product[at_o]);
    const real g = tanh(gates[at_g] + bias[at_g] + keep[n] * product[at_g]);
    gates[at_i] = i;
    gates[at_f] = f;
    gates[at_o] = o;
    gates[at_g] = g;
    c[k] = f * c_before + i * g;
    h[k] = o * tanh(c[k]);
}

extern "C" __global__ void lstm_backward(
    int N, int H, const real* keep, const real* mask, const real* d_h, const real* product,
    const real* gates, const real* c_previous, const real* c,
    real* d_gates, real* rows, real* d_h_state, real* d_c_state)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x, n = k / H, j = k % H;
    if (n >= N) return;
    const int at_i = 4 * H * n + j, at_f = at_i + H, at_o = at_f + H, at_g = at_o + H;
    const real dh = d_h_state[k] + product[k] + d_h[k];
    if (mask[n] == 0) {
        d_gates[at_i] = d_gates[at_f] = d_gates[at_o] = d_gates[at_g] = 0;
        rows[at_i] = rows[at_f] = rows[at_o] = rows[at_g] = 0;
        d_h_state[k] = keep[n] * dh;
        d_c_state[k] *= keep[n];
        return;
    }
    const real i = gates[at_i], f = gates[at_f], o = gates[at_o], g = gates[at_g];
    const real tanh_c = tanh(c[k]);
    const real dc = d_c_state[k] + dh * o * (1 - tanh_c * tanh_c);
    d_gates[at_i] = dc * g * i * (1 - i);
    d_gates[at_f] = dc * (keep[n] * c_previous[k]) * f * (1 - f);
    d_gates[at_o] = dh * tanh_c * o * (1 - o);
    d_gates[at_g] = dc * i * (1 - g * g);
    rows[at_i] = keep[n] * d_gates[at_i];
    rows[at_f] = keep[n] * d_gates[at_f];
    rows[at_o] = keep[n] * d_gates[at_o];
    rows[at_g] = keep[n] * d_gates[at_g];
    d_h_state[k] = 0;
    d_c_state[k] = keep[n] * dc * f;
}
"""


def lstm_forward(
    backend: Any, cell: Any, bias: Any, weights: Any, keep: Any, mask: Any, reverse: bool,
    gates: Any, extra: Any, states: Any,
) -> None:  # fmt: skip
    """``LSTMCell`` over all steps."""
    xp, (W_hc,), h, c = backend.xp, weights, states[0], states[1]
    T, N, H = h[1:].shape
    keep, mask = marks(xp, keep, mask, gates)
    bias = bias_rows(xp, bias, gates)
    product = xp.empty(gates.shape[1:], gates.dtype)
    step = step_kernel(xp, SOURCE, "lstm_forward", gates.dtype)
    for t, previous, after in steps_forward(T, reverse):
        xp.matmul(h[previous], W_hc.T, out=product)
        step(N, H, keep[t], mask[t], bias, product, h[previous], c[previous], gates[t], h[after], c[after])


def lstm_backward(
    backend: Any, cell: Any, weights: Any, keep: Any, mask: Any, reverse: bool,
    gates: Any, extra: Any, states: Any, d_h: Any, d_gates: Any, d_extra: Any, d_states: Any,
) -> None:  # fmt: skip
    """``LSTMCell`` over all steps, backwards."""
    xp, (W_hc,), c, dh, dc = backend.xp, weights, states[1], d_states[0], d_states[1]
    T, N, H = d_h.shape
    keep, mask = marks(xp, keep, mask, gates)
    d_h = xp.ascontiguousarray(d_h)
    rows, product = xp.empty(gates.shape[1:], gates.dtype), xp.zeros((N, H), gates.dtype)
    step = step_kernel(xp, SOURCE, "lstm_backward", gates.dtype)
    for t, previous, after in steps_backward(T, reverse):
        step(N, H, keep[t], mask[t], d_h[t], product, gates[t], c[previous], c[after], d_gates[t], rows, dh, dc)
        xp.matmul(rows, W_hc, out=product)
    dh += product
