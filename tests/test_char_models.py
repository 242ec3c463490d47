"""The language models of characters: their data are prepared, they learn, and they write."""

import math
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import recaffe
from recaffe.layers.data.vocabulary import Vocabulary
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
    return bits_of(["train", f"--solver={path.relative_to(folder)}"], folder)


def bits_on_test_text(folder: Path, model: str, iterations: int) -> float:
    """The bits per character that the model's snapshot takes on test.txt."""
    weights = f"--weights=models/{model}/{model}_iter_{iterations}.caffemodel"
    arguments = ["test", f"--model=models/{model}/train_val.prototxt", weights, "--stage=test", "--iterations=73"]
    return bits_of(arguments, folder)


def bits_of(arguments: list[str], folder: Path) -> float:
    """Run the command; gives the last bits per character that it logs."""
    result = run_cli(arguments, folder)
    assert result.status == 0, result.err
    return float(re.findall(r"bits_per_character = ([\d.]+)", result.err)[-1])


def test_no_file_is_in_two_of_the_texts(folder):
    scope = runpy.run_path(str(folder / "models" / "char_lstm" / "prepare.py"))
    files = [file for name in ("TRAIN", "VALID", "TEST") for file in scope[name].split()]
    assert len(set(files)) == len(files) > 200
    for name in ("train.txt", "valid.txt", "test.txt"):
        assert (folder / "models" / "char_lstm" / name).stat().st_size > 250_000


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("stages", "text"), [([], "valid.txt"), (["test"], "test.txt")])
def test_the_stage_test_reads_the_test_text(model, stages, text, folder, monkeypatch):
    monkeypatch.chdir(folder)
    net = recaffe.Net(f"models/{model}/train_val.prototxt", recaffe.TEST, stages=stages)
    net.forward(end="text")
    vocabulary = Vocabulary.load("models/char_lstm/vocabulary.json")
    expected = Path("models/char_lstm", text).read_bytes()[:128].decode()
    assert vocabulary.decode(net.blobs["data"].data[:, 0].astype(int)) == expected


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


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_whole_training_reaches_what_the_readme_says(model, folder):
    readme = (ROOT / "models" / model / "README.md").read_text()
    said = float(re.search(r"\*\*([\d.]+) bits per character\*\*", readme)[1])
    train(folder, model)
    assert bits_on_test_text(folder, model, 3000) < 1.05 * said  # another Python has other files
