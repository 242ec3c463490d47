"""python_tokens and dates: their data, the nets for use beside those that are trained, and what they learn."""

import importlib.util
import re
import shutil
from contextlib import chdir
from datetime import date
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import recaffe
from recaffe.framework.translation import Translator
from recaffe.proto import read_solver, write_text

from tests.command_line import run_cli

ROOT = Path(__file__).parent.parent


def load_script(path: Path) -> ModuleType:
    """The Python file as a module."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prepared_copy(model: str, tmp_path_factory) -> Path:
    """A folder that holds models/MODEL with its data."""
    folder = tmp_path_factory.mktemp(model)
    shutil.copytree(
        ROOT / "models" / model,
        folder / "models" / model,
        ignore=lambda _, names: [name for name in names if Path(name).suffix not in (".py", ".prototxt")],
    )
    load_script(folder / "models" / model / "prepare.py").main()
    return folder


@pytest.fixture(scope="module")
def tokens_folder(tmp_path_factory):
    pytest.importorskip("h5py")
    return prepared_copy("python_tokens", tmp_path_factory)


@pytest.fixture(scope="module")
def dates_folder(tmp_path_factory):
    return prepared_copy("dates", tmp_path_factory)


def train(folder: Path, solver: str, iterations: int | None = None, base_lr: float | None = None) -> float:
    """Train as the solver file says, or for fewer iterations; gives the last accuracy."""
    path = next((folder / "models").glob(f"*/{solver}.prototxt"))
    if iterations is not None:
        param = read_solver(path)
        param.max_iter = param.snapshot = param.test_interval = iterations
        param.test_iter[0] = 4
        param.base_lr = base_lr or param.base_lr
        path = path.with_name("short.prototxt")
        write_text(path, param)
    result = run_cli(["train", f"--solver={path.relative_to(folder)}"], folder)
    assert result.status == 0, result.err
    return float(re.findall(r"accuracy = ([\d.]+)", result.err)[-1])


# python_tokens: data

SOURCE = '''\
if x_1 >= 0x1F:\t# not "b"
    s = r"a # b" \\
        f'{s}' ; None1 = \u00e9
"""if
  1"""
match(not x)
\f
'''
EXPECTED = """\
kk_nnn_OO_NNNNO_CCCCCCCCC_
____n_O_SSSSSSSS___
________FFFFFF_O_nnnnn_O_n_
SSSSSS
SSSSSS_
nnnnnOkkk_nO_
__
"""


def test_each_character_has_the_class_of_its_token():
    prepare = load_script(ROOT / "models" / "python_tokens" / "prepare.py")
    names = {"_": "SPACE", "k": "KEYWORD", "n": "NAME", "N": "NUMBER", "S": "STRING", "C": "COMMENT", "O": "OP"}
    found = [prepare.CLASSES[number] for number in prepare.character_classes(SOURCE)]
    expected = EXPECTED.replace("\n", "")
    assert len(found) == len(expected)
    for place, (name, letter) in enumerate(zip(found, expected, strict=True)):
        if letter != "F":  # an f-string: one token up to Python 3.11, several from 3.12 on
            assert name == names[letter], (place, SOURCE[place])


def test_pieces_are_whole_lines_where_they_can_be():
    prepare = load_script(ROOT / "models" / "python_tokens" / "prepare.py")
    L = prepare.LENGTH
    text = "a" * (L - 1) + "\n" + "b\n" + "c" * (L - 1) + "\n" + "d" * (2 * L) + "\n" + "e"
    cut = [text[piece] for piece in prepare.pieces(text)]
    assert cut == ["a" * (L - 1) + "\n", "b\n", "c" * (L - 1) + "\n", "d" * L, "d" * L, "\ne"]


def test_no_file_of_the_held_out_ones_is_learnt():
    prepare = load_script(ROOT / "models" / "python_tokens" / "prepare.py")
    train, valid = prepare.TRAIN.split(), prepare.VALID.split()
    assert len({*train, *valid}) == len(train) + len(valid)


# python_tokens: the nets


def test_a_short_training_of_python_tokens_learns(tokens_folder):
    assert train(tokens_folder, "solver", 40, base_lr=0.02) > 0.6
    model = tokens_folder / "models" / "python_tokens"
    weights = model / "python_tokens_iter_40.caffemodel"
    with chdir(tokens_folder):
        net = recaffe.Net(model / "train_val.prototxt", recaffe.TEST, weights=weights)
    net.forward()
    lengths = net.blobs["lengths"].data.astype(int)
    assert lengths.min() < lengths.max()
    deploy = recaffe.Net(model / "deploy.prototxt", recaffe.TEST, weights=weights)
    for n in (int(lengths.argmin()), int(lengths.argmax())):
        data, scores = (net.blobs[name].data[: lengths[n], n : n + 1] for name in ("data", "scores"))
        deploy.blobs["data"].reshape(*data.shape)
        prob = deploy.forward(data=data)["prob"]
        expected = np.exp(scores.astype(float))
        np.testing.assert_allclose(prob, expected / expected.sum(axis=2, keepdims=True), atol=2e-5)
    net.close()


@pytest.mark.slow
def test_python_tokens_needs_both_directions(tokens_folder):
    both = train(tokens_folder, "solver")
    assert both >= 0.985
    assert train(tokens_folder, "one_direction_solver") < both - 0.005


# dates


def test_a_day_is_written_as_its_forms_say():
    prepare = load_script(ROOT / "models" / "dates" / "prepare.py")
    assert {form: prepare.written(date(1994, 3, 3), form) for form in prepare.FORMS} == dict(
        re.findall(r'^ +"(\{.+?|the .+?)", +# (.+)$', (ROOT / "models" / "dates" / "prepare.py").read_text(), re.M)
    )
    ordinals = {1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 30: "30th"}
    assert {number: prepare.ordinal(number) for number in ordinals} == ordinals


def test_the_days_of_the_test_set_are_not_learnt(dates_folder):
    days = {
        name: [line.split("\t")[1] for line in (dates_folder / "models" / "dates" / name).read_text().splitlines()]
        for name in ("train.tsv", "test.tsv")
    }
    assert (len(days["train.tsv"]), len(days["test.tsv"])) == (60_000, 2_000)
    assert not {*days["train.tsv"]} & {*days["test.tsv"]}
    assert all(date.fromisoformat(day).isoformat() == day for day in days["test.tsv"])


def translate(translator: Translator, texts: list[str]) -> list[str]:
    """What is written when each step takes the best character."""
    found = translator.translate([translator.source.encode(text) for text in texts], translator.search(beam=1))
    return [best.text for (best,) in found]


def test_a_short_training_of_dates_learns_and_translates(dates_folder):
    assert train(dates_folder, "solver", 150) > 0.4
    model = dates_folder / "models" / "dates"
    weights = model / "dates_iter_150.caffemodel"
    translator = load_script(model / "exact_match.py").translator(model / "deploy.prototxt", weights)
    with chdir(dates_folder):
        net = recaffe.Net(model / "train_val.prototxt", recaffe.TEST, weights=weights)
    net.forward(end="pairs")
    lines = (model / "test.tsv").read_text().splitlines()[: net.blobs["source"].shape[1]]
    sources = [line.split("\t")[0] for line in lines]
    decoded = translate(translator, sources)
    assert [translate(translator, [source])[0] for source in sources[:5]] == decoded[:5]

    # the trained net, which reads what was decoded as its target, gives each character the best score
    targets = [translator.target.encode(text[:10]) for text in decoded]
    for n, target in enumerate(targets):
        net.blobs["target_input"].data[1 : len(target) + 1, n] = target
    net.forward(start="embed_source")
    best = net.blobs["scores"].data.argmax(axis=2)
    for n, target in enumerate(targets):
        np.testing.assert_array_equal(best[: len(target), n], target)
    net.close()


@pytest.mark.slow
def test_dates_are_right_in_every_character(dates_folder):
    train(dates_folder, "solver")
    model = dates_folder / "models" / "dates"
    script = load_script(model / "exact_match.py")
    translator = script.translator(model / "deploy.prototxt", model / script.NET[1].name)
    assert script.exact_match(translator, model / "test.tsv") >= 0.95
    texts = ["3rd of March, 1994", "03/03/94", "March 3 1994", "the 31st of december 1999"]
    assert translate(translator, texts) == ["1994-03-03", "1994-03-03", "1994-03-03", "1999-12-31"]
