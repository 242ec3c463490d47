"""The loops of ``RNNCell``."""

from typing import Any

import numpy as np

from .recurrent_steps import bias_rows, marks, step_kernel, steps_backward, steps_forward

SOURCE = """
const int RELU = 1, SIGMOID = 2;  // RecurrentParameter.Nonlinearity; else tanh

extern "C" __global__ void rnn_forward(
    int N, int H, int nonlinearity, const real* keep, const real* mask, const real* bias, const real* product,
    const real* h_previous, real* gates, real* h)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x, n = k / H;
    if (n >= N) return;
    if (mask[n] == 0) {
        h[k] = keep[n] * h_previous[k];
        return;
    }
    const real x = gates[k] + bias[k] + keep[n] * product[k];
    const real f = nonlinearity == RELU ? (x < 0 ? 0 : x) : nonlinearity == SIGMOID ? sigmoid(x) : tanh(x);
    h[k] = gates[k] = f;
}

extern "C" __global__ void rnn_backward(
    int N, int H, int nonlinearity, const real* keep, const real* mask, const real* d_h, const real* product,
    const real* gates, real* d_gates, real* rows, real* d_h_state)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x, n = k / H;
    if (n >= N) return;
    const real dh = d_h_state[k] + product[k] + d_h[k];
    if (mask[n] == 0) {
        d_gates[k] = rows[k] = 0;
        d_h_state[k] = keep[n] * dh;
        return;
    }
    const real f = gates[k];
    const real slope = nonlinearity == RELU ? f > 0 : nonlinearity == SIGMOID ? f * (1 - f) : 1 - f * f;
    d_gates[k] = dh * slope;
    rows[k] = keep[n] * d_gates[k];
    d_h_state[k] = 0;
}
"""


def rnn_forward(
    backend: Any, cell: Any, bias: Any, weights: Any, keep: Any, mask: Any, reverse: bool,
    gates: Any, extra: Any, states: Any,
) -> None:  # fmt: skip
    """``RNNCell`` over all steps."""
    xp, (W_hh,), h = backend.xp, weights, states[0]
    T, N, H = gates.shape
    keep, mask = marks(xp, keep, mask, gates)
    bias = bias_rows(xp, bias, gates)
    product, f = xp.empty((N, H), gates.dtype), np.int32(cell.nonlinearity)
    step = step_kernel(xp, SOURCE, "rnn_forward", gates.dtype)
    for t, previous, after in steps_forward(T, reverse):
        xp.matmul(h[previous], W_hh.T, out=product)
        step(N, H, f, keep[t], mask[t], bias, product, h[previous], gates[t], h[after])


def rnn_backward(
    backend: Any, cell: Any, weights: Any, keep: Any, mask: Any, reverse: bool,
    gates: Any, extra: Any, states: Any, d_h: Any, d_gates: Any, d_extra: Any, d_states: Any,
) -> None:  # fmt: skip
    """``RNNCell`` over all steps, backwards."""
    xp, (W_hh,), dh = backend.xp, weights, d_states[0]
    T, N, H = gates.shape
    keep, mask = marks(xp, keep, mask, gates)
    d_h = xp.ascontiguousarray(d_h)
    rows, product = xp.empty((N, H), gates.dtype), xp.zeros((N, H), gates.dtype)
    f = np.int32(cell.nonlinearity)
    step = step_kernel(xp, SOURCE, "rnn_backward", gates.dtype)
    for t, _, _ in steps_backward(T, reverse):
        step(N, H, f, keep[t], mask[t], d_h[t], product, gates[t], d_gates[t], rows, dh)
        xp.matmul(rows, W_hh, out=product)
    dh += product
