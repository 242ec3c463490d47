"""The loops of ``GRUCell``."""

import numpy as np

from ...fusable import fusables
from .jobs import shared
from .recurrent_steps import (
    add_row,
    add_split,
    begin_step,
    is_plain,
    marks,
    multiply_rows,
    over_streams,
    place,
    scale_row,
    sigmoid_row,
    step_weights,
    tanh_row,
)
from .row_product import add_row_product, pack_panels
from .rows import compiled


def gru_forward(backend, cell, bias, weights, keep, mask, reverse, gates, extra, states):
    """``GRUCell`` over all steps."""
    if is_plain(gates):
        fusables["gru_forward"].plain(backend, cell, bias, weights, keep, mask, reverse, gates, extra, states)
        return
    W_h, H, step_marks = weights[0], extra.shape[2], marks(keep, mask, gates)
    zr_panels = step_weights(backend, W_h[: 2 * H], keep, states[0], reverse, gates[:, :, : 2 * H])
    if len(zr_panels) == 0:
        _one_long_step(backend, W_h[2 * H :], bias, *step_marks, reverse, gates, extra, states[0])
        return
    candidate_panels = pack_panels(W_h[2 * H :].T) if len(gates) > 1 else W_h[2 * H :]
    over_streams(
        backend, forward, gates, W_h,
        zr_panels, candidate_panels, bias, *step_marks, reverse, gates, extra, states[0],
    )  # fmt: skip


def _one_long_step(backend, W, bias, keep, mask, padded, reverse, gates, reset, h):
    """The only step, once the product of z and r has been added to the gates; W that of the candidate."""
    H, N = reset.shape[2], reset.shape[1]
    _, previous, after = place(0, 1, reverse)
    h_before = np.empty(h.shape[1:], h.dtype)
    begin_step(keep[0], h[previous], bias, 0, h_before, gates[0])
    open_reset(gates[0], 0, N, h_before, reset[0])
    add_split(backend, reset[0], W, gates[0, :, 2 * H :])
    take_candidate(mask[0], padded, gates[0], 0, N, h_before, h[after])


def gru_backward(backend, cell, weights, keep, mask, reverse, gates, extra, states, d_h, d_gates, d_extra, d_states):
    """``GRUCell`` over all steps, backwards."""
    W_h, H, step_marks = weights[0], extra.shape[2], marks(keep, mask, gates)
    zr_panels, candidate_panels = pack_panels(W_h[: 2 * H]), pack_panels(W_h[2 * H :])
    over_streams(
        backend, backward, gates, W_h,
        zr_panels, candidate_panels, *step_marks, reverse, gates, states[0], d_h, d_gates, d_extra, d_states[0],
    )  # fmt: skip


@shared
def forward(_, start, stop, zr_panels, candidate_panels, bias, keep, mask, padded, reverse, gates, reset, h):
    T, _, H = reset.shape
    h_before = np.empty((stop - start, H), gates.dtype)
    for s in range(T):
        t, previous, after = place(s, T, reverse)
        begin_step(keep[t], h[previous], bias, start, h_before, gates[t])
        add_row_product(h_before, zr_panels, gates[t, start:stop, : 2 * H])
        open_reset(gates[t], start, stop, h_before, reset[t])
        add_row_product(reset[t, start:stop], candidate_panels, gates[t, start:stop, 2 * H :])
        take_candidate(mask[t], padded, gates[t], start, stop, h_before, h[after])


@compiled
def open_reset(gates, start, stop, h_before, reset):
    """z, r = sigmoid(.); reset = r h'"""
    H = reset.shape[1]
    for n in range(start, stop):
        sigmoid_row(gates[n, : 2 * H])
        multiply_rows(gates[n, H : 2 * H], h_before[n - start], reset[n])


@compiled
def take_candidate(mask, padded, gates, start, stop, h_before, h):
    """h~ = tanh(.); h = (1 - z) h' + z h~, or h' in a padded step"""
    H = h.shape[1]
    for n in range(start, stop):
        if padded and mask[n] == 0:
            h[n] = h_before[n - start]
            continue
        tanh_row(gates[n, 2 * H :])
        gru_state(gates[n, :H], gates[n, 2 * H :], h_before[n - start], h[n])


@compiled
def gru_state(z, candidate, h_before, h):
    """h = (1 - z) h_before + z candidate"""
    for j in range(len(h)):
        h[j] = h_before[j] + z[j] * (candidate[j] - h_before[j])


@shared
def backward(
    _, start, stop, zr_panels, candidate_panels, keep, mask, padded, reverse,
    gates, h, d_h, d_gates, d_reset, dh,
):  # fmt: skip
    T, _, H = d_reset.shape
    h_before, dh_before = np.empty((stop - start, H), gates.dtype), np.empty((stop - start, H), gates.dtype)
    for s in range(T - 1, -1, -1):
        t, previous, _ = place(s, T, reverse)
        for n in range(start, stop):
            m, gate, d = n - start, gates[t, n], d_gates[t, n]
            scale_row(keep[t, n], h[previous, n], h_before[m])
            add_row(d_h[t, n], dh[n])
            d_reset[t, n] = 0
            if padded and mask[t, n] == 0:
                d[:] = 0
                dh_before[m] = dh[n]
            else:
                gru_slopes(gate[:H], gate[2 * H :], h_before[m], dh[n], d[:H], d[2 * H :], dh_before[m])
        add_row_product(d_gates[t, start:stop, 2 * H :], candidate_panels, d_reset[t, start:stop])
        for n in range(start, stop):
            if padded and mask[t, n] == 0:
                continue
            m, d = n - start, d_gates[t, n]
            _reset_slopes(gates[t, n, H : 2 * H], h_before[m], d_reset[t, n], d[H : 2 * H], dh_before[m])
        add_row_product(d_gates[t, start:stop, : 2 * H], zr_panels, dh_before)
        for n in range(start, stop):
            scale_row(keep[t, n], dh_before[n - start], dh[n])


@compiled
def gru_slopes(z, candidate, h_before, dh, dz, d_candidate, dh_before):
    """The slopes of ``gru_state`` and of its two activations."""
    one = dh.dtype.type(1)
    for j in range(len(dh)):
        dz[j] = dh[j] * (candidate[j] - h_before[j]) * z[j] * (one - z[j])
    for j in range(len(dh)):
        d_candidate[j] = dh[j] * z[j] * (one - candidate[j] * candidate[j])
    for j in range(len(dh)):
        dh_before[j] = dh[j] * (one - z[j])


@compiled
def _reset_slopes(r, h_before, d_reset, dr, dh_before):
    one = r.dtype.type(1)
    for j in range(len(r)):
        dr[j] = d_reset[j] * h_before[j] * r[j] * (one - r[j])
    for j in range(len(r)):
        dh_before[j] += d_reset[j] * r[j]
