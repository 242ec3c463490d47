"""What users do wrong, one case a kind: each ends in one message that names the place, and leaves no file behind."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import recaffe
from recaffe.proto import Datum, array_to_blob, write_binary

from tests.command_line import Result, run_cli, run_process

NET = """name: "tiny"
layer {
  name: "data" type: "DummyData" top: "x" top: "label"
  dummy_data_param {
    shape { dim: 4 dim: 3 } shape { dim: 4 }
    data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 }
  }
}
layer {
  name: "ip" type: "InnerProduct" bottom: "x" top: "y"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } }
}
layer { name: "relu" type: "ReLU" bottom: "y" top: "y" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "label" top: "loss" }
"""

SOLVER = """net: "net.prototxt"
base_lr: 0.1
lr_policy: "fixed"
max_iter: 2
snapshot: 2
snapshot_prefix: "snap"
test_iter: 1
test_interval: 2
random_seed: 1
solver_mode: CPU
"""

NOISE = bytes(range(255, 0, -1))
TRAIN = "train --solver solver.prototxt"
TEST = "test --model net.prototxt --weights good_iter_2.caffemodel --iterations 1"


@dataclass
class Case:
    """A mistake: in the net (``net``: text to replace, replacement), the solver, other files, or the flags."""

    name: str
    expected: tuple[str, ...]
    command: str = TRAIN
    net: tuple[str, str] | None = None
    solver: tuple[str, str] | None = None
    files: dict[str, str | bytes] = field(default_factory=dict)
    prepare: Callable[[Path], None] | None = None
    status: int = 1


def net_case(name: str, old: str, new: str, *expected: str, **others) -> Case:
    """A mistake in the net: ``old`` replaced by ``new``."""
    return Case(name, expected, net=(old, new), **others)


def solver_case(name: str, old: str, new: str, *expected: str, **others) -> Case:
    """A mistake in the solver: ``old`` replaced by ``new``."""
    return Case(name, expected, solver=(old, new), **others)


def layer_case(name: str, layer: str, *expected: str, **others) -> Case:
    """A net with one more layer (on line 14), before the loss."""
    return net_case(name, 'layer { name: "loss"', layer + '\nlayer { name: "loss"', *expected, **others)


def data_case(name: str, layer: str, *expected: str, **others) -> Case:
    """A net whose data (x: 4 x 3 and label: 4) come from another layer."""
    start, stop = NET.index("layer {"), NET.index('layer {\n  name: "ip"')
    return net_case(name, NET[start:stop], layer + "\n", *expected, **others)


def file_case(name: str, command: str, content: str | bytes, *expected: str, **others) -> Case:
    """A file called ``bad`` with this content, given on the command line."""
    return Case(name, expected, command=command, files={"bad": content}, **others)


def cut(path: str, share: float) -> Callable[[Path], None]:
    """Cut the file short."""

    def prepare(folder: Path) -> None:
        content = (folder / path).read_bytes()
        (folder / path).write_bytes(content[: int(len(content) * share)])

    return prepare


def both(*steps: Callable[[Path], None]) -> Callable[[Path], None]:
    """One preparation after another."""

    def prepare(folder: Path) -> None:
        for step in steps:
            step(folder)

    return prepare


def changed(path: str, share: float) -> Callable[[Path], None]:
    """Change one byte of the file."""

    def prepare(folder: Path) -> None:
        content = bytearray((folder / path).read_bytes())
        content[int(len(content) * share)] ^= 1
        (folder / path).write_bytes(content)

    return prepare


def datasets(**shapes: tuple[int, ...]) -> Callable[[Path], None]:
    """Write the file ``a.h5`` and a list of it."""

    def prepare(folder: Path) -> None:
        with pytest.importorskip("h5py").File(folder / "a.h5", "w") as file:
            for name, shape in shapes.items():
                file.create_dataset(name, data=np.ones(shape, np.float32))
        (folder / "list").write_text("a.h5\n")

    return prepare


def hdf5_weights(folder: Path) -> None:
    """Write the file ``w.caffemodel.h5``."""
    pytest.importorskip("h5py")
    recaffe.Net(str(folder / "net.prototxt"), recaffe.TEST).save(folder / "w.caffemodel.h5")


# fmt: off
USAGE = [
    Case("no such command", ("'tarin'", "did you mean 'train'?"), "tarin --solver solver.prototxt", status=2),
    Case("no such flag", ("--slover", "--solver"), "train --slover solver.prototxt", status=2),
    Case("no solver", ("--solver",), "train", status=2),
    Case("an empty solver flag", ("--solver",), "train --solver=", status=2),
    Case("an empty model flag", ("--model",), "time --model=", status=2),
    Case("no value", ("--solver",), "train --solver", status=2),
    Case("an argument too many", ("solver.prototxt",), "train solver.prototxt --solver solver.prototxt", status=2),
    Case("gpu in words", ("--gpu", "'first'", "all"), f"{TRAIN} --gpu first", status=2),
    Case("gpu and cpu", ("--gpu", "--cpu"), f"{TRAIN} --gpu 0 --cpu", status=2),
    Case("several gpus", ("2 GPUs (0, 1)", "--gpu 0"), f"{TRAIN} --gpu 0,1"),
    Case("iterations in words", ("--iterations", "'many'"), f"{TEST} --iterations many", status=2),
    Case("no iterations", ("--iterations", "0"), f"{TEST} --iterations 0", status=2),
    Case("unknown phase", ("--phase", "'train'", "'test'"), "time --model net.prototxt --phase EVAL", status=2),
    Case("unknown effect of a signal", ("--sigint-effect", "snapshot"), f"{TRAIN} --sigint_effect halt", status=2),
    Case("level in words", ("--level", "'high'"), f"{TRAIN} --level high", status=2),
    Case("test without weights", ("--weights",), "test --model net.prototxt", status=2),
    Case(
        "snapshot and weights",
        ("--snapshot", "--weights"),
        f"{TRAIN} --snapshot good_iter_2.solverstate --weights good_iter_2.caffemodel",
        status=2,
    ),
    Case("minloglevel in words", ("--minloglevel", "'none'"), f"{TRAIN} --minloglevel none", status=2),
    Case("upgrade without target", ("OUT",), "upgrade_net_proto_text net.prototxt", status=2),
]

IMPORTS = [
    Case("import of a missing module", ("--import my_leyers", "no module 'my_leyers'"), f"{TRAIN} --import my_leyers"),
    Case("import of a missing file", ("--import", "no file lib/mine.py"), f"{TRAIN} --import lib/mine.py"),
    Case(
        "import that does not parse",
        ("--import broken_1.py", "broken_1.py:2", "SyntaxError"),
        f"{TRAIN} --import broken_1.py",
        files={"broken_1.py": "x = 1\nclass Mine(:\n"},
    ),
    Case(
        "import that fails",
        ("--import broken_2", "broken_2.py:2", "ZeroDivisionError"),
        f"{TRAIN} --import broken_2",
        files={"broken_2.py": "x = 1\ny = x / 0\n"},
    ),
    Case(
        "import of a type that exists",
        ("--import broken_3", "'ReLU'", "twice"),
        f"{TRAIN} --import broken_3",
        files={
            "broken_3.py": "import recaffe\n\n@recaffe.register\nclass Mine(recaffe.Layer):\n    type = 'ReLU'\n"
        },
    ),
]

FILES = [
    Case("no such solver", ("nowhere.prototxt", "no such file"), "train --solver nowhere.prototxt"),
    Case("a folder as solver", ("folder", "this is a folder"), "train --solver folder"),
    Case("a file as folder", ("net.prototxt/solver.prototxt",), "train --solver net.prototxt/solver.prototxt"),
    Case("a name too long", ("cannot be read",), f"train --solver {'s' * 300}"),
    file_case("an empty solver", "train --solver bad", "", "bad", "empty"),
    file_case("a binary solver", "train --solver bad", b"\x08\x00\x01\x02", "bad", "binary"),
    file_case("a dangling link", "train --solver bad", "", "bad", "no such file", prepare=lambda folder: (
        (folder / "bad").unlink(), (folder / "bad").symlink_to("gone"))),
    Case("a net as solver", ("net.prototxt:1:1", '"name"'), "train --solver net.prototxt"),
    Case("a solver as net", ("solver.prototxt:1:1", '"net"'), "time --model solver.prototxt"),
    Case("weights as net", ("good_iter_2.caffemodel", "binary"), "time --model good_iter_2.caffemodel"),
    solver_case("no such net", '"net.prototxt"', '"gone.prototxt"', "gone.prototxt", "no such file"),
    solver_case("a folder as net", '"net.prototxt"', '"folder"', "folder", "this is a folder"),
    Case("upgrade of a missing net", ("gone", "no such file"), "upgrade_net_proto_text gone out"),
    Case("upgrade into a missing folder", ("gone/out", "written"), "upgrade_net_proto_text net.prototxt gone/out"),
    Case("upgrade into a folder", ("folder", "cannot be written"), "upgrade_net_proto_text net.prototxt folder"),
    Case("log-dir is a file", ("--log-dir", "net.prototxt"), f"{TRAIN} --log-dir net.prototxt"),
]

TEXT = [
    net_case("a misspelt field", "num_output", "num_outptu", "net.prototxt:11:", '"num_outptu"', '"num_output"'),
    net_case("a misspelt block", "inner_product_param", "inner_product_parm", "prototxt:11:", "inner_product_param"),
    net_case("a word for a number", "num_output: 2", 'num_output: "two"', "net.prototxt:11:", "an integer", '"two"'),
    net_case("a negative num_output", "num_output: 2", "num_output: -2", "net.prototxt:11:", "-2"),
    net_case("a field given twice", "num_output: 2", "num_output: 2 num_output: 3", "net.prototxt:11:", '"num_output"'),
    net_case("a string that does not end", '"tiny"', '"tiny', "net.prototxt:1:"),
    net_case("a brace that is missing", "value: 1 }\n  }\n}", "value: 1 }\n  }\n", "net.prototxt:"),
    net_case("a brace too many", "value: 1 }\n  }\n}", "value: 1 }\n  }\n}}", "net.prototxt:8:"),
    layer_case(
        "an unknown word of an enum",
        'layer { name: "p" type: "Pooling" bottom: "y" top: "p" pooling_param { pool: MAXX kernel_size: 2 } }',
        "net.prototxt:14:", "MAXX", "MAX",
    ),
    layer_case("layer and layers", 'layers { name: "r" type: RELU bottom: "y" top: "y" }', "net.prototxt", "layers"),
    solver_case("a misspelt field of the solver", "base_lr", "base_rl", "solver.prototxt:2:", '"base_rl"', '"base_lr"'),
    solver_case("a word for the rate", "base_lr: 0.1", "base_lr: high", "solver.prototxt:2:", "high"),
]

BUILDING = [
    net_case("an unknown type", '"InnerProduct"', '"InnerProdukt"', "net.prototxt:9", "'ip'", "'InnerProduct'"),
    net_case("too few bottoms", 'bottom: "label" top: "loss"', 'top: "loss"', "'loss'", "bottom", "got 1"),
    net_case("too many bottoms", 'bottom: "y" top', 'bottom: "y" bottom: "x" top', "'relu'", "bottom", "got 2"),
    net_case("too many tops", 'bottom: "x" top: "y"', 'bottom: "x" top: "y" top: "z"', "'ip'", "top", "got 2"),
    net_case("labels of another shape", "shape { dim: 4 }\n", "shape { dim: 5 }\n", "'loss'", "label", "5"),
    net_case("an unknown bottom", 'bottom: "label" top', 'bottom: "lable" top', "'loss'", "'lable'", "'label'"),
    layer_case(
        "a blob made twice",
        'layer { name: "again" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 2 } }',
        "net.prototxt:14", "'again'", "'y'", "'ip'",
    ),
    layer_case(
        "in place where it cannot be",
        'layer { name: "again" type: "InnerProduct" bottom: "y" top: "y" inner_product_param { num_output: 2 } }',
        "net.prototxt:14", "'again'", "'y'", "in place",
    ),
    layer_case(
        "in place on the other bottom",
        'layer { name: "sum" type: "Eltwise" bottom: "x" bottom: "y" top: "y" }',
        "net.prototxt:14", "'sum'", "'y'",
    ),
    layer_case(
        "in place on what another layer reads",
        'layer { name: "ip2" type: "InnerProduct" bottom: "y" top: "y2" inner_product_param { num_output: 2 } }\n'
        'layer { name: "relu2" type: "ReLU" bottom: "x" top: "y" }',
        "net.prototxt:15", "'relu2'", "'y'",
    ),
    layer_case(
        "a layer's name given twice",
        'layer { name: "ip" type: "ReLU" bottom: "y" top: "y" }',
        "net.prototxt:14", "'ip'", "same name",
    ),
    layer_case(
        "include and exclude",
        'layer { name: "r" type: "ReLU" bottom: "y" top: "y" include { phase: TRAIN } exclude { phase: TEST } }',
        "net.prototxt:14", "'r'", "include", "exclude",
    ),
    net_case(
        "propagate_down for another count", 'top: "y"\n', 'top: "y" propagate_down: [true, true]\n', "'ip'", "propagate"
    ),
    net_case("loss_weight for another count", '"loss" }', '"loss" loss_weight: [1, 1] }', "'loss'", "loss_weight"),
    net_case("too many param blocks", 'top: "y"\n', 'top: "y" param {} param {} param {}\n', "'ip'", "3 param blocks"),
    layer_case(
        "a shared parameter of another shape",
        'layer { name: "a" type: "InnerProduct" bottom: "x" top: "a" param { name: "w" }'
        " inner_product_param { num_output: 2 } }\n"
        'layer { name: "b" type: "InnerProduct" bottom: "x" top: "b" param { name: "w" }'
        " inner_product_param { num_output: 3 } }",
        "net.prototxt:15", "'b'", "'w'", "'a'", "(2, 3)", "(3, 3)",
    ),
    layer_case(
        "a shared parameter with another rate",
        'layer { name: "a" type: "InnerProduct" bottom: "x" top: "a" param { name: "w" lr_mult: 1 }'
        " inner_product_param { num_output: 2 } }\n"
        'layer { name: "b" type: "InnerProduct" bottom: "x" top: "b" param { name: "w" lr_mult: 2 }'
        " inner_product_param { num_output: 2 } }",
        "net.prototxt:15", "'b'", "'w'", "lr_mult",
    ),
    net_case("an unknown filler", '"xavier"', '"xaviar"', "'ip'", "'xaviar'", "'xavier'"),
    net_case("a filler for other shapes", '"xavier"', '"bilinear"', "'ip'", "bilinear"),
    net_case("no num_output", "num_output: 2 ", "", "'ip'", "num_output"),
    net_case("an axis that is not there", "num_output: 2", "num_output: 2 axis: 2", "'ip'", "axis 2"),
    net_case("a negative size", "dim: 4 dim: 3", "dim: 4 dim: -3", "'data'", "-3"),
    net_case("a blob of 2^31 values", "dim: 4 dim: 3", "dim: 65536 dim: 32768", "2,147,483,648", "'x'"),
    layer_case(
        "sizes that do not add up",
        'layer { name: "r" type: "Reshape" bottom: "y" top: "r" reshape_param { shape { dim: 3 dim: -1 } } }',
        "net.prototxt:14", "'r'", "(4, 2)", "[3, -1]",
    ),
    layer_case(
        "a sum of different shapes",
        'layer { name: "sum" type: "Eltwise" bottom: "x" bottom: "y" top: "sum" }',
        "net.prototxt:14", "'sum'", "(4, 3)", "(4, 2)",
    ),
    layer_case(
        "a join of different shapes",
        'layer { name: "join" type: "Concat" bottom: "x" bottom: "y" top: "join" concat_param { axis: 0 } }',
        "net.prototxt:14", "'join'", "(4, 2)", "(4, 3)",
    ),
    layer_case(
        "a slice beyond the end",
        'layer { name: "cut" type: "Slice" bottom: "x" top: "a" top: "b" slice_param { axis: 1 slice_point: 5 } }',
        "net.prototxt:14", "'cut'", "5",
    ),
    layer_case(
        "a window larger than its image",
        'layer { name: "i" type: "Input" top: "i" input_param { shape { dim: 1 dim: 1 dim: 4 dim: 4 } } }\n'
        'layer { name: "c" type: "Convolution" bottom: "i" top: "c"'
        " convolution_param { num_output: 1 kernel_size: 7 } }",
        "net.prototxt:15", "'c'", "7",
    ),
    layer_case(
        "groups that do not divide",
        'layer { name: "i" type: "Input" top: "i" input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } }\n'
        'layer { name: "c" type: "Convolution" bottom: "i" top: "c"'
        " convolution_param { num_output: 4 kernel_size: 3 group: 2 } }",
        "net.prototxt:15", "'c'", "group", "3",
    ),
    layer_case(
        "too much dropout",
        'layer { name: "d" type: "Dropout" bottom: "y" top: "d" dropout_param { dropout_ratio: 1.5 } }',
        "net.prototxt:14", "'d'", "dropout_ratio", "1.5",
    ),
    layer_case(
        "a Python layer without module",
        'layer { name: "p" type: "Python" bottom: "y" top: "p" python_param { module: "no_such_one" layer: "P" } }',
        "net.prototxt:14", "'p'", "no_such_one",
    ),
    layer_case(
        "an option block like a known one",
        'layer { name: "r" type: "ReLU" bottom: "y" top: "y" my_param { a: 1 } }',
        "net.prototxt:14", "'r'", "my_param",
    ),
]

SOLVING = [
    solver_case("an unknown policy", '"fixed"', '"fixt"', "lr_policy", "'fixt'", "'fixed'"),
    solver_case("no policy", 'lr_policy: "fixed"', "", "lr_policy", "missing"),
    solver_case("a policy without its fields", '"fixed"', '"step"', "lr_policy 'step'", "gamma"),
    solver_case("an unknown solver", "solver_mode", 'type: "Adma" solver_mode', "'Adma'", "'Adam'"),
    solver_case("type in both forms", "solver_mode", 'type: "SGD" solver_type: SGD solver_mode', "solver_type"),
    solver_case("no rate", "base_lr: 0.1", "", "base_lr", "missing"),
    solver_case("no max_iter", "max_iter: 2", "", "max_iter"),
    solver_case("no net", 'net: "net.prototxt"', "", "net"),
    solver_case("two nets", "base_lr", 'train_net: "net.prototxt" base_lr', "net", "train_net"),
    solver_case("test_iter without a test", "test_interval: 2", "", "test_interval"),
    solver_case("test_iter for another count", "base_lr", 'test_net: ["a", "b"] base_lr', "test_iter", "2"),
    solver_case("no iterations in a test", "test_iter: 1", "test_iter: 0", "test_iter", "0"),
    solver_case("iter_size of nothing", "base_lr", "iter_size: 0 base_lr", "iter_size", "0"),
    solver_case("average_loss of nothing", "base_lr", "average_loss: 0 base_lr", "average_loss", "0"),
    solver_case("momentum", "solver_mode", 'type: "AdaGrad" momentum: 0.9 solver_mode', "momentum", "'AdaGrad'"),
    solver_case("unknown regularization", "solver_mode", 'regularization_type: "L3" solver_mode', "L3", "L2"),
    solver_case("snapshots into a missing folder", '"snap"', '"gone/snap"', "gone/snap", "folder"),
    solver_case("snapshots into a file", '"snap"', '"net.prototxt/snap"', "net.prototxt/snap", "folder"),
    solver_case("no GPU", "solver_mode: CPU", "solver_mode: GPU", "GPU", "CuPy", "solver_mode: CPU"),
    net_case("a label out of range", "value: 1 }", "value: 7 }", "'loss'", "label", "7"),
    net_case("a label below zero", "value: 1 }", "value: -1 }", "'loss'", "label", "-1"),
    net_case("a loss of NaN", '{ type: "gaussian" }', '{ type: "constant" value: nan }', "'x'", "nan"),
]

WEIGHTS = [
    Case("no such weights", ("gone.caffemodel", "no such file"), f"{TRAIN} --weights gone.caffemodel"),
    file_case("empty weights", f"{TRAIN} --weights bad", b"", "bad", "empty"),
    file_case("noise as weights", f"{TRAIN} --weights bad", NOISE, "bad", "corrupt"),
    Case("text as weights", ("net.prototxt", "text"), f"{TRAIN} --weights net.prototxt"),
    Case("a folder as weights", ("folder", "this is a folder"), f"{TRAIN} --weights folder"),
    Case("a state as weights", ("good_iter_2.solverstate", "--snapshot"), f"{TRAIN} --weights good_iter_2.solverstate"),
    Case("weights as a state", ("good_iter_2.caffemodel", "--weights"), f"{TRAIN} --snapshot good_iter_2.caffemodel"),
    Case(
        "weights cut short",
        ("good_iter_2.caffemodel", "corrupt or cut short"),
        f"{TRAIN} --weights good_iter_2.caffemodel",
        prepare=cut("good_iter_2.caffemodel", 0.6),
    ),
    Case(
        "a state cut short",
        ("good_iter_2.solverstate", "corrupt or cut short"),
        f"{TRAIN} --snapshot good_iter_2.solverstate",
        prepare=cut("good_iter_2.solverstate", 0.6),
    ),
    Case(
        "a state with one bit changed",
        ("good_iter_2.solverstate", "corrupt or cut short"),
        f"{TRAIN} --snapshot good_iter_2.solverstate",
        prepare=changed("good_iter_2.solverstate", 0.3),
    ),
    Case(
        "a state with other weights than its own",
        ("good_iter_2.solverstate", "good_iter_2.caffemodel", "damaged"),
        f"{TRAIN} --snapshot good_iter_2.solverstate",
        prepare=changed("good_iter_2.caffemodel", 0.5),
    ),
    Case(
        "HDF5 weights cut short",
        ("w.caffemodel.h5", "corrupt or cut short"),
        f"{TRAIN} --weights w.caffemodel.h5",
        prepare=both(hdf5_weights, cut("w.caffemodel.h5", 0.6)),
    ),
    Case(
        "HDF5 weights as a state",
        ("w.caffemodel.h5", "--weights"),
        f"{TRAIN} --snapshot w.caffemodel.h5",
        prepare=hdf5_weights,
    ),
    Case(
        "an HDF5 file of something else as weights",
        ("a.h5", "no weights"),
        f"{TRAIN} --weights a.h5",
        prepare=datasets(x=(2, 3)),
    ),
    Case(
        "a state without its weights",
        ("good_iter_2.solverstate", "good_iter_2.caffemodel"),
        f"{TRAIN} --snapshot good_iter_2.solverstate",
        prepare=lambda folder: (folder / "good_iter_2.caffemodel").unlink(),
    ),
    Case("a folder as a state", ("folder", "this is a folder"), f"{TRAIN} --snapshot folder"),
    Case("text as a state", ("net.prototxt", "text"), f"{TRAIN} --snapshot net.prototxt"),
    Case("no such state", ("gone.solverstate", "no such file"), f"{TRAIN} --snapshot gone.solverstate"),
    file_case("noise as a state", f"{TRAIN} --snapshot bad", NOISE, "bad", "corrupt"),
    solver_case(
        "a state of another solver type", "solver_mode", 'type: "Adam" solver_mode',
        "good_iter_2.solverstate", "Adam",
        command=f"{TRAIN} --snapshot good_iter_2.solverstate",
    ),
    net_case("weights that fill nothing", '"ip"', '"fc"', "good_iter_2.caffemodel", "ip", "fc", command=TEST),
    net_case("weights of another shape", "num_output: 2", "num_output: 5", "'ip'", "2 x 3", "5 x 3", command=TEST),
    net_case(
        "weights of another count", "num_output: 2", "num_output: 2 bias_term: false",
        "good_iter_2.caffemodel", "'ip'", "2", "1", command=TEST,
    ),
]
# fmt: on

LMDB = (
    'layer { name: "data" type: "Data" top: "x" top: "label" data_param { source: "db" batch_size: 2 backend: LMDB } }'
)
HDF5 = 'layer { name: "data" type: "HDF5Data" top: "x" top: "label" hdf5_data_param { source: "list" batch_size: 2 } }'
STREAMS = """layer { name: "data" type: "TextData" top: "x" top: "cont" top: "label"
  text_data_param { source: "text" vocabulary: "v.json" } }"""
PAIRS = """layer { name: "data" type: "PairData" top: "x" top: "n" top: "i" top: "label" top: "m"
  pair_data_param { source: "pairs" source_vocabulary: "v.json" } }"""
SEQUENCES = """layer { name: "data" type: "SequenceData" top: "x" top: "label"
  sequence_data_param { source: "lines" } }"""
SERIES = """layer { name: "data" type: "SeriesData" top: "x" top: "label"
  series_data_param { source: "table" window: 1 } }"""
CHARACTERS = '{"unit": "CHAR", "tokens": ["<pad>", "<s>", "</s>", "a", "b", "\\n"]}'
IMAGES = (
    'layer { name: "data" type: "ImageData" top: "x" top: "label" image_data_param { source: "list" batch_size: 2 } }'
)
CROP = LMDB[:-1] + " transform_param { crop_size: 9 } }"
MEAN = LMDB[:-1] + ' transform_param { mean_file: "mean" } }'


def datum(channels: int = 1, height: int = 3, width: int = 3, **fields) -> bytes:
    """A record of a database of images."""
    fields = {"data": bytes(channels * height * width), "label": 1} | fields
    return Datum(channels=channels, height=height, width=width, **fields).SerializeToString()


def database(*records: bytes) -> Callable[[Path], None]:
    """Write the LMDB ``db``."""

    def prepare(folder: Path) -> None:
        lmdb = pytest.importorskip("lmdb")
        with lmdb.open(str(folder / "db"), map_size=1 << 20) as env, env.begin(write=True) as transaction:
            for key, record in enumerate(records):
                transaction.put(f"{key:08d}".encode(), record)
        (folder / "db" / "lock.mdb").unlink()

    return prepare


def small_mean(folder: Path) -> None:
    """Write the file ``mean`` for images of 2 x 2."""
    write_binary(folder / "mean", array_to_blob(np.ones((1, 1, 2, 2), np.float32)))


def images(*sizes: tuple[int, int]) -> Callable[[Path], None]:
    """Write the files ``0.png``, ``1.png`` ... and a list of them."""

    def prepare(folder: Path) -> None:
        pillow = pytest.importorskip("PIL.Image")
        for number, size in enumerate(sizes):
            pillow.new("L", size).save(folder / f"{number}.png")
        (folder / "list").write_text("".join(f"{number}.png 1\n" for number in range(len(sizes))))

    return prepare


# fmt: off
SOURCES = [
    data_case("no such database", LMDB, "net.prototxt:2", "'data'", "db", "no such"),
    data_case("a database that is a file", LMDB, "'data'", "db", files={"db": "x"}),
    data_case("an empty folder as database", LMDB, "'data'", "db", prepare=lambda folder: (folder / "db").mkdir()),
    data_case("an empty database", LMDB, "'data'", "db", "empty", prepare=database()),
    data_case("noise as database", LMDB, "'data'", "db", prepare=lambda folder: (
        (folder / "db").mkdir(), (folder / "db" / "data.mdb").write_bytes(NOISE * 64))),
    data_case("a database cut short", LMDB, "'data'", "db", prepare=both(database(datum()), cut("db/data.mdb", 0.4))),
    data_case("noise as record", LMDB, "'data'", "db", "Datum", prepare=database(b"\xff\x07\x01\x99")),
    data_case("a record of too few values", LMDB, "'data'", "db", "9", prepare=database(datum(data=b"123"))),
    data_case("records of two sizes", LMDB, "'data'", "db", prepare=database(datum(), datum(height=4))),
    data_case("a noisy encoded image", LMDB, "'data'", "db", "image",
              prepare=database(datum(encoded=True, data=b"\x89PNG and more"))),
    data_case("no batch_size", LMDB.replace("batch_size: 2", ""), "'data'", "batch_size", prepare=database(datum())),
    data_case("a crop larger than the image", CROP, "'data'", "9 x 9", "3 x 3", prepare=database(datum())),
    data_case("no such mean", MEAN, "'data'", "mean", "no such file", prepare=database(datum())),
    data_case("noise as mean", MEAN, "'data'", "mean", "corrupt", prepare=database(datum()), files={"mean": NOISE}),
    data_case("a mean of another shape", MEAN, "'data'", "mean", "(1, 2, 2)", "(1, 3, 3)",
              prepare=both(database(datum()), small_mean)),
    data_case("no such list of HDF5 files", HDF5, "'data'", "list", "No such file"),
    data_case("an empty list of HDF5 files", HDF5, "'data'", "list", files={"list": "\n"}),
    data_case("no such HDF5 file", HDF5, "'data'", "gone.h5", files={"list": "gone.h5\n"}),
    data_case("text as HDF5 file", HDF5, "'data'", "net.prototxt", files={"list": "net.prototxt\n"}),
    data_case("an HDF5 file cut short", HDF5, "'data'", "a.h5",
              prepare=both(datasets(x=(2, 3), label=(2,)), cut("a.h5", 0.5))),
    data_case("no such dataset", HDF5, "'data'", "a.h5", "'label'", prepare=datasets(x=(2, 3))),
    data_case("datasets of two lengths", HDF5, "'data'", "a.h5", "'label'", "2", "4",
              prepare=datasets(x=(2, 3), label=(4,))),
    data_case("no such list of images", IMAGES, "'data'", "list", "No such file"),
    data_case("an image without label", IMAGES, "'data'", "list:1", files={"list": "a.png\n"}),
    data_case("a label in words", IMAGES, "'data'", "list:1", "cat", files={"list": "a.png cat\n"}),
    data_case("no such image", IMAGES, "'data'", "gone.png", files={"list": "gone.png 1\n"}),
    data_case("text as image", IMAGES, "'data'", "net.prototxt", files={"list": "net.prototxt 1\n"}),
    data_case("an image cut short", IMAGES, "'data'", "0.png", prepare=both(images((9, 9)), cut("0.png", 0.6))),
    data_case("images of two sizes", IMAGES, "'data'", "list:2", prepare=images((3, 3), (4, 4))),
    data_case("no such text", STREAMS, "net.prototxt:2", "'data'", "text", "no such file"),
    data_case("an empty text", STREAMS, "'data'", "0 tokens", "too few", files={"text": "", "v.json": CHARACTERS}),
    data_case("a character outside the vocabulary", STREAMS, "'data'", "text:2", "'c'",
              files={"text": "ab\nac\n", "v.json": CHARACTERS}),
    data_case("a broken vocabulary", STREAMS, "'data'", "v.json", "JSON", files={"text": "ab\n", "v.json": "["}),
    data_case("an odd pair line", PAIRS, "'data'", "pairs:2", "one tab",
              files={"pairs": "a\tb\nab\n", "v.json": CHARACTERS}),
    data_case("a sequence with two labels", SEQUENCES, "'data'", "lines:1", "2 label", files={"lines": "ab\t1 2\n"}),
    data_case("a word in a table", SERIES, "'data'", "table:2", "warm", files={"table": "1,2\n3,warm\n"}),
]
# fmt: on


@pytest.fixture(scope="session")
def good(tmp_path_factory) -> Path:
    """A folder with a net, its solver, and a snapshot of both."""
    folder = tmp_path_factory.mktemp("good")
    (folder / "net.prototxt").write_text(NET)
    (folder / "solver.prototxt").write_text(SOLVER.replace("snap", "good").replace("good" + "shot", "snapshot"))
    result = run_cli(TRAIN.split(), folder)
    assert result.status == 0, result.err
    (folder / "solver.prototxt").write_text(SOLVER)
    (folder / "folder").mkdir()
    return folder


@pytest.fixture
def folder(good, tmp_path) -> Path:
    """A copy of the good folder, to be spoilt."""
    return Path(shutil.copytree(good, tmp_path / "work"))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def spoil(case: Case, folder: Path) -> None:
    for name, replaced in (("net.prototxt", case.net), ("solver.prototxt", case.solver)):
        if replaced:
            text = (folder / name).read_text()
            assert replaced[0] in text
            (folder / name).write_text(text.replace(*replaced, 1))
    for name, content in case.files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    if case.prepare:
        case.prepare(folder)


def check(result: Result, case: Case) -> None:
    assert result.status == case.status, result.err
    assert "Traceback" not in result.err
    messages = [line for line in result.err.splitlines() if "rror: " in line]
    assert len(messages) == 1, result.err
    for fragment in case.expected:
        assert fragment in messages[0], result.err


CASES = [*USAGE, *IMPORTS, *FILES, *TEXT, *BUILDING, *SOLVING, *WEIGHTS, *SOURCES]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_mistake_gets_one_message_and_leaves_no_file(case, folder, monkeypatch):
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    spoil(case, folder)
    before = contents(folder)
    check(run_cli(case.command.split(), folder), case)
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["no such command", "no such solver", "a misspelt field", "a loss of NaN"])
def test_a_mistake_in_a_process_of_its_own(name, folder):
    (case,) = (case for case in CASES if case.name == name)
    spoil(case, folder)
    before = contents(folder)
    check(run_process(case.command.split(), folder), case)
    assert contents(folder) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
@pytest.mark.parametrize(
    ("path", "mode", "expected"),
    [("solver.prototxt", 0, "solver.prototxt"), ("net.prototxt", 0, "net.prototxt"), (".", 0o500, "cannot be written")],
)
def test_what_may_not_be_read_or_written(path, mode, expected, folder):
    before = contents(folder)
    (folder / path).chmod(mode)
    result = run_cli(TRAIN.split(), folder)
    (folder / path).chmod(0o700)
    check(result, Case(path, (expected,)))
    assert contents(folder) == before
