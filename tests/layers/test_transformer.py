"""The transformer: PyTorch's values, the same net written by hand, every option, step by step, and mistakes."""

import re
from pathlib import Path

import numpy as np
import pytest
import recaffe
from recaffe.framework.gradient_check import gradient_check
from recaffe.framework.layer_checks import check_layer
from recaffe.layers.attention.torch_weights import load_torch_transformer, matched

from tests.support import GOLDEN, assert_close, make_net

LENGTHS = np.array([6.0, 4.0, 2.0])
MEMORY_LENGTHS = np.array([5.0, 7.0, 3.0])
SIZES = "num_output: 8 num_heads: 2 num_hidden: 16"


def kind(stored, prefix):
    return {key.removeprefix(prefix): stored[key] for key in stored.files if key.startswith(prefix)}


def below(weights, prefix):
    """The weights whose names start with ``prefix``, without it."""
    return {key.removeprefix(prefix): values for key, values in weights.items() if key.startswith(prefix)}


def input_layer(name, shape):
    dims = " ".join(f"dim: {size}" for size in shape)
    return f"layer {{ name: '{name}' type: 'Input' top: '{name}' input_param {{ shape {{ {dims} }} }} }}\n"


def composed(layer_type, name, bottoms, top, options):
    bottom = " ".join(f"bottom: '{blob}'" for blob in bottoms)
    return f"layer {{ name: '{name}' type: '{layer_type}' {bottom} top: '{top}' transformer_param {{ {options} }} }}\n"


def net_of(text, inputs, phase=recaffe.TRAIN, seed=0, force_backward=True):
    """A float64 net with these inputs filled."""
    recaffe.set_random_seed(seed)
    start = "force_backward: true\n" if force_backward else ""
    net = make_net(
        start + "".join(input_layer(name, values.shape) for name, values in inputs.items()) + text, phase, np.float64
    )
    for name, values in inputs.items():
        net.blobs[name].data[...] = values
    return net


# PyTorch's values

ENCODER_OPTIONS = {
    "encoder_postnorm_relu": "",
    "encoder_postnorm_gelu": "activation: GELU",
    "encoder_prenorm_relu": "norm_first: true final_norm: false",
}


def compare(net, stored, names, outputs=("y",)):
    """Run ``net`` both ways and compare with what is ``stored``; ``names``: our layers by the prefix of PyTorch's."""
    for prefix, name in names.items():
        load_torch_transformer(net, name, below(kind(stored, "param:"), prefix))
    tops = net.forward()
    for name in outputs:
        assert_close(tops[name], stored[f"out:{name}"], 1e-10)
    net.clear_param_diffs()
    net.backward(**{name: stored[f"top_diff:{name}"] for name in outputs})
    for name, diff in kind(stored, "in_diff:").items():
        assert_close(net.blobs[name].diff, diff, 1e-10, f"diff of {name}")
    compared = 0
    for prefix, name in names.items():
        for blob, diff in matched(net, name, below(kind(stored, "param_diff:"), prefix)):
            assert_close(blob.diff, diff, 1e-10, f"diff of {blob.name}")
            compared += 1
    assert compared == len(net.learnable_params)


@pytest.mark.parametrize("name", ENCODER_OPTIONS)
def test_an_encoder_is_pytorchs(name):
    with np.load(GOLDEN / "torch" / f"transformer_{name}.npz") as stored:
        text = composed(
            "TransformerEncoder", "enc", ["x", "n"], "y", f"{SIZES} padding: LENGTHS {ENCODER_OPTIONS[name]}"
        )
        compare(net_of(text, {**kind(stored, "in:"), "n": LENGTHS}), stored, {"": "enc"})


def test_a_decoder_is_pytorchs():
    options = f"{SIZES} norm_first: true final_norm: false padding: LENGTHS memory_padding: LENGTHS"
    text = composed("TransformerDecoder", "dec", ["x", "memory", "n", "m"], "y", options)
    with np.load(GOLDEN / "torch" / "transformer_decoder_prenorm.npz") as stored:
        inputs = {**kind(stored, "in:"), "n": LENGTHS, "m": MEMORY_LENGTHS}
        compare(net_of(text, inputs), stored, {"": "dec"})


def test_encoder_and_decoder_are_pytorchs():
    options = f"{SIZES} num_layers: 2 final_norm: true"
    text = composed("TransformerEncoder", "enc", ["src", "m"], "memory", options + " padding: LENGTHS")
    text += composed("TransformerDecoder", "dec", ["tgt", "memory", "m"], "y", options + " memory_padding: LENGTHS")
    with np.load(GOLDEN / "torch" / "transformer_2x2.npz") as stored:
        net = net_of(text, {**kind(stored, "in:"), "m": MEMORY_LENGTHS})
        compare(net, stored, {"encoder.": "enc", "decoder.": "dec"})


def attention(name, bottoms, top, options=""):
    bottom = " ".join(f"bottom: '{blob}'" for blob in bottoms)
    return (
        f"layer {{ name: '{name}' type: 'MultiHeadAttention' {bottom} top: '{top}'"
        f" attention_param {{ num_output: 8 num_heads: 2 dropout_ratio: 0.2 {options} }} }}\n"
    )


def hand(name, layer_type, bottoms, top, options=""):
    bottom = " ".join(f"bottom: '{blob}'" for blob in bottoms)
    return f"layer {{ name: '{name}' type: '{layer_type}' {bottom} top: '{top}' {options} }}\n"


def product(name, bottom, top, num_output):
    options = f"num_output: {num_output} axis: -1 weight_filler {{ type: 'xavier' }}"
    return hand(name, "InnerProduct", [bottom], top, f"inner_product_param {{ {options} }}")


DROPOUT = "dropout_param { dropout_ratio: 0.2 }"

ENCODER_BY_HAND = (
    attention("a", ["x", "n"], "a", "padding: LENGTHS")
    + hand("drop_a", "Dropout", ["a"], "a_dropped", DROPOUT)
    + hand("plus_x", "Eltwise", ["a_dropped", "x"], "sum1")
    + hand("norm1", "LayerNorm", ["sum1"], "z")
    + product("hidden", "z", "h", 16)
    + hand("drop_h", "Dropout", ["h"], "h_dropped", DROPOUT)
    + hand("relu", "ReLU", ["h_dropped"], "h_positive")
    + product("out", "h_positive", "f", 8)
    + hand("drop_f", "Dropout", ["f"], "f_dropped", DROPOUT)
    + hand("plus_z", "Eltwise", ["f_dropped", "z"], "sum2")
    + hand("norm2", "LayerNorm", ["sum2"], "y")
)

DECODER_BY_HAND = (
    hand("norm1", "RMSNorm", ["x"], "x_normed")
    + attention("a", ["x_normed", "cont"], "a", "causal: true cont_bottom: true rotary: true window: 3")
    + hand("drop_a", "Dropout", ["a"], "a_dropped", DROPOUT)
    + hand("plus_x", "Eltwise", ["a_dropped", "x"], "z")
    + hand("norm2", "RMSNorm", ["z"], "z_normed")
    + attention("c", ["z_normed", "memory", "mask"], "c", "cross: true padding: MASK")
    + hand("drop_c", "Dropout", ["c"], "c_dropped", DROPOUT)
    + hand("plus_z", "Eltwise", ["c_dropped", "z"], "u")
    + hand("norm3", "RMSNorm", ["u"], "u_normed")
    + product("hidden", "u_normed", "h", 16)
    + hand("gelu", "GELU", ["h"], "h_activated")
    + hand("drop_h", "Dropout", ["h_activated"], "h_dropped", DROPOUT)
    + product("out", "h_dropped", "f", 8)
    + hand("drop_f", "Dropout", ["f"], "f_dropped", DROPOUT)
    + hand("plus_u", "Eltwise", ["f_dropped", "u"], "v")
    + hand("norm", "RMSNorm", ["v"], "y")
)

rng = np.random.default_rng(5)
CONT = np.ones((5, 3))
CONT[2, 0] = CONT[4, 1] = 0
MASK = (rng.random((4, 3)) < 0.7).astype(float)
ENCODER_INPUTS = {"x": rng.normal(size=(6, 3, 8)), "n": LENGTHS}
DECODER_INPUTS = {"x": rng.normal(size=(5, 3, 8)), "memory": rng.normal(size=(4, 3, 8)), "cont": CONT, "mask": MASK}


@pytest.mark.parametrize(
    ("layer_type", "options", "inputs", "by_hand"),
    [
        ("TransformerEncoder", "padding: LENGTHS", ENCODER_INPUTS, ENCODER_BY_HAND),
        (
            "TransformerDecoder",
            "norm_first: true norm: RMS_NORM activation: GELU cont_bottom: true rotary: true window: 3"
            " memory_padding: MASK",
            DECODER_INPUTS,
            DECODER_BY_HAND,
        ),
    ],
)
def test_written_by_hand_it_is_the_same(layer_type, options, inputs, by_hand):
    text = composed(layer_type, "t", list(inputs), "y", f"{SIZES} dropout_ratio: 0.2 {options}")
    nets = [net_of(text, inputs, seed=4), net_of(by_hand, inputs, seed=4)]
    dy = np.random.default_rng(6).normal(size=inputs["x"].shape)
    for net in nets:
        recaffe.set_random_seed(7)  # the same dropout
        net.clear_param_diffs()
        net.forward()
        net.backward(y=dy)
    composed_net, written = nets
    assert np.abs(written.blobs["y"].data).max() > 0.1
    np.testing.assert_array_equal(composed_net.blobs["y"].data, written.blobs["y"].data)
    for name in inputs:
        if name in ("x", "memory"):
            assert_close(composed_net.blobs[name].diff, written.blobs[name].diff, 1e-12, name)
    assert len(composed_net.learnable_params) == len(written.learnable_params)
    for mine, its in zip(composed_net.learnable_params, written.learnable_params, strict=True):
        np.testing.assert_array_equal(mine.data, its.data)
        assert np.abs(its.diff).max() > 0
        assert_close(mine.diff, its.diff, 1e-12, mine.name)


@pytest.mark.parametrize("bias", [True, False])
def test_an_encoder_that_pytorch_makes_now(bias):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    options = {"dropout": 0.0, "activation": "gelu", "norm_first": True, "bias": bias, "dtype": torch.float64}
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, **options)
    stack = torch.nn.TransformerEncoder(
        layer, 2, torch.nn.LayerNorm(8, dtype=torch.float64), enable_nested_tensor=False
    )
    expected = stack(torch.from_numpy(ENCODER_INPUTS["x"])).detach().numpy()
    net = encoder(f"num_layers: 2 norm_first: true activation: GELU bias_term: {str(bias).lower()}")
    load_torch_transformer(net, "t", {key: values.numpy() for key, values in stack.state_dict().items()})
    assert_close(net.forward()["y"], expected, 1e-10)


def test_weights_without_biases():
    with np.load(GOLDEN / "torch" / "transformer_encoder_postnorm_relu.npz") as stored:
        weights = kind(stored, "param:")
        inputs = {**kind(stored, "in:"), "n": LENGTHS}
    with_zeros = {key: 0 * values if "bias" in key else values for key, values in weights.items()}
    without = {key: values for key, values in weights.items() if "bias" not in key}
    tops = []
    for options, given in (("", with_zeros), ("bias_term: false", without)):
        text = composed("TransformerEncoder", "t", ["x", "n"], "y", f"{SIZES} padding: LENGTHS {options}")
        net = net_of(text, inputs)
        load_torch_transformer(net, "t", given)
        tops.append(net.forward()["y"].copy())
    assert_close(*tops, 1e-12)


# Pieces


def encoder(options, phase=recaffe.TRAIN, layer=""):
    text = composed("TransformerEncoder", "t", ["x"], "y", f"{SIZES} {options}")
    return net_of(text.replace("transformer_param", f"{layer} transformer_param"), {"x": ENCODER_INPUTS["x"]}, phase)


def multipliers(net):
    return {
        blob.name.removeprefix("t/"): (lr, decay)
        for blob, lr, decay in zip(net.learnable_params, net.params_lr, net.params_weight_decay, strict=True)
    }


def test_the_pieces_have_names():
    net = encoder("num_layers: 2 norm_first: true dropout_ratio: 0.1")
    first = ["norm1", "self_attention", "dropout1", "sum1", "norm2"]
    first += ["feed_forward/hidden", "feed_forward/dropout", "feed_forward/activation", "feed_forward/output"]
    first += ["dropout2", "sum2"]
    names = [layer.name for layer in net.layers if layer.type not in ("Split", "Input")]
    assert names == [f"t/{i}/{name}" for i in range(2) for name in first] + ["t/norm"]
    assert net.outputs == ["y"]


def test_biases_and_norms_without_weight_decay():
    for blob, (lr, decay) in multipliers(encoder("decay_biases: false final_norm: true")).items():
        assert (lr, decay) == (1, blob.split(".")[1].startswith("W_") or blob.endswith(".W")), blob
    assert set(multipliers(encoder("")).values()) == {(1, 1)}


def test_one_piece_can_be_frozen_and_the_rest_learn_slower():
    net = encoder("piece { name: '0/self_attention' param { lr_mult: 0 } }", layer="param { lr_mult: 0.5 }")
    for blob, (lr, _) in multipliers(net).items():
        assert lr == (0 if blob.startswith("0/self_attention") else 0.5), blob


def test_two_layers_can_share_an_attention():
    names = " ".join(f"param {{ name: 'attention {i}' }}" for i in range(4))
    pieces = " ".join(f"piece {{ name: '{i}/self_attention' {names} }}" for i in range(2))
    net = encoder(f"num_layers: 2 {pieces}")
    first, second = (net.params[f"t/{i}/self_attention"] for i in range(2))
    assert len(net.learnable_params) == 2 * 12 - 4
    for mine, other in zip(first, second, strict=True):
        assert np.shares_memory(mine.data, other.data)
        assert np.shares_memory(mine.diff, other.diff)


def test_a_second_top_of_a_piece_gives_its_weights():
    net = encoder("causal: true piece { name: '0/self_attention' top: 'weights' }")
    y = net.forward()["y"]
    weights = net.blobs["weights"].data
    assert weights.shape == (6, 3, 2, 6)
    assert_close(weights.sum(axis=-1), np.ones((6, 3, 2)), 1e-12)
    assert (weights[2, ..., 3:] == 0).all()
    assert_close(encoder("causal: true").forward()["y"], y, 1e-12)


@pytest.mark.parametrize("name", ["net.caffemodel", "net.caffemodel.h5"])
def test_weights_are_saved_by_piece(name, tmp_path):
    net, other = (encoder("num_layers: 2 norm_first: true") for _ in range(2))
    values = np.random.default_rng(9)
    for blob in net.learnable_params:
        blob.data[...] = values.normal(size=blob.shape).astype(np.float32)
    net.save(tmp_path / name)
    report = other.copy_from(tmp_path / name)
    assert report.missing == [] and sorted(report.filled) == sorted(net.params)
    for mine, its in zip(net.learnable_params, other.learnable_params, strict=True):
        np.testing.assert_array_equal(mine.data, its.data)


def test_a_filler_of_one_piece():
    filler = (
        "piece { name: '0/feed_forward/hidden' inner_product_param { weight_filler { type: 'constant' value: 3 } } }"
    )
    net = encoder(f"weight_filler {{ type: 'constant' value: 2 }} {filler}")
    assert (net.params["t/0/feed_forward/hidden"][0].data == 3).all()
    assert (net.params["t/0/feed_forward/output"][0].data == 2).all()
    assert (net.params["t/0/self_attention"][0].data == 2).all()


def test_embedding_and_output_can_be_one_matrix():
    text = """
      layer { name: 'embed' type: 'Embed' bottom: 'words' top: 'embedded' param { name: 'words' }
        embed_param { num_output: 8 input_dim: 11 bias_term: false weight_filler { type: 'gaussian' std: 0.5 } } }
      layer { name: 'position' type: 'PositionalEncoding' bottom: 'embedded' top: 'x'
        positional_encoding_param { input_scale: 2.828427 } }
      layer { name: 't' type: 'TransformerEncoder' bottom: 'x' top: 'y'
        transformer_param { num_output: 8 num_heads: 2 causal: true activation: SILU } }
      layer { name: 'scores' type: 'InnerProduct' bottom: 'y' top: 'scores' param { name: 'words' }
        inner_product_param { num_output: 11 axis: -1 bias_term: false } }
      layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'scores' bottom: 'next' top: 'loss'
        softmax_param { axis: 2 } }"""
    words = np.random.default_rng(8).integers(11, size=(7, 2)).astype(float)
    net = net_of(text, {"words": words[:6], "next": words[1:]}, force_backward=False)
    matrices = [net.params[name][0] for name in ("embed", "scores")]
    assert np.shares_memory(*(blob.data for blob in matrices))
    assert sum(blob.shape == (11, 8) for blob in net.learnable_params) == 1
    gradient_check(net)  # of the one matrix, too, in both its places


# Step by step


def copy_parameters(source, target):
    for mine, its in zip(target.learnable_params, source.learnable_params, strict=True):
        mine.data[...] = its.data


POSITIONS = """
  layer { name: 'positions' type: 'PositionalEncoding' bottom: 'x' bottom: 'cont' top: 'placed'
    positional_encoding_param { %s } }
"""


@pytest.mark.parametrize("options", ["", "rotary: true norm_first: true", "window: 2 activation: GELU_TANH"])
@pytest.mark.parametrize("encoding", ["", "encoding: LEARNED max_length: 9 weight_filler { type: 'gaussian' std: 1 }"])
def test_step_by_step_an_encoder_gives_what_one_pass_does(options, encoding):
    options = f"{SIZES} num_layers: 2 causal: true cont_bottom: true {options}"
    inputs = {"x": DECODER_INPUTS["x"], "cont": CONT}
    carry = "carry_state: true"

    def net(carried):
        text = POSITIONS % f"{encoding} {carried}"
        text += composed("TransformerEncoder", "t", ["placed", "cont"], "y", f"{options} {carried}")
        return net_of(text, inputs, recaffe.TEST)

    whole, stepwise = net(""), net(carry)
    copy_parameters(whole, stepwise)
    check_step_by_step(whole, stepwise, inputs, {})


def test_step_by_step_a_decoder_gives_what_one_pass_does():
    options = f"{SIZES} num_layers: 2 cont_bottom: true memory_padding: MASK"

    def net(carried):
        text = composed("TransformerDecoder", "t", ["x", "memory", "cont", "mask"], "y", f"{options} {carried}")
        return net_of(text, DECODER_INPUTS, recaffe.TEST)

    whole, stepwise = net(""), net("carry_state: true")
    copy_parameters(whole, stepwise)
    timed = {name: DECODER_INPUTS[name] for name in ("x", "cont")}
    fixed = {name: DECODER_INPUTS[name] for name in ("memory", "mask")}
    check_step_by_step(whole, stepwise, timed, fixed)


def check_step_by_step(whole, stepwise, timed, fixed):
    """Passes of 1, 2, 1 ... steps give what one pass does, twice; saved states and selected streams go on."""
    expected = whole.forward()["y"]
    for _ in range(2):
        stepwise.reset_states()
        got = np.concatenate([part["y"].copy() for part in passes(stepwise, timed, fixed, [1, 2, 1, 1])])
        assert_close(got, expected, 1e-10)
    stepwise.reset_states()
    list(passes(stepwise, timed, fixed, [1, 2]))
    states = stepwise.get_state()
    rest = {name: values[3:] for name, values in timed.items()}
    for _ in range(2):
        got = np.concatenate([part["y"].copy() for part in passes(stepwise, rest, fixed, [1, 1])])
        assert_close(got, expected[3:], 1e-10)
        stepwise.reset_states()
        stepwise.set_state(states)
    order = [2, 0, 0]
    stepwise.select_streams(order)
    last = {name: values[3:, order] for name, values in timed.items()}
    got = np.concatenate([part["y"].copy() for part in passes(stepwise, last, fixed, [1, 1])])
    assert_close(got, expected[3:, order], 1e-10)


def passes(net, timed, fixed, lengths):
    start = 0
    for length in lengths:
        part = {name: values[start : start + length] for name, values in timed.items()}
        for name, values in part.items():
            net.blobs[name].reshape(*values.shape)
        yield net.forward(**part, **fixed)
        start += length


# Mistakes


@pytest.mark.parametrize(
    ("layer_type", "bottoms", "options", "message"),
    [
        ("TransformerEncoder", "x", "num_heads: 2", "needs num_output, 1 or more"),
        (
            "TransformerEncoder",
            "x",
            "num_output: 8 num_heads: 3",
            "num_heads is 3, expected a number that divides num_output = 8",
        ),
        ("TransformerEncoder", "x", "num_output: 8 num_layers: 0", "needs num_layers, 1 or more"),
        ("TransformerEncoder", "x", "num_output: 12", r"bottom 'x.*' has shape \(6, 3, 8\), expected .*\(6, 3, 12\)"),
        ("TransformerEncoder", "x n", "num_output: 8", r"got 2 bottom\(s\), expected 1: x"),
        (
            "TransformerEncoder",
            "x",
            "num_output: 8 padding: LENGTHS",
            r"got 1 bottom\(s\), expected 2: x, lengths of x",
        ),
        (
            "TransformerEncoder",
            "x",
            "num_output: 8 memory_padding: MASK",
            "memory_padding is an option of TransformerDecoder",
        ),
        ("TransformerDecoder", "x x n", "num_output: 8", r"got 3 bottom\(s\), expected 2: x, memory"),
        (
            "TransformerDecoder",
            "x x",
            "num_output: 8 cont_bottom: true memory_padding: MASK",
            "expected 4: x, memory, cont, mask of memory",
        ),
        ("TransformerEncoder", "x", "num_output: 8 carry_state: true", "carry_state is for phase TEST"),
        ("TransformerEncoder", "x", "num_output: 8 dropout_ratio: 1.5", "dropout_ratio is 1.5"),
        (
            "TransformerEncoder",
            "x",
            "num_output: 8 piece { name: '0/self_atention' }",
            "did you mean '0/self_attention'",
        ),
        (
            "TransformerEncoder",
            "x",
            "num_output: 8 piece { name: '1/norm1' }",
            "no piece is named '1/norm1'; did you mean '0/norm1'",
        ),
    ],
)
def test_a_mistake_names_the_layer(layer_type, bottoms, options, message, tmp_path):
    text = composed(layer_type, "t", bottoms.split(), "y", options)
    file = tmp_path / "net.prototxt"
    file.write_text(input_layer("x", (6, 3, 8)) + input_layer("n", (3,)) + text)
    with pytest.raises(recaffe.RecaffeError, match=message) as raised:
        recaffe.Net(file, recaffe.TRAIN)
    assert str(raised.value).startswith(f"{file}:3: layer 't' (type '{layer_type}'): ")


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ("", lambda weights: weights.pop("linear1.bias"), "nothing for t/0/feed_forward/hidden.b"),
        ("num_layers: 2", lambda weights: None, r"nothing for t/1/self_attention.W_qkv \(num_layers"),
        ("", lambda weights: weights.update({"norm.weight": np.ones(8)}), "no place for PyTorch's 'norm.weight'"),
        ("bias_term: false", lambda weights: None, "no place for PyTorch's 'self_attn.in_proj_bias'"),
        (
            "",
            lambda weights: weights.update({"linear1.weight": np.ones((9, 8))}),
            r"\(16, 8\), but PyTorch's has \(9, 8\)",
        ),
        (
            "",
            lambda weights: weights.update({"lienar1.weight": np.ones((9, 8))}),
            "no place for PyTorch's 'lienar1.weight'",
        ),
    ],
)
def test_torch_weights_that_do_not_fit(options, change, message):
    with np.load(GOLDEN / "torch" / "transformer_encoder_postnorm_relu.npz") as stored:
        weights = kind(stored, "param:")
    change(weights)
    with pytest.raises(recaffe.RecaffeError, match=message):
        load_torch_transformer(encoder(options), "t", weights)


# docs/transformers.md

PAGE = (Path(__file__).parents[2] / "docs" / "transformers.md").read_text()


def blocks(language):
    """The pieces of text in ``language`` on the page."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", blocks("prototxt"))
def test_the_nets_of_the_page_can_be_trained(text):
    net = make_net("force_backward: true\n" + text)
    net.forward()
    net.backward()


def test_the_page_writes_an_encoder_out():
    recaffe.set_random_seed(2)
    composed_net = make_net(blocks("prototxt")[0])
    recaffe.set_random_seed(2)
    written = make_net(blocks("prototxt")[1])
    layers = [[layer.name for layer in net.layers if layer.type != "Split"] for net in (composed_net, written)]
    assert layers[0] == layers[1]
    x = np.random.default_rng(3).normal(size=(20, 8, 64))
    tops = []
    for net in (composed_net, written):
        recaffe.set_random_seed(4)  # the same dropout
        tops.append(net.forward(x=x)["y"].copy())
    np.testing.assert_array_equal(*tops)


def test_the_page_has_the_code():
    load, own = blocks("python")
    scope = {}
    exec(load + own, scope)
    check_layer("type: 'GatedSum'", [(3, 2, 64)], skip=["check_gpu", "check_fused"])
    net = net_of(
        composed("TransformerEncoder", "encoder", ["src"], "memory", f"{SIZES} num_layers: 2 final_norm: true")
        + composed("TransformerDecoder", "decoder", ["tgt", "memory"], "y", f"{SIZES} num_layers: 2 final_norm: true"),
        {"src": np.zeros((7, 3, 8)), "tgt": np.zeros((6, 3, 8))},
    )
    with np.load(GOLDEN / "torch" / "transformer_2x2.npz") as stored:
        weights = kind(stored, "param:")
        scope["load"](net, weights)
        np.testing.assert_array_equal(net.params["decoder/norm"][0].data, weights["decoder.norm.weight"])
