"""AttentionLSTM and AttentionGRU: values against a reference, gradients against differences and a step net."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import recaffe
from recaffe.framework.gradient_check import compare, layer_objective
from recaffe.framework.single_layer import SingleLayer

from tests.reference import attention_loop
from tests.reference import recurrent as reference
from tests.support import assert_close, make_net

ROOT = Path(__file__).parents[2]
T, N, D, H, S, D_h, K = 5, 3, 2, 3, 4, 5, 6
rng = np.random.default_rng(3)
x, memory = rng.normal(size=(T, N, D)), rng.normal(size=(S, N, D_h))
CELLS = {
    # name: (type, options, the reference's step, states)
    "LSTM": ("AttentionLSTM", "", reference.lstm, 2),
    "GRU": ("AttentionGRU", "", reference.gru, 1),
    "GRU reset after": ("AttentionGRU", "reset_after: true", reference.gru_reset_after, 1),
}
SCORES = {"DOT": 1.0, "ADDITIVE": 1.0, "DOT scaled: true": K**-0.5}
CONT = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 0]], float)
# what is true of x, and what is seen of the memory: of one stream nothing
MASKS = {
    T: np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 1, 0], [1, 0, 0]], float),
    S: np.array([[1, 0, 0], [0, 0, 1], [1, 0, 1], [1, 0, 0]], float),
}
LENGTHS = {T: np.array([5, 0, 3], float), S: np.array([2, 4, 0], float)}
NAMES = {"W_xc": "W_x", "W_hc": "W_h", "b_c": "b"}  # ours, and the reference's


def marks(padding, steps):
    """The bottom that says what is padding of so many steps, and the places that are none."""
    if padding == "MASK":
        return [MASKS[steps]], [np.flatnonzero(column) for column in MASKS[steps].T]
    if padding == "LENGTHS":
        return [LENGTHS[steps]], [range(int(length)) for length in LENGTHS[steps]]
    return [], [range(steps)] * N


class Case:
    """A layer with its bottoms, and what the reference gives for the same parameters."""

    def __init__(self, cell, score, padding="NO_PADDING", memory_padding="NO_PADDING", exposed=False, **options):
        layer_type, more, self.step, self.states = CELLS[cell]
        self.exposed, self.scale = exposed, SCORES[score]
        self.first = [rng.normal(size=(N, H)) if exposed else np.zeros((N, H)) for _ in range(self.states)]
        (of_x, self.true), (of_memory, self.seen) = marks(padding, T), marks(memory_padding, S)
        bottoms = [x, CONT, memory, *([first[None] for first in self.first] if exposed else []), *of_x, *of_memory]
        tops = " ".join(f"top: 'top{k}'" for k in range(3 + self.states * exposed))
        text = (
            f"type: '{layer_type}' {tops} recurrent_param {{ num_output: {H} {more} padding: {padding}"
            f" expose_hidden: {str(exposed).lower()} }}"
            f" attention_param {{ num_output: {K} score: {score} padding: {memory_padding} }}"
        )
        self.single = SingleLayer(text, bottoms, **options)

    def expected(self):
        """The tops as the reference gives them."""
        p = {
            NAMES.get(name, name): values
            for blob, values in zip(self.single.layer.blobs, self.single.parameters(), strict=True)
            for name in [blob.name.rpartition(".")[2]]
        }
        h, last, contexts, weights = attention_loop.decode(
            self.step, x, CONT, memory, self.first, self.true, self.seen, p, self.scale
        )
        return [h, *([part[None] for part in last] if self.exposed else []), contexts, weights]


EVERY = [
    pytest.param(*options, id=" ".join(map(str, options)))
    for options in product(CELLS, SCORES, ["NO_PADDING", "MASK", "LENGTHS"], ["NO_PADDING", "MASK", "LENGTHS"])
]


@pytest.mark.parametrize(("cell", "score", "padding", "memory_padding"), EVERY)
def test_values(cell, score, padding, memory_padding):
    for exposed in (False, True):
        case = Case(cell, score, padding, memory_padding, exposed)
        for got, wanted in zip(case.single.forward(), case.expected(), strict=True):
            assert_close(got, wanted, 1e-12)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("cell", CELLS)
def test_every_element_of_every_gradient(cell, score):
    case = Case(cell, score, "MASK", "LENGTHS", exposed=True)
    compare(layer_objective(case.single, None, None), tolerance=1e-6)


# as a step net

ADDITIVE = "attention_param { score: ADDITIVE num_output: 5"


def pass_both_ways(text, bottoms, parameters, slopes):
    """Tops, and the gradients of x, of the memory and of the parameters."""
    single = SingleLayer(text, bottoms, parameters=parameters)
    tops = single.forward()
    for blob in single.layer.blobs:
        blob.clear_diff()
    single.set_top_diffs(slopes)
    single.backward([True, False, True, False])
    diffs = single.bottom_diffs()
    return tops, [diffs[0], diffs[2]], single.parameter_diffs()


@pytest.mark.parametrize("additive", [False, True], ids=["dot", "additive"])
def test_the_step_net_of_the_docs_is_the_attention_lstm(additive):
    page = (ROOT / "docs" / "step_nets.md").read_text()
    texts = re.findall(r'^layer \{\n(  name: "decoder".+?)^\}', page, re.DOTALL | re.MULTILINE)
    if additive:
        texts = [text.replace("attention_param { num_output: 5", ADDITIVE) for text in texts]
    step, fused = texts
    T, N, S = 6, 2, 4
    cont = np.array([[0, 0], [1, 1], [1, 0], [0, 1], [1, 1], [1, 1]], float)
    bottoms = [rng.normal(size=(T, N, 3)), cont, rng.normal(size=(S, N, 5)), np.array([4.0, 2.0])]
    of_attention = [rng.normal(size=(5, 4)), rng.normal(size=(5, 5)), *([rng.normal(size=5)] if additive else [])]
    of_cell = [rng.normal(size=shape) for shape in ((16, 3), (16,), (16, 4), (16, 5))]
    slopes = [rng.normal(size=(T, N, size)) for size in (4, 5, S)]
    tops, diffs, gradients = pass_both_ways(step, bottoms, [*of_attention, *of_cell], slopes)
    expected_tops, expected_diffs, expected_gradients = pass_both_ways(
        fused, bottoms, [*of_cell, *of_attention], slopes
    )
    moved = len(of_attention)
    for got, expected in zip(
        [*tops, *diffs, *gradients[moved:], *gradients[:moved]],
        [*expected_tops, *expected_diffs, *expected_gradients],
        strict=True,
    ):
        assert_close(got, expected, 1e-10)
        assert np.abs(expected).max() > 0.01


# passes that go on

DECODER = """layer {{ name: "in" type: "Input" top: "x" top: "memory"
  input_param {{ shape {{ dim: 5 dim: 3 dim: 2 }} shape {{ dim: 4 dim: 3 dim: 5 }} }} }}
  layer {{ name: "decoder" type: "{type}" bottom: "x" bottom: "memory" top: "h" {tops} top: "c"
    recurrent_param {{ num_output: 3 carry_state: true {options} weight_filler {{ type: "xavier" }} }}
    attention_param {{ num_output: 6 }} }}"""


@pytest.mark.parametrize("exposed", [False, True], ids=["hidden", "exposed"])
@pytest.mark.parametrize("cell", CELLS)
def test_step_by_step_is_the_whole(cell, exposed):
    layer_type, options, _, states = CELLS[cell]
    if exposed:
        options += " expose_hidden: true"
    tops = " ".join(f'top: "last{k}"' for k in range(states * exposed))
    net = make_net(DECODER.format(type=layer_type, options=options, tops=tops), recaffe.TEST, np.float64)
    whole = {name: values.copy() for name, values in run(net, x, memory).items()}
    net.reset_states()
    for t in range(T):
        step = run(net, x[t : t + 1], memory)
        for name in ("h", "c"):
            assert_close(step[name][0], whole[name][t], 1e-12)


def test_streams_that_are_selected_go_on():
    net = make_net(DECODER.format(type="AttentionLSTM", options="", tops=""), recaffe.TEST, np.float64)
    order = [2, 0, 0, 1]
    expected = run(net, x, memory)["h"][:, order].copy()
    net.reset_states()
    run(net, x[:2], memory)
    net.select_streams(order)
    assert_close(run(net, x[2:, order], memory[:, order])["h"], expected[2:], 1e-12)


def run(net, x, memory):
    """The net's outputs for inputs of any length."""
    net.blobs["x"].reshape(*x.shape)
    net.blobs["memory"].reshape(*memory.shape)
    return net.forward(x=x, memory=memory)


# errors

X, M = (T, N, D), (S, N, D_h)


@pytest.mark.parametrize(
    ("options", "attention", "bottoms", "message"),
    [
        ("", "", [X, M], "attention_param needs num_output, the size of q and k, 1 or more"),
        ("", "num_output: 0", [X, M], "attention_param needs num_output"),
        ("", "num_output: 2 causal: true", [X, M], "attention_param: causal is an option of other layers"),
        ("", "num_output: 2 scaled: true score: ADDITIVE", [X, M], "scaled is for the score DOT"),
        ("num_layers: 2", "num_output: 2", [X, M], "there is one level in direction FORWARD"),
        ("direction: REVERSE", "num_output: 2", [X, M], "there is one level in direction FORWARD"),
        ("last_output: true", "num_output: 2", [X, M], "there is one level in direction FORWARD"),
        ("", "num_output: 2", [X, (T, N)], r"got 2 bottom\(s\): expected x, cont"),
        (
            "",
            "num_output: 2",
            [X, (S, N + 1, D_h)],
            r"\(memory\) has shape \(4, 4, 5\), expected S x N x D_h with N = 3",
        ),
        ("", "num_output: 2", [X, (S, N, D_h, 1)], r"\(memory\) has shape \(4, 3, 5, 1\), expected S x N x D_h"),
        (
            "",
            "num_output: 2",
            [X, M, (T, N)],
            r"bottom 'bottom 2' is too many: expected x, cont \(T x N\) if wanted, the memory",
        ),
        ("cont_bottom: false", "num_output: 2", [X, M, (N, 4)], "bottom 'bottom 2' is too many"),
        ("", "num_output: 2 padding: LENGTHS", [X, M, (S,)], r"\(lengths\) has shape \(4,\), expected N = \(3,\)"),
        ("", "num_output: 2 padding: MASK", [X, M, (T, N)], r"\(mask\) has shape \(5, 3\), expected S x N = \(4, 3\)"),
        ("", "num_output: 2 padding: LENGTHS", [X, M, np.array([1.0, 5.0, 0.0])], r"is 5 at \[1\], .* from 0 to S = 4"),
    ],
)
def test_what_cannot_be_is_told(options, attention, bottoms, message):
    text = f"type: 'AttentionLSTM' recurrent_param {{ num_output: 3 {options} }} attention_param {{ {attention} }}"
    values = [np.zeros(bottom) if isinstance(bottom, tuple) else bottom for bottom in bottoms]
    with pytest.raises(recaffe.RecaffeError, match=message):
        SingleLayer(text, values).forward()


def test_tops_are_counted():
    tops = " ".join(f"top: 'top{k}'" for k in range(4))
    text = f"type: 'AttentionLSTM' {tops} recurrent_param {{ num_output: 3 }} attention_param {{ num_output: 2 }}"
    with pytest.raises(recaffe.RecaffeError, match=r"got 4 tops, expected at most 3"):
        SingleLayer(text, [x, memory])
