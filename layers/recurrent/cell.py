"""Cell: one step of a recurrent net, and the loop that runs it over time."""

from collections.abc import Sequence
from typing import Any

Arrays = Sequence[Any]


class Cell:
    """One step from the states before (N x H each) to the states after.

    The gates' inputs from outside (W_x x + b, and a static input's part) stand in ``gates`` (N x G H, for G gates)
    when the step begins; it adds the recurrent products and leaves the activated gates for the backward step.
    ``states`` names the states in the order in which they are exposed; the first is the output h.
    """

    gates: int
    states: tuple[str, ...]

    def weight_shapes(self, H: int) -> dict[str, tuple[int, ...]]:
        """Name and shape of each parameter that acts on the states."""
        raise NotImplementedError

    def extra(self, H: int) -> int:
        """How many values beside gates and states a step keeps for its backward step, for each stream."""
        return 0

    def step_forward(self, xp: Any, weights: Arrays, gates: Any, extra: Any, before: Arrays, after: Arrays) -> None:
        """``after`` and ``extra`` from ``before``; ``gates`` is activated in place."""
        raise NotImplementedError

    def step_backward(
        self, xp: Any, weights: Arrays, gates: Any, extra: Any, before: Arrays, after: Arrays,
        d_after: Arrays, d_gates: Any, d_extra: Any, d_before: Arrays,
    ) -> None:  # fmt: skip
        """``d_gates`` (before the activations), ``d_extra`` and ``d_before`` from ``d_after``."""
        raise NotImplementedError

    def weight_gradient(
        self, matmul: Any, index: int, h_before: Any, extra: Any, d_gates: Any, d_extra: Any, out: Any
    ) -> None:
        """out = the gradient of weight number ``index``, from all steps at once (T N rows in each array)."""
        raise NotImplementedError

    def run_forward(self, backend: Any, *arrays: Any) -> None:
        """``loop_forward``, or a fused version of it."""
        loop_forward(backend, self, *arrays)

    def run_backward(self, backend: Any, *arrays: Any) -> None:
        """``loop_backward``, or a fused version of it."""
        loop_backward(backend, self, *arrays)


def loop_forward(
    backend: Any, cell: Cell, bias: Any, weights: Arrays, keep: Any, mask: Any, reverse: bool,
    gates: Any, extra: Any, states: Any,
) -> None:  # fmt: skip
    """All steps: before = keep_t state, then the cell; a padded step keeps the state.

    gates T x N x G H: W_x x on entry, to which bias (1 or N rows of G H) is added, activated on exit.
    keep, mask T x N or None; extra T x N x ...; states K x (T+1) x N x H, the first ones at index 0 (T in reverse).
    """
    xp, T = backend.xp, len(gates)
    gates += bias
    previous, after = step_states(states, reverse)
    for t in range(T - 1, -1, -1) if reverse else range(T):
        before = kept(keep, t, previous)
        cell.step_forward(xp, weights, gates[t], extra[t], each(before), each(after[:, t]))
        if mask is not None:
            after[:, t] = xp.where(mask[t][:, None] != 0, after[:, t], before)


def loop_backward(
    backend: Any, cell: Cell, weights: Arrays, keep: Any, mask: Any, reverse: bool,
    gates: Any, extra: Any, states: Any, d_h: Any, d_gates: Any, d_extra: Any, d_states: Any,
) -> None:  # fmt: skip
    """The steps of ``loop_forward`` from last to first.

    d_h T x N x H is the gradient of every h from outside; d_states K x N x H that of the last states on entry, that
    of the first states on exit; d_gates and d_extra are written.
    """
    xp, T = backend.xp, len(gates)
    previous, after = step_states(states, reverse)
    d_before = xp.empty_like(d_states)
    for t in range(T) if reverse else range(T - 1, -1, -1):
        d_states[0] += d_h[t]
        cell.step_backward(
            xp, weights, gates[t], extra[t], each(kept(keep, t, previous)), each(after[:, t]),
            each(d_states), d_gates[t], d_extra[t], each(d_before),
        )  # fmt: skip
        if mask is not None:
            true = mask[t][:, None] != 0
            d_gates[t] = xp.where(true, d_gates[t], 0)
            d_extra[t] = xp.where(true, d_extra[t], 0)
            d_before[...] = xp.where(true, d_before, d_states)
        d_states[...] = d_before if keep is None else keep[t][:, None] * d_before


def step_states(states: Any, reverse: bool) -> tuple[Any, Any]:
    """The states before and after every step, K x T x N x H each, where a loop's states stand."""
    return (states[:, 1:], states[:, :-1]) if reverse else (states[:, :-1], states[:, 1:])


def each(states: Any) -> Arrays:
    """The states one by one, N x H each."""
    return [states[k] for k in range(len(states))]


def kept(keep: Any, t: int, previous: Any) -> Any:
    """What step t reads of the previous states: nothing where a sequence starts."""
    return previous[:, t] if keep is None else keep[t][:, None] * previous[:, t]
