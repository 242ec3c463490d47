"""The language models of characters: their data are prepared, they learn, and they write."""

import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import recaffe
from recaffe.proto import read_solver, write_text

from tests.command_line import run_cli

ROOT = Path(__file__).parent.parent
MODELS = ("char_rnn", "char_gru", "char_lstm")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the three models, and the text that they learn."""
    folder = tmp_path_factory.mktemp("char")
    for model in MODELS:
        (folder / "models" / model).mkdir(parents=True)
        for path in (ROOT / "models" / model).iterdir():
            if path.suffix in (".py", ".prototxt"):
                shutil.copy(path, folder / "models" / model)
    command = [sys.executable, str(folder / "models" / "char_lstm" / "prepare.py")]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def train(folder: Path, model: str, iterations: int | None = None) -> float:
    """Train the model, for fewer iterations than its solver says; gives the bits per character at the end."""
    path = folder / "models" / model / "solver.prototxt"
    if iterations is not None:
        solver = read_solver(path)
        solver.max_iter = solver.snapshot = solver.test_interval = iterations
        solver.test_iter[0] = 5
        path = folder / "models" / model / "short.prototxt"
        write_text(path, solver)
    result = run_cli(["train", f"--solver={path.relative_to(folder)}"], folder)
    assert result.status == 0, result.err
    return float(re.findall(r"bits_per_character = ([\d.]+)", result.err)[-1])


@pytest.mark.parametrize("model", MODELS)
def test_a_short_training_learns_and_writes(model, folder):
    before = math.log2(100)
    assert train(folder, model, 80) < 0.7 * before
    net = recaffe.Net(folder / "models" / model / "deploy.prototxt", recaffe.TEST)
    report = net.copy_from(folder / "models" / model / f"{model}_iter_80.caffemodel")
    assert not report.missing
    arguments = ["generate", f"--model=models/{model}/deploy.prototxt", "--length=50", "--prompt=def ", "--seed=1"]
    weights = f"--weights=models/{model}/{model}_iter_80.caffemodel"
    vocabulary = "--vocabulary=models/char_lstm/vocabulary.json"
    result = run_cli([*arguments, weights, vocabulary], folder)
    assert (result.status, result.out[:4], len(result.out)) == (0, "def ", 55)


@pytest.mark.parametrize("model", MODELS)
def test_the_first_updates_are_those_of_pytorch(model, folder, monkeypatch):
    pytest.importorskip("torch")
    from benchmarks.char_models import TorchTraining

    monkeypatch.chdir(folder)
    solver, twin = (recaffe.get_solver(f"models/{model}/solver.prototxt") for _ in range(2))
    training = TorchTraining(twin)
    for _ in range(4):
        expected = training.step()
        solver.step(1)
        assert float(solver.net.blobs["loss"].data) == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "most"), [("char_rnn", 2.0), ("char_gru", 1.7), ("char_lstm", 1.75)])
def test_the_whole_training_reaches_what_the_readme_says(model, most, folder):
    assert train(folder, model) < most
