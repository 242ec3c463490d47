"""Arguments for the fused loops of LSTM, GRU and RNN, as tests/test_kernels.py wants them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from recaffe.layers.recurrent.cell import Cell
from recaffe.layers.recurrent.gru import GRUCell
from recaffe.layers.recurrent.lstm import LSTMCell
from recaffe.layers.recurrent.reset_after_cell import ResetAfterCell
from recaffe.layers.recurrent.rnn import RNNCell

SIZES = [(5, 3, 7), (4, 1, 50), (3, 11, 16), (1, 2, 4), (1, 1, 70), (1, 11, 5), (2, 5, 100)]  # T, N, H


def loops(a: Any, *cells: Cell) -> Iterator[tuple[Cell, list, Any, Any, bool, int, int, int]]:
    """Cells and sizes, with and without cont and padding, in both directions."""
    for number, (T, N, H) in enumerate(SIZES):
        for cell in cells:
            weights = [0.3 * a.normal(*shape) for shape in cell.weight_shapes(H).values()]
            keep, mask = ((a.random.random((T, N)) < 0.7).astype(a.dtype) for _ in range(2))
            yield cell, weights, None, None, False, T, N, H
            yield cell, weights, keep, None, True, T, N, H
            yield cell, weights, keep, mask, number % 2 == 0, T, N, H


def forwards(*cells: Cell) -> Callable[[Any], Iterator[tuple]]:
    """The arguments of a forward loop."""

    def arguments(a: Any) -> Iterator[tuple]:
        for cell, weights, keep, mask, reverse, T, N, H in loops(a, *cells):
            gates, extra = a.normal(T, N, cell.gates * H), a.empty(T, N, cell.extra(H))
            states = a.empty(len(cell.states), T + 1, N, H)
            states[:, T if reverse else 0] = a.normal(len(cell.states), N, H)
            bias = a.normal(N if reverse else 1, cell.gates * H)
            yield cell, bias, weights, keep, mask, reverse, gates, extra, states

    return arguments


def backwards(*cells: Cell) -> Callable[[Any], Iterator[tuple]]:
    """The arguments of a backward loop."""

    def arguments(a: Any) -> Iterator[tuple]:
        for cell, weights, keep, mask, reverse, T, N, H in loops(a, *cells):
            gates, extra = np.tanh(a.positive(T, N, cell.gates * H)), a.normal(T, N, cell.extra(H))
            states = a.normal(len(cell.states), T + 1, N, H)
            d_gates, d_extra = a.empty(*gates.shape), a.empty(*extra.shape)
            d_h, d_states = a.normal(T, N, H), a.normal(len(cell.states), N, H)
            yield cell, weights, keep, mask, reverse, gates, extra, states, d_h, d_gates, d_extra, d_states

    return arguments


rnns = [RNNCell(nonlinearity) for nonlinearity in (0, 1, 2)]

# what makes the arguments, and which of them are results: the states; the gradients of gates, extra values and states
CASES = {
    name + suffix: (make(*cells), outputs)
    for name, cells in (
        ("lstm", [LSTMCell()]), ("gru", [GRUCell()]), ("gru_reset_after", [ResetAfterCell()]), ("rnn", rnns)
    )
    for suffix, make, outputs in (("_forward", forwards, (8,)), ("_backward", backwards, (9, 10, 11)))
}  # fmt: skip
