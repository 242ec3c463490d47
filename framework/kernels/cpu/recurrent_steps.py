"""What the loops of LSTM, GRU and RNN share: threads over streams, the order of steps, and short rows.

Each thread runs its streams from the first step to the last.  T steps, N streams, H values; the arrays are those of
``layers/recurrent/cell.py``, whose loops are the plain versions.
"""

import numpy as np

from .rows import compiled
from .tanh import sigmoid, tanh

NS_PER_PRODUCT = 0.015
FEW_STREAMS = 8  # up to so many, one step alone is quicker without a BLAS


def over_streams(backend, streams, gates, W_h):
    """Run ``streams(start, stop)`` on the threads' shares of all streams."""
    steps, count, width = gates.shape
    backend.parallel(streams, count, steps * count * (W_h.size * NS_PER_PRODUCT + width))


def is_plain(gates):
    """Whether there is one step of many streams: not worth packing the weights, so that the plain loop is quicker."""
    return len(gates) == 1 and gates.shape[1] > FEW_STREAMS


def marks(keep, mask, gates):
    """keep, all ones where it is None; mask, or an array in its place, and whether there is one."""
    if keep is None:
        keep = np.ones(gates.shape[:2], gates.dtype)
    return (keep, keep, False) if mask is None else (keep, mask, True)


@compiled
def place(s, T, reverse):
    """The step that runs as number s of T, and where the states before and after it stand."""
    if reverse:
        return T - 1 - s, T - s, T - 1 - s
    return s, s, s + 1


@compiled
def begin_step(keep, h_previous, bias, start, h_before, gates):
    """For the streams from ``start`` on: h_before = keep h_previous, gates += bias."""
    for m in range(len(h_before)):
        n = start + m
        scale_row(keep[n], h_previous[n], h_before[m])
        add_row(bias[n if len(bias) > 1 else 0], gates[n])


@compiled
def scale_row(factor, x, out):
    for j in range(len(x)):
        out[j] = factor * x[j]


@compiled
def add_row(x, out):
    for j in range(len(x)):
        out[j] += x[j]


@compiled
def multiply_rows(x, y, out):
    for j in range(len(x)):
        out[j] = x[j] * y[j]


@compiled
def sigmoid_row(x):
    for j in range(len(x)):
        x[j] = sigmoid(x[j])


@compiled
def tanh_row(x):
    for j in range(len(x)):
        x[j] = tanh(x[j])
