"""Recurrent layers stream by stream and vector by vector, in float64: each sequence is cut out, run alone, put back.

Independent of layers/recurrent: there are no T x N arrays of gates here and no factors for cont, mask or direction.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

Vector = np.ndarray
State = tuple[Vector, ...]


def sigmoid(a: Vector) -> Vector:
    return 1 / (1 + np.exp(-a))


def lstm(x: Vector, state: State, p: Mapping[str, np.ndarray]) -> State:
    h, c = state
    i, f, o, g = np.split(p["W_x"] @ x + p["b"] + p["W_h"] @ h, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru(x: Vector, state: State, p: Mapping[str, np.ndarray]) -> State:
    (h,) = state
    W_z, W_r, W = np.split(np.hstack([p["W_h"], p["W_x"]]), 3)
    b_z, b_r, b = np.split(p["b"], 3)
    z = sigmoid(W_z @ np.concatenate([h, x]) + b_z)
    r = sigmoid(W_r @ np.concatenate([h, x]) + b_r)
    candidate = np.tanh(W @ np.concatenate([r * h, x]) + b)
    return ((1 - z) * h + z * candidate,)


def gru_reset_after(x: Vector, state: State, p: Mapping[str, np.ndarray]) -> State:
    (h,) = state
    x_z, x_r, x_n = np.split(p["W_x"] @ x + p["b"], 3)
    h_z, h_r, h_n = np.split(p["W_h"] @ h, 3)
    z, r = sigmoid(x_z + h_z), sigmoid(x_r + h_r)
    return ((1 - z) * h + z * np.tanh(x_n + r * (h_n + p["b_h"])),)


def rnn(f: Callable[[Vector], Vector]) -> Callable[..., State]:
    return lambda x, state, p: (f(p["W_x"] @ x + p["b"] + p["W_h"] @ state[0]),)


@dataclass
class Stack:
    """Levels of runs; each run is (reverse, its parameters by name).

    ``step`` gives the states after one step; ``states`` is how many there are.
    """

    step: Callable[..., State]
    states: int
    levels: Sequence[Sequence[tuple[bool, Mapping[str, np.ndarray]]]]
    sums: bool = False
    last: list[list[State]] = field(default_factory=list)  # of each run, for each stream

    def __call__(
        self,
        x: np.ndarray,
        cont: np.ndarray | None = None,
        static: np.ndarray | None = None,
        true: Sequence[Sequence[int]] | None = None,
        first: Sequence[np.ndarray] | None = None,
    ) -> np.ndarray:
        """y for x (T x N x D); ``true``: the steps of each stream that are no padding; ``first``: runs x N x H each."""
        T, N = x.shape[:2]
        H = self.levels[0][0][1]["W_h"].shape[1]
        number, self.last = 0, []
        for level, runs in enumerate(self.levels):
            outputs = []
            for reverse, p in runs:
                y, finals = np.zeros((T, N, H)), []
                for n in range(N):
                    start = tuple(f[number, n] for f in first or [np.zeros((number + 1, N, H))] * self.states)
                    marks = [1] * T if cont is None else list(cont[:, n])
                    steps = range(T) if true is None else true[n]
                    s = static[n] if static is not None and level == 0 else None
                    finals.append(self.stream(x[:, n], marks, steps, s, start, reverse, p, y[:, n]))
                outputs.append(y)
                self.last.append(finals)
                number += 1
            x = sum(outputs) if self.sums else np.concatenate(outputs, axis=2)
        return x

    def stream(self, x, marks, steps, static, start, reverse, p, y) -> State:
        """Fill y (T x H) for one stream; gives the last states."""
        sequences: list[list[int]] = []
        for t, mark in enumerate(marks):
            if mark == 0 or not sequences:
                sequences.append([])
            sequences[-1].append(t)
        if reverse:
            sequences = [sequence[::-1] for sequence in sequences[::-1]]
        state = start
        for position, sequence in enumerate(sequences):
            if position > 0 or (not reverse and marks[0] == 0):
                state = tuple(np.zeros_like(part) for part in start)
            for t in sequence:
                if t in steps:
                    more = {} if static is None else {"b": p["b"] + p["W_static"] @ static}
                    state = self.step(x[t], state, {**p, **more})
                    y[t] = np.tanh(p["W_ho"] @ state[0] + p["b_o"]) if "W_ho" in p else state[0]
        return state
