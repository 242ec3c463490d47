"""The loops of ``ResetAfterCell``."""

from typing import Any

from .recurrent_steps import bias_rows, marks, step_kernel, steps_backward, steps_forward

SOURCE = """
extern "C" __global__ void gru_reset_after_forward(
    int N, int H, const real* keep, const real* mask, const real* bias, const real* b_h, const real* product,
    const real* h_previous, real* gates, real* extra, real* h)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x, n = k / H, j = k % H;
    if (n >= N) return;
    const int at_z = 3 * H * n + j, at_r = at_z + H, at_candidate = at_r + H;
    const real h_before = keep[n] * h_previous[k];
    extra[k] = keep[n] * product[at_candidate] + b_h[j];
    if (mask[n] == 0) {
        h[k] = h_before;
        return;
    }
    const real z = sigmoid(gates[at_z] + bias[at_z] + keep[n] * product[at_z]);
    const real r = sigmoid(gates[at_r] + bias[at_r] + keep[n] * product[at_r]);
    const real candidate = tanh(gates[at_candidate] + bias[at_candidate] + r * extra[k]);
    gates[at_z] = z;
    gates[at_r] = r;
    gates[at_candidate] = candidate;
    h[k] = h_before + z * (candidate - h_before);
}

extern "C" __global__ void gru_reset_after_backward(
    int N, int H, const real* keep, const real* mask, const real* d_h, const real* product,
    const real* gates, const real* extra, const real* h_previous,
    real* d_gates, real* d_extra, real* rows, real* d_h_state)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x, n = k / H, j = k % H;
    if (n >= N) return;
    const int at_z = 3 * H * n + j, at_r = at_z + H, at_candidate = at_r + H;
    const real dh = d_h_state[k] + product[k] + d_h[k];
    if (mask[n] == 0) {
        d_gates[at_z] = d_gates[at_r] = d_gates[at_candidate] = d_extra[k] = 0;
        rows[at_z] = rows[at_r] = rows[at_candidate] = 0;
        d_h_state[k] = keep[n] * dh;
        return;
    }
    const real z = gates[at_z], r = gates[at_r], candidate = gates[at_candidate];
    const real h_before = keep[n] * h_previous[k];
    const real d_candidate = dh * z * (1 - candidate * candidate);
    d_gates[at_z] = dh * (candidate - h_before) * z * (1 - z);
    d_gates[at_r] = d_candidate * extra[k] * r * (1 - r);
    d_gates[at_candidate] = d_candidate;
    d_extra[k] = d_candidate * r;
    rows[at_z] = keep[n] * d_gates[at_z];
    rows[at_r] = keep[n] * d_gates[at_r];
    rows[at_candidate] = keep[n] * d_extra[k];
    d_h_state[k] = keep[n] * (dh * (1 - z));
}
"""


def gru_reset_after_forward(
    backend: Any, cell: Any, bias: Any, weights: Any, keep: Any, mask: Any, reverse: bool,
    gates: Any, extra: Any, states: Any,
) -> None:  # fmt: skip
    """``ResetAfterCell`` over all steps."""
    xp, (W_h, b_h), h = backend.xp, weights, states[0]
    T, N, H = extra.shape
    keep, mask = marks(xp, keep, mask, gates)
    bias = bias_rows(xp, bias, gates)
    product = xp.empty(gates.shape[1:], gates.dtype)
    step = step_kernel(xp, SOURCE, "gru_reset_after_forward", gates.dtype)
    for t, previous, after in steps_forward(T, reverse):
        xp.matmul(h[previous], W_h.T, out=product)
        step(N, H, keep[t], mask[t], bias, b_h, product, h[previous], gates[t], extra[t], h[after])


def gru_reset_after_backward(
    backend: Any, cell: Any, weights: Any, keep: Any, mask: Any, reverse: bool,
    gates: Any, extra: Any, states: Any, d_h: Any, d_gates: Any, d_extra: Any, d_states: Any,
) -> None:  # fmt: skip
    """``ResetAfterCell`` over all steps, backwards."""
    xp, W_h, h, dh = backend.xp, weights[0], states[0], d_states[0]
    T, N, H = extra.shape
    keep, mask = marks(xp, keep, mask, gates)
    d_h = xp.ascontiguousarray(d_h)
    rows, product = xp.empty(gates.shape[1:], gates.dtype), xp.zeros((N, H), gates.dtype)
    step = step_kernel(xp, SOURCE, "gru_reset_after_backward", gates.dtype)
    for t, previous, _ in steps_backward(T, reverse):
        step(
            N, H, keep[t], mask[t], d_h[t], product, gates[t], extra[t], h[previous],
            d_gates[t], d_extra[t], rows, dh,
        )  # fmt: skip
        xp.matmul(rows, W_h, out=product)
    dh += product
