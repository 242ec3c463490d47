"""Composite layers: a net has their pieces in their place, with what the text says of them."""

import numpy as np
import pytest
import recaffe
from recaffe.framework.composite import CompositeLayer
from recaffe.framework.layer_checks import check_layer
from recaffe.proto import ParamSpec, read_net

from tests.command_line import run_cli
from tests.support import assert_close, make_net

INPUT = "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 3 dim: 2 dim: 4 } } }"
FEED_FORWARD = """layer {{ name: 'ff' type: 'FeedForward' bottom: 'x' top: 'y' {}
  feed_forward_param {{ num_hidden: 5 num_output: 3 {} }} }}"""


@recaffe.register
class Halves(CompositeLayer):
    """y = FeedForward(x); z = y / 2, in place of y; two levels of pieces."""

    type = "Halves"
    bottoms, tops = (1, 1), (1, 2)

    def pieces(self):
        whole = self.piece("whole", "FeedForward", self.param.bottom, self.param.top[0], [ParamSpec(decay_mult=0)])
        whole.feed_forward_param.num_hidden = whole.feed_forward_param.num_output = 4
        yield whole
        half = self.piece("half", "Power", whole.top, self.param.top[0])
        half.power_param.scale = 0.5
        yield half

    def changes(self):
        return self.param.transformer_param.piece


def halves(text="", pieces=""):
    """A net of one Halves layer."""
    return make_net(
        f"{INPUT} layer {{ name: 'h' type: 'Halves' bottom: 'x' top: 'y' {text} transformer_param {{ {pieces} }} }}"
    )


def specs(net, layer):
    """The learning rates and decays of a layer's parameters."""
    return [(spec.lr_mult, spec.decay_mult) for spec in net.layer_dict[layer].param.param]


def test_a_net_has_the_pieces():
    net = halves()
    assert list(net.layer_dict) == ["x", "h/whole/hidden", "h/whole/activation", "h/whole/output", "h/half"]
    assert list(net.blobs) == ["x", "h/whole/hidden", "y"]
    assert [blob.shape for blob in net.learnable_params] == [(4, 4), (4,), (4, 4), (4,)]


def test_pieces_compute_what_the_same_layers_do():
    net = make_net(INPUT + FEED_FORWARD.format("", ""), dtype=np.float64)
    rng = np.random.default_rng(0)
    x, dy = rng.normal(size=(3, 2, 4)), rng.normal(size=(3, 2, 3))
    W_1, b_1, W_2, b_2 = (rng.normal(size=blob.shape) for blob in net.learnable_params)
    for blob, values in zip(net.learnable_params, (W_1, b_1, W_2, b_2), strict=True):
        blob.data[...] = values
    hidden = x @ W_1.T + b_1
    assert_close(net.forward(x=x)["y"], np.maximum(hidden, 0) @ W_2.T + b_2, 1e-12)
    net = make_net("force_backward: true " + INPUT + FEED_FORWARD.format("", ""), dtype=np.float64)
    for blob, values in zip(net.learnable_params, (W_1, b_1, W_2, b_2), strict=True):
        blob.data[...] = values
    net.forward(x=x)
    d_hidden = (dy @ W_2) * (hidden > 0)
    assert_close(net.backward(y=dy)["x"], d_hidden @ W_1, 1e-12)
    expected = [
        np.einsum("tnf,tnd->fd", d_hidden, x),
        d_hidden.sum((0, 1)),
        np.einsum("tno,tnf->of", dy, np.maximum(hidden, 0)),
        dy.sum((0, 1)),
    ]
    for blob, values in zip(net.learnable_params, expected, strict=True):
        assert_close(blob.diff, values, 1e-12)


def test_a_composite_of_composites_passes_the_checks_of_every_layer():
    check_layer("type: 'Halves'", [(3, 2, 4)], skip=["check_gpu", "check_fused"])


def test_one_param_goes_to_every_parameter_and_a_piece_says_its_own():
    net = halves("param { lr_mult: 0 decay_mult: 3 }", "piece { name: 'whole/output' param { lr_mult: 2 } }")
    assert specs(net, "h/whole/hidden") == [(0, 0), (0, 0)]  # the piece's own decay counts more
    assert specs(net, "h/whole/output") == [(2, 0), (2, 0)]
    assert specs(net, "h/half") == []


def test_several_params_of_a_piece_are_its_parameters_in_order():
    pieces = "piece { name: 'whole/hidden' param { name: 'W' } param { lr_mult: 0 } }"
    net = halves("", pieces)
    assert specs(net, "h/whole/hidden") == [(1, 0), (0, 0)]
    assert net.layer_dict["h/whole/hidden"].param.param[0].name == "W"


def test_a_composite_among_the_pieces_can_be_changed_as_a_whole():
    net = halves("", "piece { name: 'whole' param { lr_mult: 0 } feed_forward_param { dropout_ratio: 0.25 } }")
    assert specs(net, "h/whole/output") == [(0, 0), (0, 0)]
    assert net.layer_dict["h/whole/dropout"].ratio == 0.25


def test_the_phase_goes_to_every_piece():
    net = halves("phase: TEST", "piece { name: 'whole' feed_forward_param { dropout_ratio: 0.25 } }")
    assert {layer.phase for layer in net.layers[1:]} == {recaffe.TEST}


def test_include_rules_are_the_composites():
    text = INPUT + FEED_FORWARD.format("include { phase: TEST }", "")
    assert len(make_net(text, recaffe.TRAIN).layers) == 1
    assert len(make_net(text, recaffe.TEST).layers) == 4


def test_propagate_down_goes_to_the_pieces_that_read_the_bottom():
    below = (
        INPUT
        + "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'z' inner_product_param { num_output: 4 axis: 2 } }"
    )
    above = "layer { name: 'loss' type: 'Reduction' bottom: 'y' top: 'loss' loss_weight: 1 }"
    ff = FEED_FORWARD.replace("bottom: 'x'", "bottom: 'z'")
    for flag in ("true", "false"):
        net = make_net(below + ff.format(f"propagate_down: {flag}", "weight_filler { type: 'xavier' }") + above)
        hidden = next(step for step in net.steps if step.layer.name == "ff/hidden")
        assert (hidden.needs_backward, list(hidden.propagate_down)) == (True, [flag == "true"])
        assert next(step for step in net.steps if step.layer.name == "ip").needs_backward == (flag == "true")


def test_a_loss_weight_is_that_of_the_last_piece():
    net = halves("loss_weight: 2")
    assert [layer.loss_weights for layer in net.layers[1:]] == [[0.0], [0.0], [0.0], [2.0]]
    assert_close(net.forward_from_to(0, len(net.layers) - 1), 2 * net.blobs["y"].data.sum(), 1e-6)


def test_a_step_net_has_the_pieces():
    step = """input: 'x' output: 'y' state { name: 'h' next: 'y' shape { dim: 3 } }
      layer { name: 'both' type: 'Concat' bottom: 'x' bottom: 'h' top: 'both' }"""
    composed = FEED_FORWARD.replace("'x'", "'both'").format("", "")
    written = """
      layer { name: 'hidden' type: 'InnerProduct' bottom: 'both' top: 'hidden'
        inner_product_param { num_output: 5 weight_filler { type: 'xavier' } } }
      layer { name: 'relu' type: 'ReLU' bottom: 'hidden' top: 'hidden' }
      layer { name: 'output' type: 'InnerProduct' bottom: 'hidden' top: 'y'
        inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } }"""
    tops, diffs, rng = [], [], np.random.default_rng(1)
    x, dy = rng.normal(size=(3, 2, 4)), rng.normal(size=(3, 2, 3))
    for layers in (composed, written):
        recaffe.set_random_seed(3)
        net = make_net(
            f"force_backward: true {INPUT} layer {{ name: 'r' type: 'Recurrent' bottom: 'x' top: 'y'"
            f" recurrent_param {{ step {{ {step} {layers} }} }} }}",
            dtype=np.float64,
        )
        tops.append(net.forward(x=x)["y"].copy())
        diffs.append(net.backward(y=dy)["x"].copy())
    assert np.abs(tops[0]).max() > 0.01
    np.testing.assert_array_equal(*tops)
    np.testing.assert_array_equal(*diffs)


@pytest.mark.parametrize(
    ("text", "pieces", "message"),
    [
        (
            "",
            "piece { name: 'whole/hiden' }",
            r"\(type 'Halves'\): no piece is named 'whole/hiden'; did you mean 'whole/hidden'",
        ),
        ("", "piece { name: '0/q' }", "no piece is named '0/q'; it has: half, whole, whole/activation, whole/hidden"),
        ("", "piece { name: 'half' type: 'ReLU' }", "piece 'half': its type cannot be changed"),
        ("", "piece { name: 'half' include { phase: TEST } }", "piece 'half': its include cannot be changed"),
        ("", "piece { name: 'half' param { lr_mult: 0 } }", "'h/half' .*1 param blocks for 0 parameter"),
        ("param { } param { }", "", "expected at most one param, without a name"),
        ("param { name: 'W' }", "", "expected at most one param, without a name"),
        ("loss_weight: 1 loss_weight: 1", "", r"loss_weight is given 2 time\(s\), expected none or 1"),
        ("propagate_down: true propagate_down: true", "", "propagate_down is given 2 time"),
        ("bottom: 'x'", "", r"expected 1 bottom\(s\), got 2"),
        ("", "piece { name: 'whole' feed_forward_param { num_hidden: 0 } }", "'h/whole' .*needs num_hidden"),
    ],
)
def test_mistakes(text, pieces, message):
    with pytest.raises(recaffe.RecaffeError, match=message):
        halves(text, pieces)


def test_an_error_in_a_piece_names_the_composite_its_file_and_line(tmp_path):
    file = tmp_path / "net.prototxt"
    file.write_text(f"{INPUT}\n\n{FEED_FORWARD.format('', '')}\n".replace("'x' top: 'y'", "'z' top: 'y'"))
    with pytest.raises(recaffe.RecaffeError) as raised:
        recaffe.Net(file, recaffe.TRAIN)
    assert str(raised.value) == (
        f"{file}:3: layer 'ff' (type 'FeedForward'): layer 'ff/hidden' (type 'InnerProduct'): unknown bottom blob 'z'"
        " (bottom 0): no layer above has it as a top"
    )


def test_weights_are_saved_and_loaded_by_piece(tmp_path):
    net, other = halves(), halves()
    for name in ("net.caffemodel", "net.caffemodel.h5"):
        net.save(tmp_path / name)
        for blob in other.learnable_params:
            blob.data.fill(0)
        other.copy_from(tmp_path / name)
        for mine, its in zip(net.learnable_params, other.learnable_params, strict=True):
            np.testing.assert_array_equal(mine.data, its.data)
    assert net.source.layer[1].type == "Halves"  # the text stays as it was written


def test_upgrading_a_text_leaves_the_composite(tmp_path):
    (tmp_path / "old.prototxt").write_text(INPUT + FEED_FORWARD.format("", ""))
    assert run_cli(["upgrade_net_proto_text", "old.prototxt", "new.prototxt"], tmp_path).status == 0
    assert [layer.type for layer in read_net(tmp_path / "new.prototxt").layer] == ["Input", "FeedForward"]
