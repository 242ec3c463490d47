"""Old nets and solvers become what Caffe's upgrade tools make of them."""

from pathlib import Path

import pytest
from recaffe.proto import (
    NetParameter,
    RecaffeError,
    SolverParameter,
    net_needs_upgrade,
    parse_net,
    parse_text,
    read_net,
    read_solver,
    upgrade_net,
    upgrade_solver,
)

GOLDEN = Path(__file__).parent / "golden" / "upgrade"
PAIRS = sorted(path.name.removesuffix(".upgraded.prototxt") for path in GOLDEN.glob("*.upgraded.prototxt"))


def net(text):
    return parse_text(text, NetParameter)


def assert_upgrades(old, new):
    upgraded = parse_net(old, "old.prototxt")
    assert upgraded == net(new)
    assert not net_needs_upgrade(upgraded)


@pytest.mark.parametrize("name", PAIRS)
def test_as_caffe_upgrades(name):
    read, message = (read_solver, SolverParameter) if name.startswith("solver") else (read_net, NetParameter)
    expected = parse_text((GOLDEN / f"{name}.upgraded.prototxt").read_text(), message)
    assert read(GOLDEN / f"{name}.prototxt") == expected


def test_all_pairs_are_here():
    assert len(PAIRS) == 5


def test_a_net_of_today_is_given_back_as_it_is():
    today = net('name: "n" layer { name: "x" type: "BatchNorm" param { lr_mult: 0 } }')
    assert not net_needs_upgrade(today)
    assert upgrade_net(today, "net") is today


def test_the_old_net_is_left_alone():
    old = net('input: "x" input_dim: [1, 2, 3, 4] layers { name: "r" type: RELU }')
    copy = NetParameter()
    copy.CopyFrom(old)
    upgrade_net(old, "net")
    assert old == copy


# V0: (options written in the V0 layer, the layer it becomes)
V0 = [
    (
        'type: "conv" num_output: 3 biasterm: false weight_filler { std: 2 } bias_filler { value: 1 } '
        "pad: 1 kernelsize: 5 group: 2 stride: 3",
        'type: "Convolution" convolution_param { num_output: 3 bias_term: false weight_filler { std: 2 } '
        "bias_filler { value: 1 } pad: 1 kernel_size: 5 group: 2 stride: 3 }",
    ),
    (
        'type: "innerproduct" num_output: 3 biasterm: true weight_filler { std: 2 } bias_filler { value: 1 }',
        'type: "InnerProduct" inner_product_param { num_output: 3 bias_term: true weight_filler { std: 2 } '
        "bias_filler { value: 1 } }",
    ),
    (
        'type: "pool" pool: STOCHASTIC pad: 1 kernelsize: 3 stride: 2',
        'type: "Pooling" pooling_param { pool: STOCHASTIC pad: 1 kernel_size: 3 stride: 2 }',
    ),
    ('type: "pool" pool: AVE', 'type: "Pooling" pooling_param { pool: AVE }'),
    ('type: "dropout" dropout_ratio: 0.25', 'type: "Dropout" dropout_param { dropout_ratio: 0.25 }'),
    (
        'type: "lrn" local_size: 3 alpha: 2 beta: 0.5 k: 4',
        'type: "LRN" lrn_param { local_size: 3 alpha: 2 beta: 0.5 k: 4 }',
    ),
    (
        'type: "data" source: "s" batchsize: 5 rand_skip: 6 scale: 2 meanfile: "m" cropsize: 7 mirror: true',
        'type: "Data" data_param { source: "s" batch_size: 5 rand_skip: 6 } '
        'transform_param { scale: 2 mean_file: "m" crop_size: 7 mirror: true }',
    ),
    (
        'type: "images" source: "s" batchsize: 5 rand_skip: 6 shuffle_images: true new_height: 7 new_width: 8 '
        "new_num: 1 new_channels: 2 scale: 0.5",
        'type: "ImageData" image_data_param { source: "s" batch_size: 5 rand_skip: 6 shuffle: true '
        "new_height: 7 new_width: 8 } transform_param { scale: 0.5 }",
    ),
    (
        'type: "hdf5_data" source: "s" batchsize: 5',
        'type: "HDF5Data" hdf5_data_param { source: "s" batch_size: 5 }',
    ),
    (
        'type: "hdf5_output" hdf5_output_param { file_name: "f" }',
        'type: "HDF5Output" hdf5_output_param { file_name: "f" }',
    ),
    (
        'type: "window_data" source: "s" batchsize: 5 det_fg_threshold: 0.6 det_bg_threshold: 0.4 '
        'det_fg_fraction: 0.3 det_context_pad: 16 det_crop_mode: "square" cropsize: 227',
        'type: "WindowData" window_data_param { source: "s" batch_size: 5 fg_threshold: 0.6 bg_threshold: 0.4 '
        'fg_fraction: 0.3 context_pad: 16 crop_mode: "square" } transform_param { crop_size: 227 }',
    ),
    ('type: "infogain_loss" source: "s"', 'type: "InfogainLoss" infogain_loss_param { source: "s" }'),
    ('type: "concat" concat_dim: 0', 'type: "Concat" concat_param { concat_dim: 0 }'),
    ('type: "accuracy"', 'type: "Accuracy"'),
    ('type: "bnll"', 'type: "BNLL"'),
    ('type: "euclidean_loss"', 'type: "EuclideanLoss"'),
    ('type: "flatten"', 'type: "Flatten"'),
    ('type: "im2col"', 'type: "Im2col"'),
    ('type: "multinomial_logistic_loss"', 'type: "MultinomialLogisticLoss"'),
    ('type: "relu"', 'type: "ReLU"'),
    ('type: "sigmoid"', 'type: "Sigmoid"'),
    ('type: "softmax"', 'type: "Softmax"'),
    ('type: "softmax_loss"', 'type: "SoftmaxWithLoss"'),
    ('type: "split"', 'type: "Split"'),
    ('type: "tanh"', 'type: "TanH"'),
    (
        'type: "relu" blobs { num: 1 data: 2 } blobs_lr: 1 blobs_lr: 2 weight_decay: 0',
        'type: "ReLU" blobs { num: 1 data: 2 } param { lr_mult: 1 decay_mult: 0 } param { lr_mult: 2 }',
    ),
]


@pytest.mark.parametrize(("old", "new"), V0, ids=[old[:40] for old, _ in V0])
def test_v0_options(old, new):
    assert_upgrades(
        f'name: "n" force_backward: true input: "b" input_dim: [1, 2, 3, 4] '
        f'layers {{ layer {{ name: "l" {old} }} bottom: "b" top: "t" }}',
        'name: "n" force_backward: true '
        'layer { name: "input" type: "Input" top: "b" input_param { shape { dim: [1, 2, 3, 4] } } }'
        f'layer {{ name: "l" bottom: "b" top: "t" {new} }}',
    )


def test_v0_options_that_mean_nothing_are_dropped_with_a_warning(caplog):
    assert_upgrades('layers { layer { name: "r" type: "relu" pad: 3 } }', 'layer { name: "r" type: "ReLU" }')
    assert 'old.prototxt: layer "r": "pad" means nothing to type "relu"; dropped' in caplog.text


def test_padding_is_folded_into_every_reader():
    assert_upgrades(
        """input: "x" input_dim: [1, 1, 9, 9]
        layers { layer { name: "p" type: "padding" pad: 2 } bottom: "x" top: "p" }
        layers { layer { name: "c" type: "conv" kernelsize: 5 } bottom: "p" top: "c" }
        layers { layer { name: "m" type: "pool" kernelsize: 5 } bottom: "p" top: "m" }
        layers { layer { name: "d" type: "conv" kernelsize: 5 } bottom: "x" top: "d" }""",
        """layer { name: "input" type: "Input" top: "x" input_param { shape { dim: [1, 1, 9, 9] } } }
        layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { pad: 2 kernel_size: 5 } }
        layer { name: "m" type: "Pooling" bottom: "x" top: "m" pooling_param { pad: 2 kernel_size: 5 } }
        layer { name: "d" type: "Convolution" bottom: "x" top: "d" convolution_param { kernel_size: 5 } }""",
    )


def test_transformations_of_v1_data_layers():
    """Caffe gives every data layer of such a net both blocks, also those that were not old."""
    for kind, block, name in [
        ("DATA", "data_param", "Data"),
        ("IMAGE_DATA", "image_data_param", "ImageData"),
        ("WINDOW_DATA", "window_data_param", "WindowData"),
    ]:
        assert_upgrades(
            f"""layers {{ name: "a" type: {kind}
                {block} {{ source: "s" scale: 2 mean_file: "m" crop_size: 3 mirror: true }} }}
            layers {{ name: "b" type: {kind} transform_param {{ mirror: false }} }}
            layers {{ name: "c" type: {kind} }} layers {{ name: "d" type: RELU }}""",
            f"""layer {{ name: "a" type: "{name}" {block} {{ source: "s" }}
                transform_param {{ scale: 2 mean_file: "m" crop_size: 3 mirror: true }} }}
            layer {{ name: "b" type: "{name}" {block} {{}} transform_param {{ mirror: false }} }}
            layer {{ name: "c" type: "{name}" {block} {{}} transform_param {{}} }}
            layer {{ name: "d" type: "ReLU" }}""",
        )


def test_data_layers_that_are_not_old_stay_bare():
    assert_upgrades(
        'layers { name: "a" type: DATA data_param { source: "s" } }',
        'layer { name: "a" type: "Data" data_param { source: "s" } }',
    )


def test_every_block_of_v1_is_carried_over():
    blocks = [name for name in net("layers {}").layers[0].DESCRIPTOR.fields_by_name if name.endswith("_param")]
    assert len(blocks) == 30
    body = " ".join(f"{name} {{}}" for name in blocks)
    assert_upgrades(f"layers {{ {body} }}", f"layer {{ {body} }}")


def test_v1_blocks_that_only_today_s_layers_know():
    assert_upgrades(
        """layers { name: "p" type: PRELU prelu_param { channel_shared: true } }
        layers { name: "m" type: MULTI_STAGE_MEANFIELD blobs_lr: 5 mean_param { a: 1 } }
        layers { name: "b" type: BN } layers { type: ROIPOOLING roi_pooling_param { pooled_h: 2 } }""",
        """layer { name: "p" type: "PReLU" prelu_param { channel_shared: true } }
        layer { name: "m" type: "MultiStageMeanfield" param { lr_mult: 5 } mean_param { a: 1 } }
        layer { name: "b" type: "BN" } layer { type: "ROIPooling" roi_pooling_param { pooled_h: 2 } }""",
    )


def test_weights_with_inputs_but_no_shapes_lose_the_inputs():
    assert_upgrades('input: "x" layers { name: "r" type: RELU }', 'layer { name: "r" type: "ReLU" }')


def test_inputs_beside_layers_of_today_come_first():
    assert_upgrades(
        'input: "x" input_shape { dim: [2, 3] } layer { name: "r" type: "ReLU" bottom: "x" }',
        """layer { name: "input" type: "Input" top: "x" input_param { shape { dim: [2, 3] } } }
        layer { name: "r" type: "ReLU" bottom: "x" }""",
    )


def test_batch_norm_statistics_are_frozen():
    assert_upgrades(
        'layer { type: "BatchNorm" param { name: "m" lr_mult: 1 } param { lr_mult: 0 } param {} }'
        'layer { type: "BatchNorm" param { lr_mult: 1 } } layer { type: "Scale" param {} param {} param {} }',
        """layer { type: "BatchNorm" param { name: "m" lr_mult: 0 decay_mult: 0 }
            param { lr_mult: 0 decay_mult: 0 } param { lr_mult: 0 decay_mult: 0 } }
        layer { type: "BatchNorm" param { lr_mult: 1 } } layer { type: "Scale" param {} param {} param {} }""",
    )


def test_option_blocks_survive_an_upgrade():
    assert_upgrades(
        'input: "x" input_shape {} layer { type: "Mine" mine_param { a: 1 } }',
        'layer { name: "input" type: "Input" top: "x" input_param { shape {} } }'
        'layer { type: "Mine" mine_param { a: 1 } }',
    )


BAD = [
    ('layer { name: "a" } layers { name: "b" }', 'has 1 "layer" and 1 "layers" (the old form): use one'),
    (
        'layers { layer { name: "c" type: "convv" } }',
        'layer "c": unknown V0 type "convv"; did you mean "conv"',
    ),
    (
        'layers { layer { name: "c" type: "conv" } } layers { name: "v1" }',
        'layer "v1" stands among V0 layers and is none',
    ),
    ('layers { layer { name: "r" type: "relu" } bottom: "x" }', 'layer "r": no layer before it has the top "x"'),
    (
        'input: "x" layers { layer { name: "p" type: "padding" } bottom: "x" top: "p" } '
        'layers { layer { name: "r" type: "relu" } bottom: "p" }',
        'padding layer "p" must have one bottom and one top',
    ),
    (
        'input: "x" layers { layer { name: "p" type: "padding" } bottom: "x" top: "p" top: "q" } '
        'layers { layer { name: "c" type: "conv" } bottom: "p" }',
        'padding layer "p" must have one bottom and one top',
    ),
    ('input: "x" input_dim: [1, 2, 3]', "1 inputs, but 3 input_dim; four each are needed"),
    ('input: "x" input: "y" input_shape {}', "2 inputs, but 1 input_shape"),
    (
        'layers { name: "p" type: PRELU prelu_param { chanel_shared: true } }',
        'layer "p": prelu_param: PReLUParameter has no field "chanel_shared"; did you mean "channel_shared"?',
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_what_makes_no_sense_is_refused(text, message):
    with pytest.raises(RecaffeError) as caught:
        parse_net(text, "old.prototxt")
    assert str(caught.value).startswith("old.prototxt: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SGD", "SGD"),
        ("NESTEROV", "Nesterov"),
        ("ADAGRAD", "AdaGrad"),
        ("RMSPROP", "RMSProp"),
        ("ADADELTA", "AdaDelta"),
        ("ADAM", "Adam"),
        ("5", "Adam"),
    ],
)
def test_solver_types(old, new):
    solver = upgrade_solver(parse_text(f"solver_type: {old}", SolverParameter), "s")
    assert solver == SolverParameter(type=new)


def test_a_solver_with_both_types_is_refused():
    with pytest.raises(RecaffeError, match=r"^s: has both type and solver_type"):
        upgrade_solver(parse_text('solver_type: SGD type: "SGD"', SolverParameter), "s")


def test_nets_in_a_solver_are_upgraded():
    old = 'layers { name: "r" type: RELU }'
    new = 'layer { name: "r" type: "ReLU" }'
    form = "net_param {{ {0} }} train_net_param {{ {0} }} test_net_param {{ {0} }} test_net_param {{ {1} }}"
    solver = parse_text(form.format(old, new), SolverParameter)
    assert upgrade_solver(solver, "s") == parse_text(form.format(new, new), SolverParameter)
