"""What every registered layer type is checked with: one case or more for each type.

Cases run in a copy of tests/golden/data.
"""

import numpy as np
from recaffe.framework.layer_case import LayerCase
from recaffe.proto import TEST

from tests.layers import attention_cases, transformer_cases

rng = np.random.default_rng(11)

labels = np.array([0.0, 2.0, 1.0, 1.0])
maps = (2, 4, 5, 6)
positive = rng.uniform(0.5, 2.0, size=maps)


def away_from_zero(*shape: int) -> np.ndarray:
    """Random numbers between 0.5 and 1.5 in absolute value."""
    return rng.uniform(0.5, 1.5, size=shape) * rng.choice([-1.0, 1.0], size=shape)


def layer(text: str, *bottoms: np.ndarray | tuple[int, ...], **options: object) -> LayerCase:
    """A case of the layer ``text``."""
    return LayerCase(text, bottoms, **options)


def convolution(options: str, *bottoms: tuple[int, ...], type: str = "Convolution") -> LayerCase:
    """A case of a convolution with ``options``."""
    return layer(f"type: '{type}' convolution_param {{ {options} }}", *(bottoms or (maps,)))


def pooling(options: str, bottom: np.ndarray | tuple[int, ...] = maps, **more: object) -> LayerCase:
    """A case of a pooling with ``options``."""
    tops = more.pop("tops", "")
    return layer(f"type: 'Pooling' {tops} pooling_param {{ {options} }}", bottom, **more)


# A mean and a variance, both summed with the factor 2.
statistics = [rng.normal(size=4), rng.uniform(1.0, 2.0, size=4), np.array([2.0])]

# Three steps of two streams; a sequence starts in the middle of each.
cont = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
steps = (3, 2, 4)


def recurrent(type: str, options: str, *bottoms: np.ndarray | tuple[int, ...], **more: object) -> LayerCase:
    """A case of a recurrent layer of three units with ``options``."""
    tops = more.pop("tops", "")
    return layer(f"type: '{type}' {tops} recurrent_param {{ num_output: 3 {options} }}", *bottoms, **more)


def recurrent_cases(type: str, states: int) -> list[LayerCase]:
    """The cases of a recurrent layer that exposes so many states."""
    exposed = [(1, 2, 3)] * states
    return [
        recurrent(type, "", steps, cont),
        recurrent(type, "", steps, cont, (2, 5), other_bottoms=[(4, 2, 4), np.ones((4, 2)), (2, 5)]),
        recurrent(type, "direction: BIDIRECTIONAL", steps, cont),
        recurrent(type, "direction: REVERSE num_layers: 2 dropout_ratio: 0.3", steps, cont),
        recurrent(
            type,
            "expose_hidden: true",
            steps,
            cont,
            *exposed,
            tops="top: 'y'" + " top: 'last'" * states,
            other_bottoms=[(4, 2, 4), np.ones((4, 2)), *exposed],
        ),
        recurrent(
            type,
            "padding: LENGTHS direction: BIDIRECTIONAL merge: SUM num_layers: 2",
            steps,
            cont,
            (2, 5),
            np.array([3.0, 1.0]),
            other_bottoms=[(4, 1, 4), np.ones((4, 1)), (1, 5), np.array([2.0])],
        ),
        recurrent(
            type,
            "padding: LENGTHS direction: BIDIRECTIONAL num_layers: 2 last_output: true expose_hidden: true",
            steps,
            cont,
            np.array([3.0, 1.0]),
            tops="top: 'y'" + " top: 'last'" * states,
            other_bottoms=[(4, 3, 4), np.ones((4, 3)), np.array([2.0, 0.0, 4.0])],
        ),
        recurrent(
            type,
            "padding: MASK cont_bottom: false direction: REVERSE",
            steps,
            np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
            other_bottoms=[(1, 3, 4), np.ones((1, 3))],
        ),
    ]


def attention_loop_cases(type: str, states: int) -> list[LayerCase]:
    """The cases of a recurrent layer with attention in its loop: each score, each padding of the memory."""

    def case(options: str, attention: str, tops: str, *bottoms: object, **more: object) -> LayerCase:
        text = f"recurrent_param {{ num_output: 3 {options} }} attention_param {{ num_output: 4 {attention} }}"
        return layer(f"type: '{type}' {tops} {text}", *bottoms, **more)

    exposed, shown = [(1, 2, 3)] * states, "top: 'contexts' top: 'weights'"
    seen = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0]])  # nothing of the second stream's memory
    return [
        case("", "", "", steps, (4, 2, 5), other_bottoms=[(4, 1, 4), (2, 1, 5)]),
        case("", "score: ADDITIVE", "", steps, cont, (4, 2, 5), other_bottoms=[(4, 1, 4), np.ones((4, 1)), (2, 1, 5)]),
        case(
            "padding: LENGTHS",
            "scaled: true padding: LENGTHS",
            f"top: 'h' {shown}",
            steps,
            (4, 2, 5),
            np.array([3.0, 1.0]),
            np.array([0.0, 3.0]),
            other_bottoms=[(4, 1, 4), (2, 1, 5), np.array([2.0]), np.array([2.0])],
        ),
        case(
            "expose_hidden: true padding: MASK",
            "score: ADDITIVE padding: MASK",
            "top: 'h'" + " top: 'last'" * states + shown,
            steps,
            cont,
            (4, 2, 5),
            *exposed,
            np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
            seen,
            other_bottoms=[(4, 2, 4), np.ones((4, 2)), (4, 2, 5), *exposed, np.ones((4, 2)), seen],
        ),
    ]


# A step with two states, of different kinds, and a static input.
step_net = """step {
    input: 'x' static: 's' output: 'h_next'
    state { name: 'h' next: 'h_next' shape { dim: 3 } start: LEARNED }
    state { name: 'sum' next: 'sum_next' shape { dim: 2 } value: 0.5 last_top: true }
    layer { name: 'in' type: 'InnerProduct' bottom: 'x' top: 'in' inner_product_param { num_output: 3 } }
    layer { name: 'back' type: 'InnerProduct' bottom: 'h' top: 'back' inner_product_param { num_output: 3 } }
    layer { name: 'add' type: 'Eltwise' bottom: 'in' bottom: 'back' bottom: 's' top: 'a' }
    layer { name: 'h' type: 'TanH' bottom: 'a' top: 'h_next' }
    layer { name: 'out' type: 'InnerProduct' bottom: 'h_next' top: 'out' inner_product_param { num_output: 2 } }
    layer { name: 'sum' type: 'Eltwise' bottom: 'sum' bottom: 'out' top: 'sum_next' }
} """


def step_case(options: str, *bottoms: np.ndarray | tuple[int, ...], **more: object) -> LayerCase:
    """A case of a Recurrent layer with ``step_net``."""
    return layer(f"type: 'Recurrent' top: 'h' top: 'sum' recurrent_param {{ {step_net} {options} }}", *bottoms, **more)


# Labels of three streams, one without any, one that its steps cannot spell.
spelt = np.array([[2.0, 2.0, 1.0], [-1.0, -1.0, -1.0], [3.0, 3.0, 3.0]])


def ctc_cases(type: str) -> list[LayerCase]:
    """The cases of CTC loss under one of its names."""
    return [
        layer(f"type: '{type}'", (5, 3, 4), spelt, other_bottoms=[(4, 2, 4), spelt[:2]]),
        layer(
            f"type: '{type}' ctc_loss_param {{ blank_index: -1 }} loss_param {{ normalization: BATCH_SIZE }}",
            (5, 2, 4),
            np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 1.0]]),
            np.array([[1.0, 1.0], [3.0, 2.0], [-1.0, 0.0]]),
            other_bottoms=[(4, 2, 4), np.ones((4, 2)), np.array([[1.0, 1.0], [-1.0, 2.0]])],
        ),
        layer(
            f"type: '{type}'",
            (5, 2, 4),
            np.array([4.0, 5.0]),
            np.array([2.0, 1.0]),
            np.array([[1.0, 1.0], [3.0, 2.0]]),
            other_bottoms=[(6, 1, 4), np.array([6.0]), np.array([2.0]), np.array([[3.0], [3.0]])],
        ),
    ]


# What each prediction is worth, for every right class.
worth = rng.uniform(0.2, 1.0, size=(3, 3))

CASES: dict[str, list[LayerCase]] = {
    **attention_cases.CASES,
    **transformer_cases.CASES,
    "AbsVal": [layer("type: 'AbsVal'", (2, 3, 4))],
    "Accuracy": [
        layer("type: 'Accuracy'", (4, 3), labels, check_bottoms=()),
        layer(
            "type: 'Accuracy' top: 'a' top: 'per_class' accuracy_param { top_k: 2 ignore_label: 1 }",
            (4, 3),
            labels,
            check_bottoms=(),
        ),
    ],
    "ArgMax": [
        layer("type: 'ArgMax' argmax_param { top_k: 2 out_max_val: true }", (2, 3, 4), check_bottoms=()),
        layer("type: 'ArgMax' argmax_param { axis: -1 }", (2, 3, 4), check_bottoms=()),
    ],
    "AttentionGRU": attention_loop_cases("AttentionGRU", 1),
    "AttentionLSTM": attention_loop_cases("AttentionLSTM", 2),
    "BatchNorm": [
        layer("type: 'BatchNorm'", maps),
        layer("type: 'BatchNorm'", (6, 3)),
        layer("type: 'BatchNorm'", maps, phase=TEST, parameters=statistics),
        layer("type: 'BatchNorm' batch_norm_param { use_global_stats: true }", maps, parameters=statistics),
    ],
    "BatchReindex": [layer("type: 'BatchReindex'", (3, 2, 2), labels)],
    "Bias": [
        layer("type: 'Bias' bias_param { axis: 1 }", maps),
        layer("type: 'Bias' bias_param { axis: 0 num_axes: 2 }", (2, 3, 4), other_bottoms=[(2, 3, 5)]),
        layer("type: 'Bias' bias_param { axis: 1 }", maps, (4, 5), other_bottoms=[(3, 4, 5, 6), (4, 5)]),
    ],
    "BNLL": [layer("type: 'BNLL'", (2, 3, 4))],
    "Clip": [layer("type: 'Clip' clip_param { min: -0.5 max: 0.8 }", (2, 3, 4))],
    "Concat": [
        layer("type: 'Concat'", (2, 3, 4), (2, 1, 4), (2, 2, 4)),
        layer("type: 'Concat' concat_param { axis: 0 }", (2, 3), (1, 3)),
        layer("type: 'Concat'", (2, 3)),
    ],
    "ContinuationIndicator": [
        layer("type: 'ContinuationIndicator' continuation_indicator_param { time_step: 3 batch_size: 2 }"),
        layer("type: 'ContinuationIndicator'", (3, 2, 4)),
    ],
    "ContrastiveLoss": [
        # 1e-4 is added to the distance that the gradient divides by, as in Caffe
        layer(
            "type: 'ContrastiveLoss' contrastive_loss_param { margin: 3 }",
            (4, 3),
            (4, 3),
            np.array([0.0, 1.0, 0.0, 1.0]),
            tolerance=1e-3,
        ),
        layer(
            "type: 'ContrastiveLoss' contrastive_loss_param { margin: 9 legacy_version: true }",
            (4, 3),
            (4, 3),
            np.array([0.0, 1.0, 0.0, 1.0]),
        ),
    ],
    "Convolution": [
        convolution("num_output: 6 kernel_size: 3"),
        convolution("num_output: 6 kernel_size: 3 pad: 1 stride: 2 dilation: 2 group: 2"),
        convolution("num_output: 3 kernel_size: 1 bias_term: false"),
        convolution("num_output: 4 kernel_size: 3 pad: 1 group: 4"),
        convolution("num_output: 3 kernel_h: 2 kernel_w: 3 stride_h: 1 stride_w: 2 pad_h: 1 pad_w: 0"),
        convolution("num_output: 3 kernel_size: 2", (2, 4, 5), type="Convolution"),
        convolution("num_output: 2 kernel_size: [2, 1, 3] pad: [0, 1, 1]", (2, 2, 3, 2, 4)),
        layer("type: 'Convolution' convolution_param { num_output: 2 kernel_size: 3 }", maps, maps),
    ],
    "Crop": [
        layer("type: 'Crop' crop_param { axis: 2 offset: 1 offset: 0 }", (2, 3, 5, 4), (2, 1, 3, 4)),
        layer("type: 'Crop' crop_param { axis: -1 offset: 2 }", (2, 3, 5), (2, 3, 2)),
    ],
    "CTCGreedyDecoder": [
        layer("type: 'CTCGreedyDecoder' top: 'y' top: 's'", (5, 3, 4), other_bottoms=[(4, 2, 4)]),
        layer(
            "type: 'CTCGreedyDecoder' top: 'y' top: 's' top: 'a'",
            (5, 3, 4),
            np.ones((5, 3)),
            spelt.T,
            other_bottoms=[(4, 3, 4), np.ones((4, 3)), spelt.T],
        ),
    ],
    "CTCLoss": ctc_cases("CTCLoss"),
    "CtcLoss": ctc_cases("CtcLoss"),
    "Data": [
        layer("type: 'Data' top: 'x' top: 't' data_param { source: 'uint8_lmdb' backend: LMDB batch_size: 3 }"),
        layer(
            "type: 'Data' top: 'x' data_param { source: 'encoded_lmdb' backend: LMDB batch_size: 2 rand_skip: 3 }"
            " transform_param { crop_size: 4 mirror: true scale: 0.5 mean_value: 100 }"
        ),
    ],
    "Deconvolution": [
        convolution("num_output: 6 kernel_size: 3 stride: 2 pad: 1 group: 2", type="Deconvolution"),
        convolution("num_output: 3 kernel_size: 2 bias_term: false", type="Deconvolution"),
        convolution("num_output: 2 kernel_size: 3 stride: 2", (2, 3, 4), type="Deconvolution"),
    ],
    "Dropout": [
        layer("type: 'Dropout'", (3, 40)),
        layer("type: 'Dropout' dropout_param { dropout_ratio: 0.2 }", (3, 40)),
        layer("type: 'Dropout'", (3, 4), phase=TEST),
    ],
    "DummyData": [
        layer(
            "type: 'DummyData' top: 'x' top: 'y' dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 4 }"
            " data_filler { type: 'gaussian' std: 2 } data_filler { type: 'constant' value: 3 } }"
        ),
        layer("type: 'DummyData' top: 'x' dummy_data_param { num: 2 channels: 1 height: 3 width: 2 }"),
    ],
    "Eltwise": [
        layer("type: 'Eltwise'", (2, 3, 4), (2, 3, 4), (2, 3, 4)),
        layer("type: 'Eltwise' eltwise_param { operation: SUM coeff: 0.5 coeff: -2 }", (2, 3), (2, 3)),
        layer("type: 'Eltwise' eltwise_param { operation: PROD }", (2, 3), (2, 3), (2, 3)),
        layer(
            "type: 'Eltwise' eltwise_param { operation: PROD stable_prod_grad: false }",
            away_from_zero(2, 3),
            away_from_zero(2, 3),
        ),
        layer("type: 'Eltwise' eltwise_param { operation: MAX }", (2, 3, 4), (2, 3, 4), (2, 3, 4)),
    ],
    "ELU": [layer("type: 'ELU' elu_param { alpha: 0.7 }", (2, 3, 4))],
    "Embed": [
        layer("type: 'Embed' embed_param { num_output: 5 input_dim: 4 }", labels),
        layer("type: 'Embed' embed_param { num_output: 5 input_dim: 3 bias_term: false }", labels.reshape(2, 2)),
    ],
    "EuclideanLoss": [layer("type: 'EuclideanLoss'", (4, 3), (4, 3))],
    "Exp": [
        layer("type: 'Exp' exp_param { base: 2 scale: 3 shift: 1 }", (2, 3, 4)),
        layer("type: 'Exp'", (2, 3, 4)),
    ],
    "Filter": [
        layer("type: 'Filter' top: 'x' top: 'y'", (4, 2, 3), (4, 5), labels),
        layer("type: 'Filter'", (4, 2), np.zeros(4), skip=("check_nan_seen",)),
    ],
    "Flatten": [
        layer("type: 'Flatten'", maps),
        layer("type: 'Flatten' flatten_param { axis: 1 end_axis: -2 }", maps),
    ],
    "GELU": [
        layer("type: 'GELU'", (2, 3, 4)),
        layer("type: 'GELU' gelu_param { approximate: true }", (2, 3, 4)),
    ],
    "GRU": [*recurrent_cases("GRU", 1), recurrent("GRU", "reset_after: true", steps, cont)],
    "HDF5Data": [
        layer(
            "type: 'HDF5Data' top: 'data' top: 'label' hdf5_data_param { source: 'h5.txt' batch_size: 4 shuffle: true }"
        )
    ],
    "HDF5Output": [
        layer(
            "type: 'HDF5Output' hdf5_output_param { file_name: 'rows.h5' }",
            (4, 3),
            labels,
            skip=("check_reshape",),  # two layers at once would write one file
        )
    ],
    "HingeLoss": [
        layer("type: 'HingeLoss'", (4, 3), labels),
        layer("type: 'HingeLoss' hinge_loss_param { norm: L2 }", (4, 3), labels),
    ],
    "ImageData": [
        layer(
            "type: 'ImageData' top: 'x' top: 't'"
            " image_data_param { source: 'one_size.txt' batch_size: 2 shuffle: true }"
        ),
    ],
    "Im2col": [
        convolution("kernel_size: 3 stride: 2 pad: 1", type="Im2col"),
        convolution("kernel_size: 2 dilation: 2", type="Im2col"),
    ],
    "InfogainLoss": [
        layer("type: 'InfogainLoss'", (4, 3), labels, worth, other_bottoms=[(2, 3), labels[:2], worth]),
        layer(
            "type: 'InfogainLoss' top: 'loss' top: 'p' infogain_loss_param { axis: 2 } loss_param { ignore_label: 1 }",
            (2, 2, 3),
            labels.reshape(2, 2),
            worth,
            other_bottoms=[(1, 2, 3), labels[:2].reshape(1, 2), worth],
        ),
    ],
    "InnerProduct": [
        layer("type: 'InnerProduct' inner_product_param { num_output: 5 }", (3, 2, 4)),
        layer("type: 'InnerProduct' inner_product_param { num_output: 5 bias_term: false transpose: true }", (3, 8)),
        layer("type: 'InnerProduct' inner_product_param { num_output: 5 axis: 2 }", (3, 2, 4)),
    ],
    "Input": [layer("type: 'Input' input_param { shape { dim: 2 dim: 3 } }", skip=("check_repeatable",))],
    "LayerNorm": [
        layer("type: 'LayerNorm'", (3, 2, 4)),
        layer("type: 'LayerNorm' layer_norm_param { axis: 1 eps: 0.1 }", (2, 3, 4)),
        layer("type: 'LayerNorm' layer_norm_param { affine: false }", (3, 2, 4)),
    ],
    "Log": [
        layer("type: 'Log' log_param { base: 10 scale: 2 shift: 0.5 }", positive),
        layer("type: 'Log'", positive),
    ],
    "LRN": [
        layer("type: 'LRN' lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 k: 1.5 }", maps),
        layer("type: 'LRN' lrn_param { local_size: 5 alpha: 2 }", (2, 7, 3, 3)),
        layer("type: 'LRN' lrn_param { local_size: 3 alpha: 0.5 norm_region: WITHIN_CHANNEL }", maps),
    ],
    "LSTM": recurrent_cases("LSTM", 2),
    "Lstm": [
        layer("type: 'Lstm' lstm_param { num_output: 3 }", steps),
        layer(
            "type: 'Lstm' lstm_param { num_output: 3 batch_size: 2 clipping_threshold: 100 }",
            (6, 2, 2),
            cont.reshape(-1),
            other_bottoms=[(4, 2, 2), np.ones(4)],
        ),
    ],
    "LSTMUnit": [
        layer("type: 'LSTMUnit'", (1, 2, 3), (1, 2, 12), cont[:1], other_bottoms=[(1, 4, 3), (1, 4, 12), (1, 4)])
    ],
    "MemoryData": [
        layer(
            "type: 'MemoryData' top: 'x' top: 't' memory_data_param { batch_size: 2 channels: 3 height: 2 width: 1 }",
            prepare=lambda layer: layer.reset(np.arange(36.0).reshape(6, 3, 2, 1), np.arange(6.0)),
        )
    ],
    "MultinomialLogisticLoss": [layer("type: 'MultinomialLogisticLoss'", rng.uniform(0.2, 1, size=(4, 3)), labels)],
    "MVN": [
        layer("type: 'MVN'", maps),
        layer("type: 'MVN' mvn_param { across_channels: true eps: 0.1 }", maps),
        layer("type: 'MVN' mvn_param { normalize_variance: false }", (3, 4, 5)),
    ],
    "PairData": [
        layer(
            "type: 'PairData' top: 's' top: 'ns' top: 'i' top: 't' top: 'nt' pair_data_param {"
            " source: 'pairs.tsv' source_vocabulary: 'characters.json' batch_size: 2 sort_batches: 2 shuffle: true }"
        ),
    ],
    "Parameter": [layer("type: 'Parameter' parameter_param { shape { dim: 2 dim: 3 } }")],
    "Permute": [
        layer("type: 'Permute' permute_param { order: 0 order: 2 }", maps),
        layer("type: 'Permute'", (2, 3)),
    ],
    "Pooling": [
        pooling("pool: MAX kernel_size: 3 stride: 2"),
        pooling("pool: MAX kernel_size: 3 stride: 2 pad: 1", tops="top: 'y' top: 'mask'", check_tops=(0,)),
        pooling("pool: MAX kernel_size: 2 stride: 2 round_mode: FLOOR"),
        pooling("pool: MAX global_pooling: true"),
        pooling("pool: AVE kernel_size: 3 stride: 2 pad: 1"),
        pooling("pool: AVE kernel_h: 2 kernel_w: 3 stride: 1"),
        pooling("pool: AVE global_pooling: true"),
        pooling("pool: STOCHASTIC kernel_size: 3 stride: 2", positive),
        pooling("pool: STOCHASTIC kernel_size: 3 stride: 2", positive, phase=TEST),
    ],
    "Power": [
        layer("type: 'Power' power_param { power: 0.37 scale: 0.83 shift: 0.1 }", positive),
        layer("type: 'Power' power_param { power: 2 scale: 0.5 shift: 1.5 }", (2, 3, 4)),
        layer("type: 'Power' power_param { scale: -2 shift: 1 }", (2, 3, 4)),
        layer("type: 'Power' power_param { power: 0 }", (2, 3, 4), skip=("check_nan_seen",)),
    ],
    "PReLU": [
        layer("type: 'PReLU'", maps),
        layer("type: 'PReLU' prelu_param { channel_shared: true }", (4, 5)),
    ],
    "Python": [
        layer(
            "type: 'Python' top: 'y'"
            " python_param { module: 'tests.layers.python_layers' layer: 'Affine' param_str: '0.5' }",
            (4, 3),
            skip=("check_in_place",),
        )
    ],
    "Recurrent": [
        step_case("", steps, cont, (2, 3), other_bottoms=[(4, 3, 4), np.ones((4, 3)), (3, 3)]),
        step_case(
            "direction: REVERSE padding: LENGTHS",
            steps,
            cont,
            (2, 3),
            np.array([3.0, 2.0]),
            other_bottoms=[(4, 2, 4), np.ones((4, 2)), (2, 3), np.array([0.0, 4.0])],
        ),
        step_case("", steps, (2, 3), other_bottoms=[(1, 2, 4), (2, 3)]),
    ],
    "Reduction": [
        layer(f"type: 'Reduction' reduction_param {{ operation: {operation} axis: 1 coeff: 0.5 }}", (2, 3, 4))
        for operation in ("SUM", "ASUM", "SUMSQ", "MEAN")
    ],
    "ReLU": [
        layer("type: 'ReLU'", (2, 3, 4)),
        layer("type: 'ReLU' relu_param { negative_slope: 0.1 }", (2, 3, 4)),
    ],
    "Reshape": [
        layer("type: 'Reshape' reshape_param { shape { dim: 0 dim: -1 dim: 2 } }", (2, 3, 4)),
        layer("type: 'Reshape' reshape_param { shape { dim: 3 dim: -1 } axis: 1 }", (2, 3, 4)),
        layer("type: 'Reshape' reshape_param { shape { dim: 12 } axis: 1 num_axes: 2 }", (2, 3, 4)),
    ],
    "Reverse": [
        layer("type: 'Reverse'", (3, 2, 4)),
        layer("type: 'Reverse' reverse_param { axis: 1 axis: -1 }", (3, 2, 4)),
    ],
    "RMSNorm": [
        layer("type: 'RMSNorm'", (3, 2, 4)),
        layer("type: 'RMSNorm' layer_norm_param { axis: 1 eps: 0.1 }", (2, 3, 4)),
        layer("type: 'RMSNorm' layer_norm_param { affine: false }", (3, 2, 4)),
    ],
    "RNN": [
        *recurrent_cases("RNN", 1),
        recurrent("RNN", "output_hidden: true nonlinearity: SIGMOID", steps, cont),
        recurrent("RNN", "nonlinearity: RELU", steps, cont),
    ],
    "Scale": [
        layer("type: 'Scale'", maps),
        layer("type: 'Scale' scale_param { bias_term: true }", maps),
        layer("type: 'Scale' scale_param { axis: 0 num_axes: 2 }", (2, 3, 4), other_bottoms=[(2, 3, 5)]),
        layer("type: 'Scale' scale_param { axis: -1 bias_term: true }", (2, 3, 4)),
        layer("type: 'Scale' scale_param { axis: 1 }", maps, (4, 5), other_bottoms=[(3, 4, 5, 6), (4, 5)]),
    ],
    "SequenceData": [
        layer(
            "type: 'SequenceData' top: 'x' top: 'l' top: 'n'"
            " sequence_data_param { source: 'classes.tsv' batch_size: 2 shuffle: true }"
        ),
    ],
    "SeriesData": [
        layer(
            "type: 'SeriesData' top: 'x' top: 't'"
            " series_data_param { source: 'table.csv' target: 'wet' window: 3 batch_size: 2 statistics: 'table.json' }"
        ),
    ],
    "Sigmoid": [layer("type: 'Sigmoid'", (2, 3, 4))],
    "SigmoidCrossEntropyLoss": [
        layer("type: 'SigmoidCrossEntropyLoss'", (3, 4), rng.uniform(size=(3, 4))),
        layer(
            "type: 'SigmoidCrossEntropyLoss' loss_param { ignore_label: 2 normalization: VALID }",
            (4, 1),
            labels.reshape(4, 1),
        ),
    ],
    "Silence": [layer("type: 'Silence'", (2, 3), (4,))],
    "SiLU": [layer("type: 'SiLU'", (2, 3, 4))],
    "Slice": [
        layer("type: 'Slice' top: 'a' top: 'b' slice_param { axis: 1 }", (2, 4, 3)),
        layer("type: 'Slice' top: 'a' top: 'b' top: 'c' slice_param { slice_point: 1 slice_point: 3 }", (2, 4, 3)),
        layer("type: 'Slice' top: 'a'", (2, 4)),
    ],
    "Softmax": [
        layer("type: 'Softmax'", (2, 3, 4)),
        layer("type: 'Softmax' softmax_param { axis: -1 }", (2, 3, 4)),
    ],
    "SoftmaxWithLoss": [
        layer("type: 'SoftmaxWithLoss'", (4, 3), labels),
        layer("type: 'SoftmaxWithLoss' top: 'loss' top: 'p' loss_param { ignore_label: 1 }", (4, 3), labels),
        layer(
            "type: 'SoftmaxWithLoss' loss_param { normalization: BATCH_SIZE }",
            (2, 3, 2, 2),
            rng.integers(0, 3, size=(2, 2, 2)).astype(float),
        ),
        layer("type: 'SoftmaxWithLoss' loss_param { normalization: NONE }", (4, 3), labels),
        layer("type: 'SoftmaxWithLoss' softmax_param { axis: 2 }", (2, 2, 3), labels.reshape(2, 2)),
        layer("type: 'SoftmaxWithLoss' loss_param { label_smoothing: 0.25 ignore_label: 1 }", (4, 3), labels),
        layer(
            "type: 'SoftmaxWithLoss' loss_param { label_smoothing: 0.1 }",
            (2, 3, 2),
            np.array([[0.0, 1.0], [2.0, 2.0]]),
        ),
    ],
    "Split": [layer("type: 'Split' top: 'a' top: 'b' top: 'c'", (2, 3)), layer("type: 'Split' top: 'a'", (2, 3))],
    "SPP": [
        layer("type: 'SPP' spp_param { pyramid_height: 3 pool: MAX }", (2, 3, 7, 9)),
        layer("type: 'SPP' spp_param { pyramid_height: 2 pool: AVE }", (2, 3, 5, 5)),
        layer("type: 'SPP' spp_param { pyramid_height: 1 }", (2, 3, 5, 5)),
    ],
    "Swish": [layer("type: 'Swish' swish_param { beta: 1.5 }", (2, 3, 4))],
    "TanH": [layer("type: 'TanH'", (2, 3, 4))],
    "TextData": [
        layer(
            "type: 'TextData' top: 'x' top: 'cont' top: 't'"
            " text_data_param { source: 'text.txt' vocabulary: 'characters.json' steps: 4 streams: 2 }"
        ),
        layer(
            "type: 'TextData' top: 'x' top: 'cont' top: 't' text_data_param {"
            " source: 'text.txt' source: 'pairs.tsv' documents: true shuffle: true steps: 4 streams: 2 }"
        ),
    ],
    "Threshold": [layer("type: 'Threshold' threshold_param { threshold: 0.3 }", (2, 3, 4))],
    "Tile": [
        layer("type: 'Tile' tile_param { tiles: 3 }", (2, 3, 4)),
        layer("type: 'Tile' tile_param { axis: 0 tiles: 2 }", (2, 3)),
    ],
    "Transpose": [layer("type: 'Transpose' transpose_param { dim: 2 dim: 0 dim: -2 }", (2, 3, 4))],
    "WarpCTC": ctc_cases("WarpCTC"),
    "WarpCTCLoss": ctc_cases("WarpCTCLoss"),
}
