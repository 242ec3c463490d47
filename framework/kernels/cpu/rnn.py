"""The loops of ``RNNCell``."""

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

_RELU, _SIGMOID = 1, 2  # RecurrentParameter.Nonlinearity


def rnn_forward(backend, cell, bias, weights, keep, mask, reverse, gates, extra, states):
    """``RNNCell`` over all steps."""
    if is_plain(gates):
        fusables["rnn_forward"].plain(backend, cell, bias, weights, keep, mask, reverse, gates, extra, states)
        return
    panels = step_weights(backend, weights[0], keep, states[0], reverse, gates)
    step_marks, f = marks(keep, mask, gates), cell.nonlinearity
    over_streams(
        backend, forward, gates, weights[0],
        f, panels, bias, *step_marks, reverse, gates, states[0],
    )  # fmt: skip


def rnn_backward(backend, cell, weights, keep, mask, reverse, gates, extra, states, d_h, d_gates, d_extra, d_states):
    """``RNNCell`` over all steps, backwards."""
    panels, step_marks, f = pack_panels(weights[0]), marks(keep, mask, gates), cell.nonlinearity
    over_streams(
        backend, backward, gates, weights[0],
        f, panels, *step_marks, reverse, gates, d_h, d_gates, d_states[0],
    )  # fmt: skip


@shared
def forward(_, start, stop, nonlinearity, panels, bias, keep, mask, padded, reverse, gates, h):
    T, _, H = h[1:].shape
    h_before = np.empty((stop - start, H), gates.dtype)
    for s in range(T):
        t, previous, after = place(s, T, reverse)
        begin_step(keep[t], h[previous], bias, start, h_before, gates[t])
        add_row_product(h_before, panels, gates[t, start:stop])
        for n in range(start, stop):
            if padded and mask[t, n] == 0:
                h[after, n] = h_before[n - start]
                continue
            if nonlinearity == _RELU:
                _relu_row(gates[t, n])
            elif nonlinearity == _SIGMOID:
                sigmoid_row(gates[t, n])
            else:
                tanh_row(gates[t, n])
            h[after, n] = gates[t, n]


@shared
def backward(_, start, stop, nonlinearity, panels, keep, mask, padded, reverse, gates, d_h, d_gates, dh):
    T, _, H = gates.shape
    dh_before = np.empty((stop - start, H), gates.dtype)
    for s in range(T - 1, -1, -1):
        t = place(s, T, reverse)[0]
        for n in range(start, stop):
            add_row(d_h[t, n], dh[n])
            if padded and mask[t, n] == 0:
                d_gates[t, n] = 0
                dh_before[n - start] = dh[n]
            else:
                dh_before[n - start] = 0
                _slopes(nonlinearity, gates[t, n], dh[n], d_gates[t, n])
        add_row_product(d_gates[t, start:stop], panels, dh_before)
        for n in range(start, stop):
            scale_row(keep[t, n], dh_before[n - start], dh[n])


@compiled
def _slopes(nonlinearity, gate, dh, d):
    zero, one = d.dtype.type(0), d.dtype.type(1)
    if nonlinearity == _RELU:
        for j in range(len(d)):
            d[j] = dh[j] if gate[j] > zero else zero
    elif nonlinearity == _SIGMOID:
        for j in range(len(d)):
            d[j] = dh[j] * gate[j] * (one - gate[j])
    else:
        for j in range(len(d)):
            d[j] = dh[j] * (one - gate[j] * gate[j])


@compiled
def _relu_row(x):
    zero = x.dtype.type(0)
    for j in range(len(x)):
        x[j] = zero if x[j] < zero else x[j]
