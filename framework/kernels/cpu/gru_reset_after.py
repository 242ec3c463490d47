"""The loops of ``ResetAfterCell``."""

import numpy as np

from ...fusable import fusables
from .gru import gru_slopes, gru_state
from .jobs import shared
from .products import matmul
from .recurrent_steps import (
    add_row,
    begin_step,
    is_long,
    is_plain,
    marks,
    over_streams,
    place,
    scale_row,
    sigmoid_row,
    state_read,
    tanh_row,
)
from .row_product import add_row_product, pack_panels
from .rows import compiled


def gru_reset_after_forward(backend, cell, bias, weights, keep, mask, reverse, gates, extra, states):
    """``ResetAfterCell`` over all steps."""
    if is_plain(gates):
        plain = fusables["gru_reset_after_forward"].plain
        plain(backend, cell, bias, weights, keep, mask, reverse, gates, extra, states)
        return
    (W_h, b_h), H, step_marks = weights, extra.shape[2], marks(keep, mask, gates)
    zr_panels, candidate_panels, product = W_h[: 2 * H], W_h[2 * H :], bias[:0]
    if len(gates) > 1:
        zr_panels, candidate_panels = pack_panels(zr_panels.T), pack_panels(candidate_panels.T)
    elif is_long(backend, W_h, gates):  # the products of the only step, by all threads
        product = backend.scratch("recurrent.product", gates.shape[1:], gates.dtype)
        matmul(backend, state_read(keep, states[0], reverse), W_h.T, product)
        zr_panels, candidate_panels = zr_panels[:0], candidate_panels[:0]
    over_streams(
        backend, forward, gates, W_h,
        zr_panels, candidate_panels, product, b_h, bias, *step_marks, reverse, gates, extra, states[0],
    )  # fmt: skip


def gru_reset_after_backward(
    backend, cell, weights, keep, mask, reverse, gates, extra, states, d_h, d_gates, d_extra, d_states
):
    """``ResetAfterCell`` over all steps, backwards."""
    W_h, step_marks = weights[0], marks(keep, mask, gates)
    panels = pack_panels(W_h)
    over_streams(
        backend, backward, gates, W_h,
        panels, *step_marks, reverse, gates, extra, states[0], d_h, d_gates, d_extra, d_states[0],
    )  # fmt: skip


@shared
def forward(
    _, start, stop, zr_panels, candidate_panels, product, b_h, bias, keep, mask, padded, reverse, gates, extra, h
):
    T, _, H = extra.shape
    h_before = np.empty((stop - start, H), gates.dtype)
    for s in range(T):
        t, previous, after = place(s, T, reverse)
        begin_step(keep[t], h[previous], bias, start, h_before, gates[t])
        add_row_product(h_before, zr_panels, gates[t, start:stop, : 2 * H])
        extra[t, start:stop] = b_h
        add_row_product(h_before, candidate_panels, extra[t, start:stop])
        for n in range(start, min(stop, len(product))):
            add_row(product[n, : 2 * H], gates[t, n])
            add_row(product[n, 2 * H :], extra[t, n])
        for n in range(start, stop):
            if padded and mask[t, n] == 0:
                h[after, n] = h_before[n - start]
                continue
            gate = gates[t, n]
            sigmoid_row(gate[: 2 * H])
            _add_products(gate[H : 2 * H], extra[t, n], gate[2 * H :])
            tanh_row(gate[2 * H :])
            gru_state(gate[:H], gate[2 * H :], h_before[n - start], h[after, n])


@compiled
def _add_products(x, y, out):
    for j in range(len(x)):
        out[j] += x[j] * y[j]


@shared
def backward(
    _, start, stop, panels, keep, mask, padded, reverse, gates, extra, h, d_h, d_gates, d_extra, dh
):  # fmt: skip
    T, _, H = extra.shape
    n_streams = stop - start
    h_before, dh_before = np.empty((n_streams, H), gates.dtype), np.empty((n_streams, H), gates.dtype)
    d_product = np.empty((n_streams, 3 * H), gates.dtype)
    for s in range(T - 1, -1, -1):
        t, previous, _ = place(s, T, reverse)
        for n in range(start, stop):
            m, gate, d = n - start, gates[t, n], d_gates[t, n]
            add_row(d_h[t, n], dh[n])
            if padded and mask[t, n] == 0:
                d[:] = 0
                d_extra[t, n] = 0
                dh_before[m] = dh[n]
            else:
                scale_row(keep[t, n], h[previous, n], h_before[m])
                gru_slopes(gate[:H], gate[2 * H :], h_before[m], dh[n], d[:H], d[2 * H :], dh_before[m])
                _reset_slopes(gate[H : 2 * H], extra[t, n], d[2 * H :], d[H : 2 * H], d_extra[t, n])
            d_product[m, : 2 * H] = d[: 2 * H]
            d_product[m, 2 * H :] = d_extra[t, n]
        add_row_product(d_product, panels, dh_before)
        for n in range(start, stop):
            scale_row(keep[t, n], dh_before[n - start], dh[n])


@compiled
def _reset_slopes(r, extra, d_candidate, dr, d_extra):
    one = r.dtype.type(1)
    for j in range(len(r)):
        dr[j] = d_candidate[j] * extra[j] * r[j] * (one - r[j])
    for j in range(len(r)):
        d_extra[j] = d_candidate[j] * r[j]
