"""RNN, LSTM and GRU: values against a reference that runs each sequence alone, gradients against differences."""

from itertools import product

import numpy as np
import pytest
from recaffe.framework.backend import CpuBackend
from recaffe.framework.gradient_check import compare, layer_objective
from recaffe.framework.layer_case import plain_cpu
from recaffe.framework.single_layer import SingleLayer

from tests.reference import recurrent as reference
from tests.support import assert_close

T, N, D, H, S = 5, 3, 2, 3, 2

CELLS = {
    # name: (type, options, the reference's step, states)
    "LSTM": ("LSTM", "", reference.lstm, 2),
    "GRU": ("GRU", "", reference.gru, 1),
    "GRU reset after": ("GRU", "reset_after: true", reference.gru_reset_after, 1),
    "RNN": ("RNN", "", reference.rnn(np.tanh), 1),
    "RNN tanh": ("RNN", "output_hidden: true", reference.rnn(np.tanh), 1),
    "RNN sigmoid": ("RNN", "output_hidden: true nonlinearity: SIGMOID", reference.rnn(reference.sigmoid), 1),
    "RNN relu": ("RNN", "nonlinearity: RELU", reference.rnn(lambda a: np.maximum(a, 0)), 1),
}
NAMES = {"W_xc": "W_x", "W_xh": "W_x", "W_hc": "W_h", "W_hh": "W_h"}  # ours, and the reference's
# what cont, a mask and lengths say: a sequence starts within a stream, a whole stream is padding
CONT = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 0]], float)
MASK = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 1, 0], [1, 0, 0]], float)
LENGTHS = np.array([5, 0, 3], float)
TRUE = {
    "NO_PADDING": None,
    "MASK": [np.flatnonzero(column) for column in MASK.T],
    "LENGTHS": [range(int(length)) for length in LENGTHS],
}


class Case:
    """One layer with its bottoms, and the reference with the same parameters."""

    def __init__(
        self, cell, direction="FORWARD", padding="NO_PADDING", static=False, exposed=False, layers=1,
        merge="CONCAT", with_cont=True, backend=None, dtype=np.float64, last_output=False, with_first=True,
    ):  # fmt: skip
        self.direction, self.padding, self.merge, self.layers = direction, padding, merge, layers
        self.exposed, self.with_cont, self.last_output = exposed, with_cont, last_output
        layer_type, options, self.step, self.states = CELLS[cell]
        rng = np.random.default_rng(5)
        self.x = rng.normal(size=(T, N, D))
        self.s = rng.normal(size=(N, S)) if static else None
        runs = layers * (2 if direction == "BIDIRECTIONAL" else 1)
        self.first = [rng.normal(size=(runs, N, H)) for _ in range(self.states)] if exposed and with_first else []
        bottoms = [self.x]
        bottoms += [CONT] if with_cont else []
        bottoms += [self.s] if static else []
        bottoms += self.first
        bottoms += {"MASK": [MASK], "LENGTHS": [LENGTHS]}.get(padding, [])
        tops = " ".join(f"top: 'top{k}'" for k in range(1 + (self.states if exposed else 0)))
        text = (
            f"type: '{layer_type}' {tops} recurrent_param {{ num_output: {H} {options} direction: {direction}"
            f" padding: {padding} num_layers: {layers} merge: {merge} expose_hidden: {str(exposed).lower()}"
            f" cont_bottom: {str(with_cont).lower()} last_output: {str(last_output).lower()} }}"
        )
        self.single = SingleLayer(text, bottoms, backend=backend or plain_cpu(), dtype=dtype)

    def reference(self):
        """The reference with the layer's parameters."""
        runs = {}
        for blob, values in zip(self.single.layer.blobs, self.single.parameters(), strict=True):
            run, _, name = blob.name.rpartition(".")
            p = runs.setdefault(run, {})
            p["W_static" if name.endswith("_static") else NAMES.get(name, "b" if len(p) == 1 else name)] = values
        directions = {"FORWARD": [False], "REVERSE": [True], "BIDIRECTIONAL": [False, True]}[self.direction]
        parameters = iter(runs.values())
        levels = [[(reverse, next(parameters)) for reverse in directions] for _ in range(self.layers)]
        return reference.Stack(self.step, self.states, levels, self.merge == "SUM")

    def expected(self):
        """The tops as the reference gives them."""
        stack = self.reference()
        y = stack(self.x, CONT if self.with_cont else None, self.s, TRUE[self.padding], self.first or None)
        last = [np.array([[streams[n][k] for n in range(N)] for streams in stack.last]) for k in range(self.states)]
        if self.last_output:
            y = self.at_last_steps(y)
        return [y, *(last if self.exposed else [])]

    def at_last_steps(self, y):
        """Of each stream the output at its last true step, and of the reverse run, whose values stand behind, at its
        first; zeros where there is none."""
        last = np.zeros(y.shape[1:])
        true = TRUE[self.padding] or [range(T)] * N
        for n in range(N):
            if len(true[n]):
                forward = y.shape[2] * (self.direction != "REVERSE") // (1 + (self.direction == "BIDIRECTIONAL"))
                last[n, :forward] = y[true[n][-1], n, :forward]
                last[n, forward:] = y[true[n][0], n, forward:]
        return last


EVERY = [
    pytest.param(*options, id=" ".join(map(str, options)))
    for options in product(CELLS, ["FORWARD", "REVERSE", "BIDIRECTIONAL"], TRUE, [False, True], [False, True], [1, 2])
]


@pytest.mark.parametrize(("cell", "direction", "padding", "static", "exposed", "layers"), EVERY)
def test_values_and_gradients(cell, direction, padding, static, exposed, layers):
    case = Case(cell, direction, padding, static, exposed, layers)
    expected = case.expected()
    for got, wanted in zip(case.single.forward(), expected, strict=True):
        assert_close(got, wanted, 1e-12)
    check_gradients(case.single)


LAST = [
    pytest.param(*options, id=" ".join(map(str, options)))
    for options in product(CELLS, ["FORWARD", "REVERSE", "BIDIRECTIONAL"], TRUE, [1, 2])
]


@pytest.mark.parametrize(("cell", "direction", "padding", "layers"), LAST)
def test_the_last_output_alone(cell, direction, padding, layers):
    case = Case(cell, direction, padding, exposed=layers == 2, layers=layers, last_output=True)
    for got, wanted in zip(case.single.forward(), case.expected(), strict=True):
        assert_close(got, wanted, 1e-12)
    check_gradients(case.single)


@pytest.mark.parametrize("cell", CELLS)
def test_the_last_outputs_of_both_directions_are_summed(cell):
    case = Case(cell, "BIDIRECTIONAL", "LENGTHS", merge="SUM", last_output=True)
    case.merge = "CONCAT"  # the reference's
    both = case.expected()[0]
    assert_close(case.single.forward()[0], both[:, :H] + both[:, H:], 1e-12)
    check_gradients(case.single)


@pytest.mark.parametrize("with_cont", [True, False], ids=["cont", "no cont"])
@pytest.mark.parametrize("padding", TRUE)
@pytest.mark.parametrize("cell", CELLS)
def test_exposed_states_without_first_ones_start_from_zeros(cell, padding, with_cont):
    case = Case(cell, "BIDIRECTIONAL", padding, exposed=True, layers=2, with_cont=with_cont, with_first=False)
    assert len(case.single.bottom) == 1 + with_cont + (padding != "NO_PADDING")
    for got, wanted in zip(case.single.forward(), case.expected(), strict=True):
        assert_close(got, wanted, 1e-12)
    check_gradients(case.single)


def check_gradients(single):
    """Each gradient along a random direction against differences: below 1e-6."""
    objective = layer_objective(single, None, None)
    held = [(blob, blob.data.copy()) for blob in objective.held]

    def value(variable=None, change=0):
        for blob, values in held:
            blob.data[...] = values
        if variable is not None:
            variable.data[...] += change
        objective.forward()
        return sum((top.data * weight).sum() for top, weight in zip(objective.tops, objective.weights, strict=True))

    value()
    objective.backward()
    rng = np.random.default_rng(7)
    for name, blob in objective.variables:
        gradient = blob.diff.copy()
        way = rng.normal(size=blob.shape)
        numeric = (value(blob, 1e-5 * way) - value(blob, -1e-5 * way)) / 2e-5
        scale = max(np.linalg.norm(gradient) * np.linalg.norm(way) / np.sqrt(way.size), 1e-3)
        assert abs((gradient * way).sum() - numeric) < 1e-6 * scale, name


@pytest.mark.parametrize("cell", CELLS)
def test_every_element_of_every_gradient(cell):
    case = Case(cell, "BIDIRECTIONAL", "MASK", True, True, 2, "SUM")
    compare(layer_objective(case.single, None, None), tolerance=1e-6)


@pytest.mark.parametrize("merge", ["CONCAT", "SUM"])
@pytest.mark.parametrize("cell", CELLS)
def test_without_cont_a_stream_is_one_sequence(cell, merge):
    case = Case(cell, "BIDIRECTIONAL", padding="MASK", layers=2, merge=merge, with_cont=False)
    assert_close(case.single.forward()[0], case.expected()[0], 1e-12)
    check_gradients(case.single)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
def test_fused_loops_give_the_same(cell, threads, dtype, monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr("recaffe.framework.threads.WORTH_SHARING", 0)
    backend = CpuBackend(threads=threads)
    for direction, padding in product(["FORWARD", "BIDIRECTIONAL"], TRUE):
        options = (cell, direction, padding, True, True, 2, "SUM")
        plain, fused = (Case(*options, backend=chosen, dtype=dtype) for chosen in (plain_cpu(), backend))
        results = [both_ways(case.single) for case in (plain, fused, fused)]
        for expected, got, again in zip(*results, strict=True):
            assert_close(got, expected, 1e-5 if dtype == np.float32 else 1e-12)
            assert np.array_equal(got, again), "two passes differ in their bits"


@pytest.mark.parametrize("worth", [0, 10**9], ids=["split", "whole"])
@pytest.mark.parametrize("direction", ["FORWARD", "BIDIRECTIONAL"])
@pytest.mark.parametrize("cell", CELLS)
def test_one_step_alone_gives_the_same(cell, direction, worth, monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr("recaffe.framework.threads.WORTH_SHARING", worth)
    layer_type, options, _, states = CELLS[cell]
    runs, width, rng, backend = 1 + (direction == "BIDIRECTIONAL"), 19, np.random.default_rng(3), CpuBackend(threads=3)
    text = (
        f"type: '{layer_type}' {' '.join(f'top: {name!r}' for name in 'yhc'[: 1 + states])} recurrent_param {{"
        f" num_output: {width} {options} direction: {direction} padding: MASK expose_hidden: true cont_bottom: true }}"
    )
    for streams in (1, 3, 8, 9):
        marks = [rng.permuted(np.arange(streams) % 3 > 0)[None].astype(float) for _ in range(2)]
        first = [rng.normal(size=(runs, streams, width)) for _ in range(states)]
        bottoms = [rng.normal(size=(1, streams, 4)), marks[0], *first, marks[1]]
        plain, fused = (SingleLayer(text, bottoms, backend=chosen) for chosen in (plain_cpu(), backend))
        for expected, got in zip(both_ways(plain), both_ways(fused), strict=True):
            assert_close(got, expected, 1e-12)


def both_ways(single):
    """Tops, and all gradients for top diffs of one."""
    tops = single.forward()
    for blob in single.layer.blobs:
        blob.clear_diff()
    single.set_top_diffs([np.ones_like(top) for top in tops])
    wanted = [single.layer.allow_force_backward(j) for j in range(len(single.bottom))]
    single.backward(wanted)
    diffs = single.bottom_diffs()
    return [*tops, *(diffs[j] for j, has in enumerate(wanted) if has), *single.parameter_diffs()]
