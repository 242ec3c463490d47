"""Attention and MultiHeadAttention: values and gradients, what each query sees, long sequences, bad input."""

import itertools

import numpy as np
import pytest
import recaffe
from recaffe.framework import backend as backends
from recaffe.framework.layer_case import PlainCpuBackend
from recaffe.framework.single_layer import SingleLayer
from recaffe.framework.strict_array import arrays_made
from recaffe.framework.strict_backend import StrictBackend
from recaffe.layers.attention import attend
from recaffe.layers.attention.rotary import rotate
from recaffe.layers.attention.torch_attention import in_our_order, load_torch_attention

from tests.layers.attention_cases import cont, memory_lengths, memory_mask, x_lengths, x_mask
from tests.reference import attention as reference
from tests.support import GOLDEN, assert_close

rng = np.random.default_rng(5)
BACKENDS = {"plain": PlainCpuBackend, "fused": backends.CpuBackend}


@pytest.fixture(params=BACKENDS)
def backend(request):
    return BACKENDS[request.param]()


def layer(type, options, *bottoms, weights=False, **more):
    """A layer with its blobs; ``weights``: with the second top."""
    tops = "top: 'y' top: 'weights'" if weights else ""
    text = f"type: '{type}' {tops} attention_param {{ {options} }}"
    return SingleLayer(text, [np.asarray(bottom, float) for bottom in bottoms], **more)


def multi_head(options, *bottoms, **more):
    """A MultiHeadAttention of width 4 with 2 heads."""
    return layer("MultiHeadAttention", f"num_output: 4 num_heads: 2 {options}", *bottoms, **more)


def both_ways(single, top_diffs, gradients):
    """Values, then gradients of bottoms (so many) and of parameters."""
    tops = single.forward()
    for blob in single.layer.blobs:
        blob.clear_diff()
    single.set_top_diffs(top_diffs)
    single.backward([index < gradients for index in range(len(single.bottom))])
    return tops, single.bottom_diffs()[:gradients], single.parameter_diffs()


# PyTorch's values

GOLDEN_CASES = {
    "mha_self": "",
    "mha_self_causal": "causal: true",
    "mha_self_padding": "padding: LENGTHS",
    "mha_cross_padding": "cross: true padding: LENGTHS",
}
LENGTHS = {"mha_self_padding": [6, 4, 2], "mha_cross_padding": [5, 7, 3]}


def stored(name):
    """The arrays of a golden case by kind and name."""
    kinds = {}
    with np.load(GOLDEN / "torch" / f"{name}.npz") as arrays:
        for key in arrays.files:
            kind, _, item = key.partition(":")
            kinds.setdefault(kind, {})[item] = arrays[key]
    return kinds


def golden_layer(name, options, **more):
    bottoms = [*stored(name)["in"].values(), *([LENGTHS[name]] if name in LENGTHS else [])]
    return layer("MultiHeadAttention", f"num_output: 8 num_heads: 2 {options}", *bottoms, **more)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", GOLDEN_CASES)
def test_values_and_gradients_are_pytorchs(name, weights, backend):
    case = stored(name)
    single = golden_layer(name, GOLDEN_CASES[name], weights=weights, backend=backend)
    load_torch_attention(single.layer, case["param"])
    top_diffs = [case["top_diff"]["y"], *([np.zeros(single.top[1].shape)] if weights else [])]
    tops, diffs, parameter_diffs = both_ways(single, top_diffs, len(case["in"]))
    assert_close(tops[0], case["out"]["y"], 1e-10)
    for got, expected in zip(diffs, case["in_diff"].values(), strict=True):
        assert_close(got, expected, 1e-10)
    expected_diffs = in_our_order(single.layer, case["param_diff"])
    for got, expected in zip(parameter_diffs, expected_diffs.values(), strict=True):
        assert_close(got, expected, 1e-10)


def narrow_values(weights):
    weights["v_proj_weight"] = np.zeros((8, 4))


@pytest.mark.parametrize(
    ("name", "options", "change", "message"),
    [
        ("mha_self", "", lambda weights: weights.pop("out_proj.bias"), "have no 'out_proj.bias'"),
        ("mha_self", "bias_term: false", None, "have 'in_proj_bias', for which this layer has no place"),
        ("mha_self", "", lambda weights: weights.update(in_proj_weight=np.zeros((24, 7))), r"has shape \(24, 8\)"),
        ("mha_cross_padding", "cross: true padding: LENGTHS", narrow_values, "vdim"),
    ],
)
def test_pytorch_weights_that_do_not_fit(name, options, change, message):
    weights = stored(name)["param"]
    if change is not None:
        change(weights)
    with pytest.raises(recaffe.RecaffeError, match=message):
        load_torch_attention(golden_layer(name, options).layer, weights)


# against the reference

x, memory, s = rng.normal(size=(5, 2, 6)), rng.normal(size=(4, 2, 3)), rng.normal(size=(5, 2, 6))
SELF_MASKS = {
    "": ({}, []),
    "causal: true": ({"causal": True}, []),
    "window: 2": ({"window": 2}, []),
    "cont_bottom: true": ({"cont": cont}, [cont]),
    "cont_bottom: true causal: true window: 3": ({"cont": cont, "causal": True, "window": 3}, [cont]),
    "padding: LENGTHS": ({"lengths": x_lengths}, [x_lengths]),
    "padding: MASK causal: true": ({"mask": x_mask, "causal": True}, [x_mask]),
    "padding: MASK cont_bottom: true": ({"mask": x_mask, "cont": cont}, [cont, x_mask]),
}
MEMORY_MASKS = {
    "": ({}, []),
    "padding: LENGTHS": ({"lengths": memory_lengths}, [memory_lengths]),
    "padding: MASK causal: true": ({"mask": memory_mask, "causal": True}, [memory_mask]),
    "window: 3 padding: LENGTHS": ({"lengths": memory_lengths, "window": 3}, [memory_lengths]),
}


@pytest.mark.parametrize("more", ["", "rotary: true", "dropout_ratio: 0.25"])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("options", SELF_MASKS)
def test_self_attention_equals_the_reference(options, weights, more, backend):
    seen, marks = SELF_MASKS[options]
    compare_with_reference(f"{options} {more}", x, None, seen, marks, weights, backend)


@pytest.mark.parametrize("more", ["", "dropout_ratio: 0.25"])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("options", MEMORY_MASKS)
def test_cross_attention_equals_the_reference(options, weights, more, backend):
    seen, marks = MEMORY_MASKS[options]
    compare_with_reference(f"cross: true {options} {more}", x, memory, seen, marks, weights, backend)


def compare_with_reference(options, x, memory, seen, marks, weights, backend):
    inputs = [x] if memory is None else [x, memory]
    single = multi_head(options, *inputs, *marks, weights=weights, backend=backend)
    (T, N), S = x.shape[:2], len(inputs[-1])
    top_diffs = [rng.normal(size=(T, N, 4)), *([rng.normal(size=(T, N, 2, S))] if weights else [])]
    tops, diffs, parameter_diffs = both_ways(single, top_diffs, len(inputs))
    factors, dropout = None, single.layer.attention.dropout
    if dropout is not None:
        factors = dropout.factors(backend, slice(0, T), np.empty((N, 2, T, S))).transpose(2, 0, 1, 3)
        assert set(np.unique(factors)) == {0, 1 / 0.75}
    expected = reference.multi_head(
        x, memory, single.parameters(), 2, reference.seen_keys(T, S, N, **seen), *top_diffs,
        rotary="rotary" in options, factors=factors,
    )  # fmt: skip
    assert_close(tops[0], expected["y"], 1e-12)
    if weights:
        assert_close(tops[1], expected["weights"], 1e-12)
    for got, wanted in zip(diffs + parameter_diffs, expected["diffs"] + expected["parameter_diffs"], strict=True):
        assert_close(got, wanted, 1e-11)


def additive(v):
    """v^T tanh(q + k) and its gradients for q, k and v."""

    def score(q, k, scale):
        curve = np.tanh(q + k)
        return v @ curve, v * (1 - curve**2), v * (1 - curve**2), curve

    return score


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("masks", MEMORY_MASKS)
@pytest.mark.parametrize("score", ["", "scaled: true value_output: 2", "score: ADDITIVE"])
@pytest.mark.parametrize("queries", [s, s[0]], ids=["T x N", "N"])
def test_attention_equals_the_reference(queries, score, masks, weights, backend):
    single_query = queries.ndim == 2
    seen, marks = MEMORY_MASKS[masks]
    if single_query:
        masks = masks.replace("causal: true", "").replace("window: 3", "")
        seen = {name: value for name, value in seen.items() if name in ("lengths", "mask")}
    options = f"num_output: 5 {score} {masks}"
    single = layer("Attention", options, queries, memory, *marks, weights=weights, backend=backend)
    e = 2 if "value_output" in score else 3
    shape = queries.shape[:-1]
    top_diffs = [rng.normal(size=(*shape, e)), *([rng.normal(size=(*shape, 4))] if weights else [])]
    tops, diffs, parameter_diffs = both_ways(single, top_diffs, 2)

    values = dict(zip((blob.name.rpartition(".")[2] for blob in single.layer.blobs), single.parameters(), strict=True))
    all_queries = queries[None] if single_query else queries
    W_Q, W_K, W_V = values["W_Q"], values["W_K"], values.get("W_V", np.eye(3))
    slopes = [diff[None] if single_query else diff for diff in top_diffs]
    context, alpha, dq, dk, dv, *d_score = reference.attend(
        all_queries @ W_Q.T, memory @ W_K.T, memory @ W_V.T, reference.seen_keys(len(all_queries), 4, 2, **seen),
        5**-0.5 if "scaled" in score else 1.0, *slopes,
        score=additive(values["v"]) if "ADDITIVE" in score else reference.dot_score,
    )  # fmt: skip
    gradients = {"W_Q": np.einsum("tnk,tnd->kd", dq, all_queries), "W_K": np.einsum("snk,snd->kd", dk, memory)}
    gradients["W_V"] = np.einsum("snk,snd->kd", dv, memory)
    if d_score:
        gradients["v"] = d_score[0]
    assert_close(tops[0], context.reshape(tops[0].shape), 1e-12)
    if weights:
        assert_close(tops[1], alpha.reshape(tops[1].shape), 1e-12)
    assert_close(diffs[0], (dq @ W_Q).reshape(queries.shape), 1e-11)
    assert_close(diffs[1], dk @ W_K + dv @ W_V, 1e-11)
    for name, got in zip(values, parameter_diffs, strict=True):
        assert_close(got, gradients[name], 1e-11)


# what a query sees


def test_a_query_that_sees_nothing_gives_zeros_and_finite_gradients(backend):
    nothing = np.zeros((5, 2))
    for weights in (False, True):
        single = multi_head("padding: MASK", x, nothing, weights=weights, backend=backend)
        top_diffs = [np.ones((5, 2, 4)), *([np.ones((5, 2, 2, 5))] if weights else [])]
        tops, diffs, parameter_diffs = both_ways(single, top_diffs, 1)
        assert_close(tops[0], np.broadcast_to(single.parameters()[3], (5, 2, 4)), 0)
        assert not weights or not tops[1].any()
        assert not diffs[0].any()
        assert not any(diff.any() for diff in parameter_diffs[:3])
        assert_close(parameter_diffs[3], np.full(4, 10.0), 0)


@pytest.mark.parametrize("weights", [False, True])
def test_hidden_keys_change_nothing(weights, backend):
    changed = x.copy()
    changed[3:, 0] += 1
    masked = {"padding: LENGTHS": [3.0, 5.0], "padding: MASK": [[1, 1], [1, 1], [1, 1], [0, 1], [0, 1]]}
    results = [
        multi_head(options, values, marks, weights=weights, backend=backend).forward()[0][:3]
        for options, marks in masked.items()
        for values in (x, changed)
    ]
    for result in results[1:]:
        assert_close(result, results[0], 1e-13)


def test_nan_shows_in_the_gradients_of_all_who_saw_it(backend):
    wrong = x.copy()
    wrong[2, 1, 0] = np.nan
    single = multi_head("causal: true", wrong, backend=backend)
    with np.errstate(invalid="ignore"):
        tops, (dx,), _ = both_ways(single, [np.ones((5, 2, 4))], 1)
    assert np.isnan(tops[0][2:, 1]).all()
    assert np.isnan(dx[:, 1]).all()
    assert np.isfinite(tops[0][:, 0]).all() and np.isfinite(dx[:, 0]).all()


# dropout


def test_dropout_keeps_the_mean_and_is_left_out_in_tests(backend):
    long = rng.normal(size=(300, 2, 6))
    plain = multi_head("", long, backend=backend)
    parameters = plain.parameters()
    dropped = multi_head("dropout_ratio: 0.3", long, parameters=parameters, backend=backend)
    tested = multi_head("dropout_ratio: 0.3", long, phase=recaffe.TEST, parameters=parameters, backend=backend)
    assert_close(tested.forward()[0], plain.forward()[0], 0)
    difference = dropped.forward()[0] - plain.forward()[0]
    assert np.abs(difference).max() > 0.01
    assert np.abs(difference.mean(axis=(0, 1))).max() < 0.02


@pytest.mark.parametrize("options", ["", "causal: true"])
def test_dropout_is_the_same_with_the_weights_kept(options, backend):
    options += " dropout_ratio: 0.5"
    dy, d_weights = rng.normal(size=(5, 2, 4)), np.zeros((5, 2, 2, 5))
    tops, diffs, parameter_diffs = both_ways(multi_head(options, x, backend=backend), [dy], 1)
    kept = both_ways(multi_head(options, x, weights=True, backend=backend), [dy, d_weights], 1)
    assert_close(tops[0], kept[0][0], 1e-13)
    for got, expected in zip(diffs + parameter_diffs, kept[1] + kept[2], strict=True):
        assert_close(got, expected, 1e-12)


# rotary positions


def test_rotate_turns_pairs():
    values = rng.normal(size=(3, 2, 2, 6))
    turned = values.copy()
    rotate(PlainCpuBackend(), turned, np.array([0, 3, 7]))
    for t, position in enumerate((0, 3, 7)):
        assert_close(turned[t], values[t] @ reference.rotation(position, 6).T, 1e-14)
    rotate(PlainCpuBackend(), turned, np.array([0, 3, 7]), inverse=True)
    assert_close(turned, values, 1e-14)


def test_rotated_products_depend_on_the_distance_alone():
    q, k = rng.normal(size=(2, 1, 1, 8)), rng.normal(size=(2, 1, 1, 8))
    q[1], k[1] = q[0], k[0]
    rotate(PlainCpuBackend(), q, np.array([2, 102]))
    rotate(PlainCpuBackend(), k, np.array([5, 105]))
    products = (q * k).sum(axis=3)
    assert_close(products[0], products[1], 1e-12)


# long sequences


@pytest.mark.parametrize("options", ["", "causal: true", "window: 3", "dropout_ratio: 0.3", "padding: LENGTHS"])
def test_blocks_of_queries_change_nothing(options, monkeypatch):
    bottoms = [rng.normal(size=(23, 2, 6)), *([[20.0, 7.0]] if "LENGTHS" in options else [])]
    dy = rng.normal(size=(23, 2, 4))
    whole = both_ways(multi_head(options, *bottoms, backend=PlainCpuBackend()), [dy], 1)
    monkeypatch.setattr(attend, "BLOCK", 2 * 2 * 23 * 5)  # five queries
    blocks = both_ways(multi_head(options, *bottoms, backend=PlainCpuBackend()), [dy], 1)
    for got, expected in zip(itertools.chain(*blocks), itertools.chain(*whole), strict=True):
        assert_close(got, expected, 1e-13)


def test_memory_grows_with_the_length_not_with_its_square(monkeypatch):
    monkeypatch.setattr(attend, "BLOCK", 1 << 12)
    with arrays_made() as made:
        single = multi_head("causal: true", rng.normal(size=(600, 1, 6)), backend=StrictBackend())
        both_ways(single, [np.ones((600, 1, 4))], 1)
    assert max(size for _, size in made) <= max(1 << 12, 600 * 12)


# bad input


@pytest.mark.parametrize(
    ("options", "bottoms", "message"),
    [
        ("num_heads: 2", (x,), "needs num_output, 1 or more"),
        ("num_output: 6 num_heads: 4", (x,), "num_heads is 4, expected a number that divides num_output = 6"),
        ("num_output: 6 num_heads: 0", (x,), "num_heads is 0"),
        ("num_output: 6 num_heads: 2 rotary: true", (x,), "rotary turns pairs: num_output / num_heads is 3"),
        ("num_output: 4 dropout_ratio: 1", (x,), "dropout_ratio is 1, expected 0 or more and less than 1"),
        ("num_output: 4 dropout_ratio: -0.1", (x,), "dropout_ratio is -0.1"),
        ("num_output: 4 carry_state: true", (x,), "carry_state is for phase TEST"),
        ("num_output: 4 scaled: true", (x,), "scaled is an option of Attention"),
        ("num_output: 4", (x, memory), r"got 2 bottom\(s\), expected 1: x"),
        ("num_output: 4 cross: true", (x,), r"got 1 bottom\(s\), expected 2: x, memory"),
        ("num_output: 4 cont_bottom: true padding: MASK", (x, cont), r"expected 3: x, cont, mask"),
        ("num_output: 4 cross: true cont_bottom: true", (x, memory, cont), "cont_bottom is for self-attention"),
        ("num_output: 4 cross: true rotary: true", (x, memory), "rotary is for self-attention"),
        ("num_output: 4 cross: true", (x, memory[:, :1]), r"\(memory\) has 1 stream\(s\), but the queries have 2"),
        ("num_output: 4 cross: true", (x, memory[:0]), r"\(0, 2, 3\), expected S x N x ... with S of 1 or more"),
        ("num_output: 4", (x[:0],), "with each size 1 or more"),
        ("num_output: 4 cont_bottom: true", (x, cont[:4]), r"\(cont\) has shape \(4, 2\), expected T x N = \(5, 2\)"),
        ("num_output: 4 padding: MASK", (x, x_mask[:4]), r"\(mask\) has shape \(4, 2\), expected S x N = \(5, 2\)"),
        ("num_output: 4 padding: LENGTHS", (x, [5.0]), r"\(lengths\) has shape \(1,\), expected N = \(2,\)"),
        ("num_output: 4 padding: LENGTHS", (x, [5.0, 6.0]), r"is 6 at \[1\], expected a whole number from 0 to S = 5"),
        ("num_output: 4 padding: LENGTHS", (x, [2.5, 1.0]), r"is 2.5 at \[0\], expected a whole number"),
        ("num_output: 4 padding: MASK", (x, x_mask - 2), r"expected 0 or 1"),
        ("num_output: 4 cont_bottom: true", (x, cont + 1), r"expected 0 or 1"),
    ],
)  # fmt: skip
def test_multi_head_attention_refuses(options, bottoms, message):
    with pytest.raises(recaffe.RecaffeError, match=message):
        layer("MultiHeadAttention", options, *bottoms).forward()


@pytest.mark.parametrize(
    ("options", "bottoms", "message"),
    [
        ("", (s, memory), "needs num_output, the size of q and k, 1 or more"),
        ("num_output: 0", (s, memory), "needs num_output"),
        ("num_output: 4 num_heads: 2", (s, memory), "num_heads is an option of MultiHeadAttention"),
        ("num_output: 4 carry_state: true", (s, memory), "carry_state is an option of MultiHeadAttention"),
        ("query_projection: false key_projection: false", (s, memory), "q and k differ in size: .* is 6, .* is 3"),
        ("num_output: 4 query_projection: false", (s, memory), "num_output is 4, the size of s"),
        ("num_output: 4 scaled: true score: ADDITIVE", (s, memory), "scaled is for the score DOT"),
        ("num_output: 4 causal: true", (s[0], memory), "causal and window need queries T x N x D_s"),
        ("num_output: 4", (s, memory[:, :1]), r"\(h\) has 1 stream\(s\), but the queries have 2"),
        ("num_output: 4", (s, memory[:0]), "with S of 1 or more"),
        ("num_output: 4 padding: LENGTHS", (s, memory), r"got 2 bottom\(s\), expected 3: s, h, lengths"),
        ("num_output: 4 padding: LENGTHS", (s, memory, [1.0, 5.0]), "expected a whole number from 0 to S = 4"),
        ("num_output: 4 padding: MASK", (s, memory, x_mask), r"\(mask\) has shape \(5, 2\), expected S x N = \(4, 2\)"),
    ],
)
def test_attention_refuses(options, bottoms, message):
    with pytest.raises(recaffe.RecaffeError, match=message):
        layer("Attention", options, *bottoms).forward()


def test_marks_have_no_gradient():
    single = multi_head("cont_bottom: true padding: LENGTHS", x, cont, x_lengths)
    single.forward()
    for index in (1, 2):
        with pytest.raises(recaffe.RecaffeError, match=f"set propagate_down: false for bottom {index}"):
            single.backward([True, index == 1, index == 2])
    single = layer("Attention", "num_output: 3 padding: MASK", s, memory, memory_mask)
    single.forward()
    with pytest.raises(recaffe.RecaffeError, match="set propagate_down: false for bottom 2"):
        single.backward([True, True, True])
