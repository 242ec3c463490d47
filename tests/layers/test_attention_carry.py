"""MultiHeadAttention with carry_state: pass after pass equals the whole sequence at once."""

import itertools

import numpy as np
import pytest
import recaffe
from recaffe.framework.single_layer import SingleLayer

from tests.support import assert_close

rng = np.random.default_rng(9)
T, N = 12, 3
x = rng.normal(size=(T, N, 6))
cont = (rng.random((T, N)) < 0.75).astype(float)
cont[0] = [0, 1, 1]
memory, lengths = rng.normal(size=(4, N, 5)), np.array([4.0, 2.0, 3.0])

OPTIONS = ["", "window: 3", "rotary: true", "window: 5 rotary: true", "bias_term: false"]
CHUNKS = {"step by step": [1] * T, "in chunks": [5, 1, 4, 2], "at once": [T]}


def attention(options, *bottoms, **more):
    """A MultiHeadAttention of width 4 with 2 heads, in phase TEST; to itself it is causal."""
    options += "" if "cross" in options else " causal: true"
    text = f"type: 'MultiHeadAttention' attention_param {{ num_output: 4 num_heads: 2 {options} }}"
    return SingleLayer(text, bottoms, phase=recaffe.TEST, **more)


def go_on(single, *bottoms):
    """One more pass, on these bottoms."""
    single.set_bottoms(bottoms)
    return single.run()[0]


def in_chunks(single, sizes, *bottoms):
    """The outputs of passes over so many steps each, one behind the other."""
    edges = itertools.pairwise(np.cumsum([0, *sizes]))
    parts = [[bottom[a:b] for bottom in bottoms] for a, b in edges]
    return np.concatenate([go_on(single, *part) for part in parts])


def whole_and_carried(options, *bottoms):
    """The output of the whole sequence, and a layer that carries, with the same parameters."""
    whole = attention(options, *bottoms)
    carried = attention(options + " carry_state: true", *(b[:1] for b in bottoms), parameters=whole.parameters())
    return whole.forward()[0], carried


@pytest.mark.parametrize("sizes", CHUNKS.values(), ids=CHUNKS)
@pytest.mark.parametrize("options", OPTIONS)
def test_passes_equal_the_whole_sequence(options, sizes):
    expected, carried = whole_and_carried(options, x)
    for _ in range(2):
        assert_close(in_chunks(carried, sizes, x), expected, 1e-12)
        carried.layer.reset_states()


@pytest.mark.parametrize("sizes", CHUNKS.values(), ids=CHUNKS)
@pytest.mark.parametrize("options", OPTIONS)
def test_sequences_that_start_in_the_middle(options, sizes):
    expected, carried = whole_and_carried(options + " cont_bottom: true", x, cont)
    assert_close(in_chunks(carried, sizes, x, cont), expected, 1e-12)


def test_padded_keys_stay_hidden():
    mask = (rng.random((T, N)) < 0.6).astype(float)
    expected, carried = whole_and_carried("padding: MASK", x, mask)
    assert_close(in_chunks(carried, [3, 1, 8], x, mask), expected, 1e-12)

    prompt = np.array([2.0, 5.0, 0.0])
    hidden = np.ones((T, N))
    hidden[:5] = np.arange(5)[:, None] < prompt
    expected = attention("padding: MASK", x, hidden, parameters=carried.parameters()).forward()[0]
    carried = attention("padding: LENGTHS carry_state: true", x[:1], np.ones(N), parameters=carried.parameters())
    got = [go_on(carried, x[:5], prompt), *(go_on(carried, x[t : t + 1], np.ones(N)) for t in range(5, T))]
    assert_close(np.concatenate(got), expected, 1e-12)


@pytest.mark.parametrize("options", ["", "window: 3 rotary: true", "cont_bottom: true"])
def test_streams_are_reordered(options):
    bottoms = [x, cont] if "cont" in options else [x]
    _, carried = whole_and_carried(options, *bottoms)
    in_chunks(carried, [3, 2], *(bottom[:5] for bottom in bottoms))
    carried.layer.select_streams(np.array([2, 0, 0, 1]))
    order = [2, 0, 0, 1]
    behind = [np.concatenate([b[5:], b[5:, :1]], axis=1) for b in bottoms]
    got = in_chunks(carried, [1, 6], *behind)
    joined = [np.concatenate([b[:5, order], more]) for b, more in zip(bottoms, behind, strict=True)]
    expected = attention(options, *joined, parameters=carried.parameters()).forward()[0]
    assert_close(got, expected[5:], 1e-12)


@pytest.mark.parametrize("options", ["rotary: true", "cont_bottom: true window: 4", "padding: MASK"])
def test_state_goes_on_in_another_layer(options):
    bottoms = [x] if options == "rotary: true" else [x, cont]
    expected, carried = whole_and_carried(options, *bottoms)
    in_chunks(carried, [4, 3], *(bottom[:7] for bottom in bottoms))
    fresh = attention(options + " carry_state: true", *(b[:1] for b in bottoms), parameters=carried.parameters())
    fresh.layer.set_state(carried.layer.get_state())
    assert_close(in_chunks(fresh, [1, 4], *(bottom[7:] for bottom in bottoms)), expected[7:], 1e-12)
    fresh.layer.reset_states()
    assert fresh.layer.get_state() == {}


@pytest.mark.parametrize("options", ["window: 4 rotary: true", "cont_bottom: true rotary: true"])
def test_what_nobody_will_see_is_forgotten(options):
    long = rng.normal(size=(200, N, 6))
    starts = np.ones((200, N))
    starts[::10] = 0
    bottoms = [long, starts] if "cont" in options else [long]
    expected, carried = whole_and_carried(options, *bottoms)
    assert_close(in_chunks(carried, [1] * 200, *bottoms), expected, 1e-12)
    state = carried.layer.get_state()
    assert len(state["rows"]) <= 22
    assert state["first"] + len(state["rows"]) == 200


def test_the_memory_is_projected_once():
    options = "cross: true padding: LENGTHS"
    whole = attention(options, x, memory, lengths)
    expected, parameters = whole.forward()[0], whole.parameters()
    carried = attention(options + " carry_state: true", x[:1], memory, lengths, parameters=parameters)
    first = go_on(carried, x[:2], memory, lengths)
    carried.layer.projections.kv.forward = None  # a call would raise TypeError
    other = go_on(carried, x[2:], np.full((7, N, 5), np.nan), np.full(N, 7.0))
    assert_close(np.concatenate([first, other]), expected, 1e-12)
    state = carried.layer.get_state()

    carried.layer.select_streams(np.array([1, 1]))
    got = go_on(carried, x[:3, :2], memory[:, :2], lengths[:2])
    selected = attention(options, x[:3, :2], memory[:, [1, 1]], lengths[[1, 1]], parameters=parameters)
    assert_close(got, selected.forward()[0], 1e-12)

    fresh = attention(options + " carry_state: true", x[:1], memory, lengths, parameters=parameters)
    fresh.layer.set_state(state)
    assert_close(go_on(fresh, x[:4], np.full((1, N, 5), np.nan), np.ones(N)), expected[:4], 1e-12)
    fresh.layer.reset_states()
    assert_close(go_on(fresh, x[:4], memory, lengths), expected[:4], 1e-12)


def test_positions_before_a_memory_are_counted_on():
    whole = attention("cross: true causal: true", x, memory)
    options = "cross: true causal: true carry_state: true"
    carried = attention(options, x[:1], memory, parameters=whole.parameters())
    got = [go_on(carried, x[:2], memory), go_on(carried, x[2:3], memory), go_on(carried, x[3:], memory)]
    assert_close(np.concatenate(got), whole.forward()[0], 1e-12)


def test_other_streams_without_selecting_them():
    _, carried = whole_and_carried("", x)
    go_on(carried, x[:2])
    with pytest.raises(recaffe.RecaffeError, match=r"has 2 stream\(s\), but 3 are carried; call select_streams"):
        go_on(carried, x[2:4, :2])
    crossing = attention("cross: true carry_state: true", x[:1], memory)
    go_on(crossing, x[:2], memory)
    with pytest.raises(recaffe.RecaffeError, match=r"has 2 stream\(s\), but the memory of 3 is carried"):
        go_on(crossing, x[2:4, :2], memory[:, :2])


def test_there_are_no_gradients():
    _, carried = whole_and_carried("", x)
    go_on(carried, x[:2])
    with pytest.raises(recaffe.RecaffeError, match="no gradients with carry_state"):
        carried.backward([True])
