"""What the loops of LSTM, GRU and RNN share: threads over streams, the order of steps, and short rows.

Each thread runs its streams from the first step to the last.  T steps, N streams, H values; the arrays are those of
``layers/recurrent/cell.py``, whose loops are the plain versions.
"""

from functools import lru_cache

import numpy as np

from .few_rows import add_row_dots
from .row_product import pack_panels
from .rows import compiled
from .tanh import sigmoid, tanh

NS_PER_PRODUCT = 0.015
NS_PER_WEIGHT = 0.07  # that is read for one step alone
FEW_STREAMS = 8  # up to so many, one step alone is quicker without a BLAS


def over_streams(backend, loop, gates, W_h, *args):
    """Run a shared ``loop`` on the threads' shares of all streams."""
    steps, count, width = gates.shape
    backend.share(loop, count, steps * count * (W_h.size * NS_PER_PRODUCT + width), *args)


def is_plain(gates):
    """Whether there is one step of many streams: not worth packing the weights, so that the plain loop is quicker."""
    return len(gates) == 1 and gates.shape[1] > FEW_STREAMS


def marks(keep, mask, gates):
    """keep, all ones where it is None; mask, or an array in its place, and whether there is one."""
    if keep is None:
        keep = all_kept(gates.shape[:2], gates.dtype)
    return (keep, keep, False) if mask is None else (keep, mask, True)


@lru_cache(maxsize=16)
def all_kept(shape, dtype):
    """Ones; kept themselves, since they cost as much as a short step."""
    return np.ones(shape, dtype)


def step_weights(backend, W, keep, h, reverse, out):
    """What the loop is to add h' W^T to ``out`` (T x N x M) with, for W (M x H): W^T in panels, for one step W itself.

    A long product of one step alone is split over the threads at once, which leaves no row of W to the loop.
    """
    if len(out) > 1:
        return pack_panels(W.T)
    if not is_long(backend, W, out):
        return W
    add_split(backend, state_read(keep, h, reverse), W, out[0])
    return W[:0]


def is_long(backend, W, gates):
    """Whether the product of one step with W is worth splitting over the threads."""
    return backend.pool.shares(len(W), W.size * gates.shape[1] * NS_PER_WEIGHT) > 1


def state_read(keep, h, reverse):
    """What the only step reads of the state h before it: keep h."""
    h_before = h[1 if reverse else 0]
    return h_before if keep is None else h_before * keep[0][:, None]


def add_split(backend, a, W, out):
    """out += a W^T for few rows a, with W (M x K) as it is; each thread takes some of its rows."""
    backend.share(add_row_dots, len(W), W.size * len(a) * NS_PER_WEIGHT, a, W, out)


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
