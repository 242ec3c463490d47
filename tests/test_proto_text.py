"""Prototxt to messages and back: the language, its errors, option blocks and typed options."""

import enum
import math
from dataclasses import dataclass, field

import pytest
from google.protobuf import text_format
from recaffe.proto import (
    LayerParameter,
    NetParameter,
    ParseError,
    RecaffeError,
    SolverParameter,
    format_text,
    nearest,
    option_text,
    parse_options,
    parse_text,
    parse_text_with_lines,
)
from recaffe.proto import recaffe_pb2 as pb

LEGAL = [
    'name: "x"',
    "name: 'x'",
    "name: 'a\"b' # a comment\n",
    'name: "a" "b" \'c\'',
    'name: "a"\n  # between\n  "b"',
    'name: "caf\u00e9 \\303\\251 \\u00e9"',
    r'name: "\a\b\f\n\r\t\v\\\'\" \x41\x4a \101\7"',
    'name:"x"force_backward:true',
    'name: "x"; force_backward: true, debug_info: false',
    "",
    "# only a comment",
    'layer { name: "a" } layer { name: "b" }',
    'layer: { name: "a" }',
    'layer < name: "a" >',
    'layer: < name: "a" param { lr_mult: 1 } >',
    'layer [{ name: "a" }, < name: "b" >]',
    'layer: [{ name: "a" }]',
    "layer: []",
    'input: ["a", "b"] input: "c"',
    "input_dim: [1, 2, 3] input_dim: 4 input_dim: []",
    "input_dim: 0x1F input_dim: 017 input_dim: -5 input_dim: 0 input_dim: -0x10",
    "force_backward: true",
    "force_backward: True",
    "force_backward: t",
    "force_backward: 1",
    "force_backward: false",
    "force_backward: False",
    "force_backward: f",
    "force_backward: 0",
    "layer { loss_weight: 1 loss_weight: -1.5 loss_weight: .5 loss_weight: 2. loss_weight: 1e-3 }",
    "layer { loss_weight: 1.5E+3 loss_weight: 1f loss_weight: 2.5F loss_weight: 1e2f loss_weight: -3f }",
    "layer { loss_weight: inf loss_weight: -inf loss_weight: Infinity loss_weight: -INFINITY }",
    "layer { loss_weight: 1e40 loss_weight: 1e-50 loss_weight: 0.1 loss_weight: 16777217 }",
    "layer { phase: TRAIN } layer { phase: TEST } layer { phase: 0 } layer { phase: 1 }",
    "state { level: -2147483648 } layer { include { min_level: 2147483647 } }",
    "layer { convolution_param { num_output: 4294967295 kernel_size: [3, 5] pad: 1 } }",
    'layer { type: "DummyData" dummy_data_param { data_filler: { type: "constant" value: 1 } shape < dim: 2 > } }',
    "layers { type: CONVOLUTION blob_share_mode: [STRICT, PERMISSIVE] blobs_lr: 1 blobs_lr: 2 }",
    'layers { layer { name: "c" type: "conv" kernelsize: 3 pool: AVE } top: "c" }',
    "layer { convolution_param {} }",
    "layer {}",
    "layer { clip_param { min: 0 max: 6 } }",
    "layer { blobs { shape { dim: 9223372036854775807 } double_data: 0.1 raw_data: '\\377\\000x' } }",
]


@pytest.mark.parametrize("text", LEGAL)
def test_reads_what_protobuf_reads(text):
    expected = text_format.Parse(text, NetParameter())
    assert parse_text(text, NetParameter) == expected


@pytest.mark.parametrize("text", LEGAL)
def test_what_is_written_reads_the_same(text):
    message = parse_text(text, NetParameter)
    written = format_text(message)
    assert parse_text(written, NetParameter) == message
    assert text_format.Parse(written, NetParameter()) == message


def test_reads_what_only_protobufs_cpp_reader_reads():
    net = parse_text("name: '\\?' input_dim: - 5 layer { loss_weight: - # below zero\n 2.5 }", NetParameter)
    assert (net.name, list(net.input_dim), list(net.layer[0].loss_weight)) == ("?", [-5], [-2.5])


def test_nan_is_read_and_written():
    message = parse_text("layer { loss_weight: nan loss_weight: -nan }", NetParameter)
    again = parse_text(format_text(message), NetParameter)
    assert all(math.isnan(value) for value in [*message.layer[0].loss_weight, *again.layer[0].loss_weight])


def test_written_form():
    net = parse_text(
        """layer { my_param { a: [1, 2] b { c: 'x' "y" } } top: "t" name: "l"
        convolution_param { weight_filler { std: 0.01 } bias_term: false engine: CAFFE } loss_weight: 1e-5 }""",
        NetParameter,
    )
    assert format_text(net) == (
        'layer {\n  name: "l"\n  top: "t"\n  loss_weight: 1e-05\n'
        "  convolution_param {\n    bias_term: false\n    weight_filler {\n      std: 0.01\n    }\n"
        "    engine: CAFFE\n  }\n"
        "  my_param {\n    a: [1, 2]\n    b {\n      c: 'x' \"y\"\n    }\n  }\n}\n"
    )


@pytest.mark.parametrize(
    ("value", "written"),
    [(1.0, "1"), (0.1, "0.1"), (1e-5, "1e-05"), (16777216.0, "16777216"), (1 / 3, "0.33333334"), (-2.5, "-2.5")],
)
def test_floats_are_written_short(value, written):
    assert format_text(SolverParameter(base_lr=value)) == f"base_lr: {written}\n"


BAD = [
    # unknown names
    (
        'layer {\n  name: "x"\n  num_outptu: 3 }',
        '3:3: LayerParameter has no field "num_outptu"; did you mean "num_output" in '
        "convolution_param or embed_param or inner_product_param?",
    ),
    (
        "layer { convolution_param {\n  num_outptu: 3 } }",
        '2:3: ConvolutionParameter has no field "num_outptu"; did you mean "num_output"?',
    ),
    ("layer { botom: 'x' }", '1:9: LayerParameter has no field "botom"; did you mean "bottom"?'),
    ("layer { foo_param: 3 }", '1:9: LayerParameter has no field "foo_param"'),
    ("layer { foo_param: [{ a: 1 }] }", '1:9: LayerParameter has no field "foo_param"'),
    ("layer { bar { a: 1 } }", '1:9: LayerParameter has no field "bar"'),
    ("bar_param { a: 1 }", '1:1: NetParameter has no field "bar_param"'),
    ("state { levle: 1 }", '1:9: NetState has no field "levle"; did you mean "level"?'),
    ("state { zzz: 1 }", '1:9: NetState has no field "zzz"; known are level, phase, stage'),
    ("layer { bar_param { a: 1 } bar_param { } }", '1:28: "bar_param" is already set in this layer'),
    # wrong values
    ("name: x", "1:7: expected a string in quotes, found x"),
    ("name: 3", "1:7: expected a string in quotes, found 3"),
    ("name { }", "1:6: expected a string in quotes, found a block"),
    ('name: "\\377"', "1:7: expected a string in UTF-8"),
    ('name: "\\q"', "1:7: \\q is not an escape"),
    ('name: "\\777"', "1:7: \\777 is not an escape"),
    ('name: "\\ud800"', "1:7: \\ud800 is not an escape"),
    ("input_dim: 1.5", "1:12: expected an integer from -2147483648 to 2147483647, found 1.5"),
    ('input_dim: "3"', 'found "3"'),
    ("input_dim: 2147483648", "1:12: expected an integer from -2147483648 to 2147483647, found 2147483648"),
    ("input_dim: 08", "found 08"),
    ("input_dim: x", "found x"),
    ("layer { convolution_param { num_output: -1 } }", "expected an integer from 0 to 4294967295, found -1"),
    ("layer { loss_weight: x }", "1:22: expected a number, found x"),
    ("layer { loss_weight: 0x10 }", "expected a number, found 0x10"),
    ("layer { loss_weight: '1' }", "expected a number, found '1'"),
    ("layer { loss_weight: {} }", "expected a number, found a block"),
    ("force_backward: yes", "1:17: expected true or false, found yes"),
    ("force_backward: 2", "expected true or false, found 2"),
    ("layer { phase: TRIAN }", '1:16: expected a Phase, found TRIAN; did you mean "TRAIN"?'),
    ("layer { phase: 7 }", "1:16: expected a Phase, found 7; known are TEST, TRAIN"),
    ("layer { phase: 'TRAIN' }", "expected a Phase, found 'TRAIN'"),
    ("layer { phase {} }", "expected a Phase, found a block"),
    ('layers { type: "ReLU" }', 'expected a LayerType, found "ReLU"; did you mean "RELU"?'),
    ("layer: 3", '1:8: expected "{" and the fields of LayerParameter, found 3'),
    # counts
    ('name: "a"\nname: "b"', '2:1: "name" is already set, on line 1'),
    ("state {}\n\nstate {}", '3:1: "state" is already set, on line 1'),
    ('name: ["a"]', '1:1: "name" is a single value, found a list'),
    ("layer {\n clip_param { min: 1 } }", '2:13: ClipParameter needs the field "max"'),
    # grammar
    ("layer {\n name: 'x'\n", '1:7: this "{" is never closed'),
    ("layer <\n name: 'x' }", '2:12: expected the name of a field or ">", found "}"'),
    ("layer { } }", '1:11: expected the name of a field, found "}"'),
    ("{ }", '1:1: expected the name of a field, found "{"'),
    ('name "x"', '1:6: expected ":" or "{" after name, found "x"'),
    ("name:", "1:6: expected a value, found the end of the file"),
    ("name: }", '1:7: expected a value, found "}"'),
    ('name: "x', "1:7: this string is not closed on its line"),
    ('name: "x\n"', "1:7: this string is not closed on its line"),
    ("input_dim: [1 2]", '1:15: expected "," or "]", found 2'),
    ("input_dim: [1,", "1:15: expected a value, found the end of the file"),
    ("input_dim: - 'x'", "1:14: expected a number after \"-\", found 'x'"),
    ("layer { loss_weight: 1..2 }", "1:22: 1..2 is not a number"),
    ("layer { loss_weight: 12abc }", "1:22: 12abc is not a number"),
    ("name: $", "1:7: unexpected '$'"),
    ("layer " + "{ layer_param " * 200, "more than 100 blocks within each other"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[text[:40] for text, _ in BAD])
def test_mistakes_are_told_with_their_place(text, message):
    with pytest.raises(ParseError) as caught:
        parse_text(text, NetParameter, "net.prototxt")
    assert str(caught.value).startswith("net.prototxt:")
    assert message in str(caught.value)


def test_a_parse_error_carries_its_place():
    with pytest.raises(RecaffeError) as caught:
        parse_text("\n\n  nmae: 'x'", NetParameter, "a/net.prototxt")
    assert (caught.value.path, caught.value.line, caught.value.column) == ("a/net.prototxt", 3, 3)


def test_nearest_ignores_case_and_gives_the_best_first():
    assert nearest("relu", ["ReLU", "PReLU", "Softmax"]) == ["ReLU", "PReLU"]
    assert nearest("zzz", ["ReLU"]) == []


def test_lines_of_layers():
    text = 'name: "n"\nlayer {\n name: "a" }\nlayer { name: "data"\n}\n\nlayer { name: "data" }'
    _, lines = parse_text_with_lines(text, NetParameter, "net.prototxt")
    assert lines.where("a") == "net.prototxt:2"
    assert (lines.where("data"), lines.where("data", 1)) == ("net.prototxt:4", "net.prototxt:7")
    assert lines.where("data", 2) == lines.where("other") == "net.prototxt"


def test_lines_of_layers_around_a_step():
    text = """layer { name: 'r' recurrent_param { step {
  layer { name: 'x' } } } }
layer { name: 'x' }"""
    net, lines = parse_text_with_lines(text, NetParameter, "net.prototxt")
    assert net.layer[0].recurrent_param.step.layer[0].name == "x"
    assert (lines.where("r"), lines.where("x")) == ("net.prototxt:1", "net.prototxt:3")
    with pytest.raises(RecaffeError, match=r'net.prototxt:2:28: LayerParameter has no field "nmae"'):
        parse_text(text.replace("{ name: 'x' } }", "{ type: 'TanH'     nmae: 'x' } }"), NetParameter, "net.prototxt")


def test_lines_of_old_layers_and_of_nets_in_a_solver():
    text = "layers { name: 'v1' }\nlayers { layer { name: 'v0' } }"
    _, lines = parse_text_with_lines(text, NetParameter, "net.prototxt")
    assert (lines.where("v1"), lines.where("v0")) == ("net.prototxt:1", "net.prototxt:2")
    text = "base_lr: 1\nnet_param {\n layer { name: 'x' }\n}\ntest_net_param {\n\n layer { name: 'x' } }"
    _, lines = parse_text_with_lines(text, SolverParameter, "s.prototxt")
    assert (lines.where("x"), lines.where("x", 1)) == ("s.prototxt:3", "s.prototxt:7")


OPTIONS = """layer {
  name: "l" type: "Mine"
  mine_param: {  # kept without this comment
    alpha: 0.5, mode: FAST; dims: [1, -2] dims: 0x3
    inner < text: "a\\n" 'b' on: true >
    inner { text: "{ }" }
  }
  other_param { }
}"""


def test_unknown_blocks_of_a_layer_are_kept():
    layer = parse_text(OPTIONS, NetParameter).layer[0]
    assert [block.name for block in layer.option_block] == ["mine_param", "other_param"]
    assert option_text(layer, "mine_param") == (
        "alpha: 0.5\nmode: FAST\ndims: [1, -2]\ndims: 0x3\n"
        'inner {\n  text: "a\\n" \'b\'\n  on: true\n}\ninner {\n  text: "{ }"\n}\n'
    )
    assert option_text(layer, "other_param") == ""
    assert option_text(layer, "third_param") is None


def test_option_blocks_survive_text_and_binary():
    net = parse_text(OPTIONS, NetParameter)
    assert parse_text(format_text(net), NetParameter) == net
    again = NetParameter.FromString(net.SerializeToString())
    assert again == net
    assert format_text(again) == format_text(net)


def test_blocks_of_unknown_types_of_old_layers_are_kept():
    net = parse_text("layers { type: MULTI_STAGE bar_param { x: 1 } }", NetParameter)
    assert net.layers[0].type_name == "MULTI_STAGE"
    assert parse_text(format_text(net), NetParameter) == net
    assert format_text(net) == "layers {\n  bar_param {\n    x: 1\n  }\n  type: MULTI_STAGE\n}\n"


def test_a_fork_s_other_message_under_our_number_is_not_written():
    foreign = pb.OptionBlock(text="out.txt").SerializeToString()
    layer = LayerParameter.FromString(LayerParameter(name="x").SerializeToString() + b"\xc2\x3e\x09" + foreign)
    assert layer.option_block[0].text == "out.txt"
    assert format_text(layer) == 'name: "x"\n'


class Mode(enum.Enum):
    SLOW = 1
    FAST = 2


@dataclass
class Inner:
    text: str
    on: bool = False


@dataclass
class Options:
    alpha: float
    count: int = 7
    mode: Mode = Mode.SLOW
    dims: list[int] = field(default_factory=list)
    inner: list[Inner] = field(default_factory=list)
    one: Inner | None = None
    modes: list[Mode] = field(default_factory=list)


WHERE = 'net.prototxt:3: layer "l": mine_param'


def test_options_are_typed():
    layer = parse_text(OPTIONS, NetParameter).layer[0]
    options = parse_options(option_text(layer, "mine_param"), Options, WHERE)
    assert options == Options(alpha=0.5, mode=Mode.FAST, dims=[1, -2, 3], inner=[Inner("a\nb", on=True), Inner("{ }")])


def test_options_by_default_and_by_number():
    assert parse_options("alpha: 2", Options, WHERE) == Options(alpha=2.0)
    options = parse_options('alpha: -1e3 one { text: "x" } mode: 2 modes: [FAST, 1]', Options, WHERE)
    assert options == Options(-1000.0, one=Inner("x"), mode=Mode.FAST, modes=[Mode.FAST, Mode.SLOW])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alhpa: 1", ': Options has no field "alhpa"; did you mean "alpha"?'),
        ("", ': Options needs the field "alpha"'),
        ("alpha: x", ".alpha: expected a number, found x"),
        ("alpha: 1 count: 1.5", ".count: expected an integer"),
        ("alpha: 1 mode: FATS", '.mode: expected a Mode, found FATS; did you mean "FAST"?'),
        ("alpha: 1 mode: 9", ".mode: expected one of SLOW, FAST, found 9"),
        ("alpha: 1 alpha: 2", ': "alpha" is a single value, found several'),
        ("alpha: [1]", ': "alpha" is a single value, found several'),
        ("alpha: 1 one: 3", '.one: expected "{" and the fields of Inner, found 3'),
        ("alpha: 1 one { }", '.one: Inner needs the field "text"'),
        ("alpha: 1 one { text: 3 }", ".one.text: expected a string in quotes, found 3"),
        ('alpha: 1 one { text: "x" on: maybe }', ".one.on: expected true or false, found maybe"),
        ("alpha: 1 dims: [1, 2.5]", ".dims: expected an integer"),
    ],
)
def test_mistakes_in_options_tell_where(text, message):
    with pytest.raises(RecaffeError) as caught:
        parse_options(text, Options, WHERE)
    assert str(caught.value).startswith(WHERE + message)


def test_an_option_of_a_type_that_text_cannot_give_is_a_fault_of_the_class():
    @dataclass
    class Wrong:
        table: dict = field(default_factory=dict)

    with pytest.raises(TypeError, match="table"):
        parse_options("table: 1", Wrong, WHERE)
