"""The models build with Caffe's blob shapes and numbers of parameters, and digits_lenet learns."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import recaffe
from recaffe.proto import read_net, read_solver

from benchmarks.nets import training_net

ROOT = Path(__file__).parent.parent
MODELS = sorted(path.parent.name for path in (ROOT / "models").glob("*/README.md"))
SOLVERS = sorted(str(path.relative_to(ROOT / "models")) for path in (ROOT / "models").glob("*/*solver.prototxt"))

PARAMETERS = {
    "lenet": 431_080,
    "cifar10_quick": 145_578,
    "caffenet": 60_965_224,
    "googlenet": 6_998_552,
    "resnet50": 25_557_032,
}
SHAPES = {
    "lenet": {"conv1": (64, 20, 24, 24), "pool2": (64, 50, 4, 4), "prob": (64, 10)},
    "cifar10_quick": {"pool1": (1, 32, 16, 16), "pool3": (1, 64, 4, 4), "prob": (1, 10)},
    "caffenet": {"conv1": (10, 96, 55, 55), "pool5": (10, 256, 6, 6), "prob": (10, 1000)},
    "googlenet": {"inception_3b": (10, 480, 28, 28), "pool5": (10, 1024, 1, 1), "prob": (10, 1000)},
    "resnet50": {"pool1": (1, 64, 56, 56), "block4f": (1, 1024, 14, 14), "prob": (1, 1000)},
}


def learnt_count(net: recaffe.Net) -> int:
    """Parameters without the statistics that BatchNorm keeps as blobs."""
    return sum(
        blob.count for name, blobs in net.params.items() if net.layer_dict[name].type != "BatchNorm" for blob in blobs
    )


@pytest.mark.parametrize("model", sorted(PARAMETERS))
def test_deploy_nets_have_the_published_sizes(model):
    net = recaffe.Net(ROOT / "models" / model / "deploy.prototxt", recaffe.TEST)
    assert learnt_count(net) == PARAMETERS[model]
    for blob, shape in SHAPES[model].items():
        assert net.blobs[blob].shape == shape, blob


@pytest.mark.parametrize("model", sorted(PARAMETERS))
def test_training_nets_build_and_feed_the_deploy_nets(model):
    train = recaffe.Net(training_net(model), recaffe.TRAIN)
    deploy = recaffe.Net(ROOT / "models" / model / "deploy.prototxt", recaffe.TEST)
    for name, blobs in deploy.params.items():
        assert [blob.shape for blob in blobs] == [blob.shape for blob in train.params[name]], name


@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_a_net_for_use_and_a_solver(model):
    assert read_net(ROOT / "models" / model / "deploy.prototxt").name == model
    assert any(path.startswith(f"{model}/") for path in SOLVERS)


@pytest.mark.parametrize("path", SOLVERS)
def test_solvers_name_files_that_exist(path):
    solver, (model, name) = read_solver(ROOT / "models" / path), path.removesuffix("solver.prototxt").split("/")
    assert (ROOT / solver.net).exists()
    assert read_net(ROOT / solver.net).name == model
    assert solver.snapshot_prefix == f"models/{model}/{name.removesuffix('_') or model}"


@pytest.mark.parametrize("model", ["googlenet", "resnet50"])
def test_generated_prototxts_are_what_generate_writes(model, tmp_path):
    folder = ROOT / "models" / model
    (tmp_path / "generate.py").write_text((folder / "generate.py").read_text())
    subprocess.run([sys.executable, str(tmp_path / "generate.py")], check=True)
    for name in ("train_val.prototxt", "deploy.prototxt"):
        assert (tmp_path / name).read_text() == (folder / name).read_text(), f"run: python models/{model}/generate.py"


def test_digits_lenet_reaches_98_percent(tmp_path):
    pytest.importorskip("sklearn")
    pytest.importorskip("lmdb")
    model = tmp_path / "models" / "digits_lenet"
    model.mkdir(parents=True)
    for path in (ROOT / "models" / "digits_lenet").iterdir():
        if path.suffix in (".py", ".prototxt"):
            (model / path.name).write_text(path.read_text())
    subprocess.run([sys.executable, str(model / "prepare.py")], check=True)
    command = [sys.executable, "-m", "recaffe", "train", "--solver=models/digits_lenet/solver.prototxt"]
    log = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stderr
    assert "Optimization Done." in log
    accuracies = [float(line.split("= ")[1]) for line in log.splitlines() if "accuracy = " in line]
    assert accuracies[-1] >= 0.98
    net = recaffe.Net(model / "deploy.prototxt", model / "digits_lenet_iter_900.caffemodel", recaffe.TEST)
    from sklearn.datasets import load_digits

    digits = load_digits()
    net.blobs["data"].reshape(len(digits.images), 1, 8, 8)
    net.blobs["data"].data[...] = digits.images[:, None] / 16
    assert np.mean(net.forward()["prob"].argmax(axis=1) == digits.target) >= 0.98
