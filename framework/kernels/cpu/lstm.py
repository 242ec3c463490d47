"""The loops of ``LSTMCell``."""

import numpy as np

from ...fusable import fusables
from .jobs import shared
from .recurrent_steps import (
    add_row,
    begin_step,
    is_plain,
    marks,
    over_streams,
    place,
    scale_row,
    sigmoid_row,
    step_weights,
    tanh_row,
)
from .row_product import add_row_product, pack_panels
from .rows import compiled
from .tanh import tanh


def lstm_forward(backend, cell, bias, weights, keep, mask, reverse, gates, extra, states):
    """``LSTMCell`` over all steps."""
    if is_plain(gates):
        fusables["lstm_forward"].plain(backend, cell, bias, weights, keep, mask, reverse, gates, extra, states)
        return
    panels = step_weights(backend, weights[0], keep, states[0], reverse, gates)
    step_marks = marks(keep, mask, gates)
    over_streams(
        backend, forward, gates, weights[0],
        panels, bias, *step_marks, reverse, gates, states,
    )  # fmt: skip


def lstm_backward(backend, cell, weights, keep, mask, reverse, gates, extra, states, d_h, d_gates, d_extra, d_states):
    """``LSTMCell`` over all steps, backwards."""
    panels, step_marks = pack_panels(weights[0]), marks(keep, mask, gates)
    over_streams(
        backend, backward, gates, weights[0],
        panels, *step_marks, reverse, gates, states, d_h, d_gates, d_states,
    )  # fmt: skip


@shared
def forward(_, start, stop, panels, bias, keep, mask, padded, reverse, gates, states):
    T, _, H = states[0, 1:].shape
    h, c = states[0], states[1]
    h_before = np.empty((stop - start, H), gates.dtype)
    for s in range(T):
        t, previous, after = place(s, T, reverse)
        begin_step(keep[t], h[previous], bias, start, h_before, gates[t])
        add_row_product(h_before, panels, gates[t, start:stop])
        for n in range(start, stop):
            if padded and mask[t, n] == 0:
                h[after, n] = h_before[n - start]
                scale_row(keep[t, n], c[previous, n], c[after, n])
                continue
            gate = gates[t, n]
            sigmoid_row(gate[: 3 * H])
            tanh_row(gate[3 * H :])
            i, f, o, g = gate[:H], gate[H : 2 * H], gate[2 * H : 3 * H], gate[3 * H :]
            _states(i, f, o, g, keep[t, n], c[previous, n], c[after, n], h[after, n])


@compiled
def _states(i, f, o, g, keep, c_previous, c, h):
    for j in range(len(h)):
        c[j] = f[j] * (keep * c_previous[j]) + i[j] * g[j]
    for j in range(len(h)):
        h[j] = o[j] * tanh(c[j])


@shared
def backward(_, start, stop, panels, keep, mask, padded, reverse, gates, states, d_h, d_gates, d_states):
    T, _, H = states[0, 1:].shape
    c, dh, dc = states[1], d_states[0], d_states[1]
    dh_before = np.empty((stop - start, H), gates.dtype)
    for s in range(T - 1, -1, -1):
        t, previous, after = place(s, T, reverse)
        for n in range(start, stop):
            add_row(d_h[t, n], dh[n])
            if padded and mask[t, n] == 0:
                d_gates[t, n] = 0
                dh_before[n - start] = dh[n]
                continue
            dh_before[n - start] = 0
            gate, d = gates[t, n], d_gates[t, n]
            i, f, o, g = gate[:H], gate[H : 2 * H], gate[2 * H : 3 * H], gate[3 * H :]
            _output_slopes(o, c[after, n], dh[n], dc[n], d[2 * H : 3 * H])
            _cell_slopes(i, f, g, keep[t, n], c[previous, n], dc[n], d[:H], d[H : 2 * H], d[3 * H :])
        add_row_product(d_gates[t, start:stop], panels, dh_before)
        for n in range(start, stop):
            scale_row(keep[t, n], dh_before[n - start], dh[n])
            scale_row(keep[t, n], dc[n], dc[n])


@compiled
def _output_slopes(o, c, dh, dc, do):
    one = dh.dtype.type(1)
    for j in range(len(c)):
        tanh_c = tanh(c[j])
        dc[j] += dh[j] * o[j] * (one - tanh_c * tanh_c)
        do[j] = dh[j] * tanh_c * o[j] * (one - o[j])


@compiled
def _cell_slopes(i, f, g, keep, c_previous, dc, di, df, dg):
    one = dc.dtype.type(1)
    for j in range(len(dc)):
        di[j] = dc[j] * g[j] * i[j] * (one - i[j])
    for j in range(len(dc)):
        dg[j] = dc[j] * i[j] * (one - g[j] * g[j])
    for j in range(len(dc)):
        df[j] = dc[j] * (keep * c_previous[j]) * f[j] * (one - f[j])
    for j in range(len(dc)):
        dc[j] *= f[j]
