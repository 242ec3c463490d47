"""AttentionCell: a recurrent cell that looks at a memory in every step."""

from collections.abc import Sequence
from copy import copy
from typing import Any

from ...framework.matmul import matmul
from ..recurrent.cell import Arrays, Cell, loop_backward, loop_forward
from .attend import masked_softmax
from .scores import Score

NS_PER_PRODUCT = 0.03  # of one weight with one value, roughly


class AttentionCell(Cell):
    """q = W_Q h'; alpha = softmax over i of score(k_i, q); c = sum_i alpha_i h_i; gates += W_context c; then ``cell``.

    The memory h_i, N x S x D_h, is shown by ``look_at``; the keys k_i = W_K h_i are made once for all steps.
    ``extra`` holds the cell's own, then c (D_h), alpha (S) and q (K); ``d_extra`` their gradients, where those of alpha
    become those of the scores.
    """

    def __init__(self, cell: Cell, score: Score, D_h: int):
        self.cell, self.score, self.D_h = cell, score, D_h
        self.gates, self.states = cell.gates, cell.states
        self.own = len(cell.weight_shapes(1))  # how many of the weights are the cell's

    def weight_shapes(self, H: int) -> dict[str, tuple[int, ...]]:
        return {**self.cell.weight_shapes(H), "W_context": (self.gates * H, self.D_h)}

    def attention_shapes(self, H: int) -> dict[str, tuple[int, ...]]:
        """Name and shape of the weights of queries, keys and scores, which stand behind the others."""
        K = self.score.K
        return {"W_Q": (K, H), "W_K": (K, self.D_h), **self.score.weight_shapes()}

    def extra(self, H: int) -> int:
        return self.cell.extra(H) + self.D_h + self.values.shape[1] + self.score.K

    def parts(self, extra: Any) -> Sequence[Any]:
        """The cell's own part, c, alpha and q in ``extra``, or in ``d_extra`` their gradients."""
        q = extra.shape[-1] - self.score.K
        alpha = q - self.values.shape[1]
        c = alpha - self.D_h
        return extra[..., :c], extra[..., c:alpha], extra[..., alpha:q], extra[..., q:]

    def look_at(self, values: Any, visible: Any) -> None:
        """The memory of the passes that follow: N x S x D_h, and whether it is no padding: N x S, bool."""
        self.values, self.visible = values, visible

    def run_forward(
        self, backend: Any, bias: Any, weights: Arrays, keep: Any, mask: Any, reverse: bool,
        gates: Any, extra: Any, states: Any,
    ) -> None:  # fmt: skip
        N, S, D_h = self.values.shape
        self.keys = backend.xp.empty((N, S, self.score.K), gates.dtype)
        matmul(backend, self.values.reshape(N * S, D_h), weights[self.own + 2].T, self.keys.reshape(N * S, -1))

        def streams(start: int, stop: int) -> None:
            n = slice(start, stop)
            loop_forward(
                backend, self.part(n), bias[n] if len(bias) > 1 else bias, weights, marks(keep, n), marks(mask, n),
                reverse, gates[:, n], extra[:, n], states[:, :, n],
            )  # fmt: skip

        backend.parallel(streams, gates.shape[1], self.cost(weights, gates))

    def part(self, streams: slice) -> "AttentionCell":
        """The cell that some of the streams see: each thread runs its own."""
        cell = copy(self)
        cell.values, cell.keys, cell.visible = self.values[streams], self.keys[streams], self.visible[streams]
        return cell

    def cost(self, weights: Arrays, gates: Any) -> float:
        """About how long the steps take on one core, in nanoseconds."""
        return gates.shape[0] * gates.shape[1] * sum(weight.size for weight in weights) * NS_PER_PRODUCT

    def step_forward(self, xp: Any, weights: Arrays, gates: Any, extra: Any, before: Arrays, after: Arrays) -> None:
        W_context, W_Q, _, *v = weights[self.own :]
        own, c, alpha, q = self.parts(extra)
        xp.matmul(before[0], W_Q.T, out=q)
        self.score.forward(xp, v, self.keys, q, alpha)
        masked_softmax(xp, alpha, self.visible)
        c[...] = xp.matmul(alpha[:, None], self.values)[:, 0]
        gates += c @ W_context.T
        self.cell.step_forward(xp, weights[: self.own], gates, own, before, after)

    def show_gradients(self, d_context: Any, d_alpha: Any) -> None:
        """The gradients of c and alpha of all steps from outside, T x N x ...; 0 where there are none."""
        self.d_context, self.d_alpha = d_context, d_alpha

    def run_backward(
        self, backend: Any, weights: Arrays, keep: Any, mask: Any, reverse: bool,
        gates: Any, extra: Any, states: Any, d_h: Any, d_gates: Any, d_extra: Any, d_states: Any,
    ) -> None:  # fmt: skip
        _, _, alpha, q = self.parts(extra)
        _, dc, d_scores, _ = self.parts(d_extra)
        dc[...] = self.d_context
        d_scores[...] = self.d_alpha

        def streams(start: int, stop: int) -> None:
            n = slice(start, stop)
            loop_backward(
                backend, self.part(n), weights, marks(keep, n), marks(mask, n), reverse, gates[:, n], extra[:, n],
                states[:, :, n], d_h[:, n], d_gates[:, n], d_extra[:, n], d_states[:, n],
            )  # fmt: skip

        backend.parallel(streams, gates.shape[1], 2 * self.cost(weights, gates))
        xp, W_K, v = backend.xp, weights[self.own + 2], weights[self.own + 3 :]
        self.d_keys, self.dv = self.score.finish(xp, v, self.keys, q, d_scores)
        self.d_values = xp.empty_like(self.values)
        matmul(backend, self.d_keys.reshape(-1, self.score.K), W_K, self.d_values.reshape(-1, self.D_h))
        self.d_values += xp.matmul(alpha.transpose(1, 2, 0), dc.transpose(1, 0, 2))

    def step_backward(
        self, xp: Any, weights: Arrays, gates: Any, extra: Any, before: Arrays, after: Arrays,
        d_after: Arrays, d_gates: Any, d_extra: Any, d_before: Arrays,
    ) -> None:  # fmt: skip
        W_context, W_Q, _, *v = weights[self.own :]
        own, _, alpha, q = self.parts(extra)
        d_own, dc, d_scores, dq = self.parts(d_extra)
        self.cell.step_backward(xp, weights[: self.own], gates, own, before, after, d_after, d_gates, d_own, d_before)
        dc += d_gates @ W_context
        d_scores += xp.matmul(dc[:, None], self.values.transpose(0, 2, 1))[:, 0]
        d_scores -= (alpha * d_scores).sum(axis=1, keepdims=True)
        d_scores *= alpha
        self.score.backward(xp, v, self.keys, q, d_scores, dq)
        d_before[0][...] += dq @ W_Q

    def weight_gradient(
        self, product: Any, index: int, h_before: Any, extra: Any, d_gates: Any, d_extra: Any, out: Any
    ) -> None:
        own, c, _, _ = self.parts(extra)
        d_own, _, _, dq = self.parts(d_extra)
        number = index - self.own
        if number < 0:
            self.cell.weight_gradient(product, index, h_before, own, d_gates, d_own, out)
        elif number == 0:  # W_context
            product(d_gates.T, c, out)
        elif number == 1:  # W_Q
            product(dq.T, h_before, out)
        elif number == 2:  # W_K
            product(self.d_keys.reshape(-1, self.score.K).T, self.values.reshape(-1, self.D_h), out)
        else:
            out[...] = self.dv


def marks(factors: Any, streams: slice) -> Any:
    """keep or mask (T x N, or None) of some streams."""
    return None if factors is None else factors[:, streams]
