"""The loops of ``GRUCell``.

The candidate's product needs r h', which needs the gates' product: so a step has two products and a kernel after each.
"""

from typing import Any

from .recurrent_steps import bias_rows, marks, step_kernel, steps_backward, steps_forward

SOURCE = """
// z, r and r h' from the product of z and r (N x 2H)
extern "C" __global__ void gru_gates(
    int N, int H, const real* keep, const real* bias, const real* product, const real* h_previous,
    real* gates, real* reset)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x, n = k / H, j = k % H;
    if (n >= N) return;
    const int at_z = 3 * H * n + j, at_r = at_z + H, product_z = 2 * H * n + j, product_r = product_z + H;
    const real z = sigmoid(gates[at_z] + bias[at_z] + keep[n] * product[product_z]);
    const real r = sigmoid(gates[at_r] + bias[at_r] + keep[n] * product[product_r]);
    gates[at_z] = z;
    gates[at_r] = r;
    reset[k] = r * (keep[n] * h_previous[k]);
}

// the candidate and h from the product of r h' (N x H)
extern "C" __global__ void gru_state(
    int N, int H, const real* keep, const real* mask, const real* bias, const real* product,
    const real* h_previous, real* gates, real* h)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x, n = k / H, j = k % H;
    if (n >= N) return;
    const real h_before = keep[n] * h_previous[k];
    if (mask[n] == 0) {
        h[k] = h_before;
        return;
    }
    const int at_z = 3 * H * n + j, at_candidate = at_z + 2 * H;
    const real candidate = tanh(gates[at_candidate] + bias[at_candidate] + product[k]);
    gates[at_candidate] = candidate;
    h[k] = h_before + gates[at_z] * (candidate - h_before);
}

// the slopes of gru_state
extern "C" __global__ void gru_state_backward(
    int N, int H, const real* keep, const real* mask, const real* d_h, const real* product, const real* gates,
    const real* h_previous, real* d_gates, real* d_candidate, real* d_h_state)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x, n = k / H, j = k % H;
    if (n >= N) return;
    const int at_z = 3 * H * n + j, at_candidate = at_z + 2 * H;
    const real dh = d_h_state[k] + product[k] + d_h[k];
    if (mask[n] == 0) {
        d_gates[at_z] = d_gates[at_candidate] = d_candidate[k] = 0;
        d_h_state[k] = keep[n] * dh;
        return;
    }
    const real z = gates[at_z], candidate = gates[at_candidate], h_before = keep[n] * h_previous[k];
    d_gates[at_z] = dh * (candidate - h_before) * z * (1 - z);
    d_gates[at_candidate] = d_candidate[k] = dh * z * (1 - candidate * candidate);
    d_h_state[k] = keep[n] * (dh * (1 - z));
}

// the slopes of gru_gates; on padded steps d_reset is zero
extern "C" __global__ void gru_gates_backward(
    int N, int H, const real* keep, const real* d_reset, const real* gates, const real* h_previous,
    real* d_gates, real* rows, real* d_h_state)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x, n = k / H, j = k % H;
    if (n >= N) return;
    const int at_z = 3 * H * n + j, at_r = at_z + H, rows_z = 2 * H * n + j, rows_r = rows_z + H;
    const real r = gates[at_r], h_before = keep[n] * h_previous[k];
    d_gates[at_r] = d_reset[k] * h_before * r * (1 - r);
    rows[rows_z] = keep[n] * d_gates[at_z];
    rows[rows_r] = keep[n] * d_gates[at_r];
    d_h_state[k] += keep[n] * (d_reset[k] * r);
}
"""


def gru_forward(
    backend: Any, cell: Any, bias: Any, weights: Any, keep: Any, mask: Any, reverse: bool,
    gates: Any, extra: Any, states: Any,
) -> None:  # fmt: skip
    """``GRUCell`` over all steps."""
    xp, (W_h,), h = backend.xp, weights, states[0]
    T, N, H = extra.shape
    keep, mask = marks(xp, keep, mask, gates)
    bias = bias_rows(xp, bias, gates)
    zr_product, candidate_product = xp.empty((N, 2 * H), gates.dtype), xp.empty((N, H), gates.dtype)
    gates_step = step_kernel(xp, SOURCE, "gru_gates", gates.dtype)
    state_step = step_kernel(xp, SOURCE, "gru_state", gates.dtype)
    for t, previous, after in steps_forward(T, reverse):
        xp.matmul(h[previous], W_h[: 2 * H].T, out=zr_product)
        gates_step(N, H, keep[t], bias, zr_product, h[previous], gates[t], extra[t])
        xp.matmul(extra[t], W_h[2 * H :].T, out=candidate_product)
        state_step(N, H, keep[t], mask[t], bias, candidate_product, h[previous], gates[t], h[after])


def gru_backward(
    backend: Any, cell: Any, weights: Any, keep: Any, mask: Any, reverse: bool,
    gates: Any, extra: Any, states: Any, d_h: Any, d_gates: Any, d_extra: Any, d_states: Any,
) -> None:  # fmt: skip
    """``GRUCell`` over all steps, backwards."""
    xp, (W_h,), h, dh = backend.xp, weights, states[0], d_states[0]
    T, N, H = extra.shape
    keep, mask = marks(xp, keep, mask, gates)
    d_h = xp.ascontiguousarray(d_h)
    d_candidate, rows = xp.empty((N, H), gates.dtype), xp.empty((N, 2 * H), gates.dtype)
    product = xp.zeros((N, H), gates.dtype)
    state_step = step_kernel(xp, SOURCE, "gru_state_backward", gates.dtype)
    gates_step = step_kernel(xp, SOURCE, "gru_gates_backward", gates.dtype)
    for t, previous, _ in steps_backward(T, reverse):
        state_step(N, H, keep[t], mask[t], d_h[t], product, gates[t], h[previous], d_gates[t], d_candidate, dh)
        xp.matmul(d_candidate, W_h[2 * H :], out=d_extra[t])
        gates_step(N, H, keep[t], d_extra[t], gates[t], h[previous], d_gates[t], rows, dh)
        xp.matmul(rows, W_h[: 2 * H], out=product)
    dh += product
