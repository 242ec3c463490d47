"""The models from a sequence to a vector and back: their data are prepared, they learn, and they are used."""

import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import recaffe
from recaffe.proto import read_solver, write_text

from tests.command_line import run_cli

h5py = pytest.importorskip("h5py")

ROOT = Path(__file__).parent.parent


def prepare(folder: Path, model: str, *arguments: str) -> Path:
    """Copy the model to ``folder`` and make its data; gives its folder there."""
    target = folder / "models" / model
    target.mkdir(parents=True)
    for path in (ROOT / "models" / model).iterdir():
        if path.suffix in (".py", ".prototxt"):
            shutil.copy(path, target)
    subprocess.run([sys.executable, str(target / "prepare.py"), *arguments], check=True, capture_output=True)
    return target


def train(model: Path, solver: str = "solver.prototxt") -> dict[str, float]:
    """Train; gives the scores of the last test by name."""
    folder = model.parent.parent
    result = run_cli(["train", f"--solver=models/{model.name}/{solver}"], folder)
    assert result.status == 0, result.err
    return {name: float(value) for name, value in re.findall(r"Test net output #\d+: (\w+) = ([\d.e-]+)", result.err)}


def test_digits_rows_reads_96_percent_of_the_digits(tmp_path):
    pytest.importorskip("sklearn")
    model = prepare(tmp_path, "digits_rows")
    accuracy = train(model)["accuracy"]
    assert accuracy >= 0.96
    net = recaffe.Net(model / "deploy.prototxt", model / "digits_rows_iter_1200.caffemodel", recaffe.TEST)
    with h5py.File(model / "test.h5") as file:
        images, labels = file["data"][()], file["label"][()]
    net.blobs["data"].reshape(8, len(images), 8)
    digits = net.forward(data=images.transpose(1, 0, 2))["prob"].argmax(axis=1)
    assert np.mean(digits == labels) == pytest.approx(accuracy, abs=1e-6)


def test_spell_digit_spells_95_percent_of_the_digits(tmp_path):
    pytest.importorskip("sklearn")
    model = prepare(tmp_path, "spell_digit")
    assert train(model)["letter_accuracy"] >= 0.98
    command = [sys.executable, str(model / "spell.py"), str(model / "spell_digit_iter_1200.caffemodel")]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert float(re.findall(r"spelled exactly: ([\d.]+) of 360", output)[0]) >= 0.95


def test_series_forecast_is_near_what_can_be_known(tmp_path):
    model = prepare(tmp_path, "series_forecast")
    scores = train(model)
    assert scores["squared_error_as_today"] == pytest.approx(0.4838, abs=1e-3)
    assert scores["squared_error"] < 0.055  # the new noise of the days alone has 0.041
    net = recaffe.Net(model / "deploy.prototxt", model / "series_forecast_iter_1500.caffemodel", recaffe.TEST)
    statistics = json.loads((model / "statistics.json").read_text())["value"]
    values = np.loadtxt(model / "test.csv", skiprows=1)
    windows = np.lib.stride_tricks.sliding_window_view((values - statistics["mean"]) / statistics["std"], 29)
    net.blobs["data"].reshape(28, len(windows), 1)
    forecast = net.forward(data=windows.T[:28, :, None])["forecast"][:, 0]
    assert np.mean((forecast - windows[:, 28]) ** 2) == pytest.approx(scores["squared_error"], rel=1e-3)


def test_the_labels_of_the_adding_problem_are_the_sums(tmp_path):
    model = prepare(tmp_path, "adding_problem", "12")
    with h5py.File(model / "test.h5") as file:
        data, label = file["data"][()], file["label"][()]
    assert data.shape == (1000, 12, 2)
    np.testing.assert_array_equal(data[:, :6, 1].sum(axis=1), 1)
    np.testing.assert_array_equal(data[:, 6:, 1].sum(axis=1), 1)
    np.testing.assert_allclose(label, (data[:, :, 0] * data[:, :, 1]).sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize("cell", ["rnn", "relu_rnn", "lstm", "gru"])
def test_every_cell_learns_to_add_over_a_few_steps(cell, tmp_path):
    model = prepare(tmp_path, "adding_problem", "10")
    solver = read_solver(model / f"{cell}_solver.prototxt")
    solver.max_iter = solver.snapshot = solver.test_interval = 1500
    write_text(model / "short.prototxt", solver)
    error = train(model, "short.prototxt")["squared_error"]
    assert error < 0.03
    weights = model / f"{cell}_iter_1500.caffemodel"
    net = recaffe.Net(model / "deploy.prototxt", recaffe.TEST, stages=[cell], weights=weights)
    with h5py.File(model / "test.h5") as file:
        data, label = file["data"][()], file["label"][()]
    net.blobs["data"].reshape(10, len(data), 2)
    sums = net.forward(data=data.transpose(1, 0, 2))["sum"][:, 0]
    assert np.mean((sums - label) ** 2) == pytest.approx(error, rel=1e-3)


@pytest.fixture(scope="module")
def adding_problem(tmp_path_factory):
    """The adding problem over 200 steps, with the scores of the four trained nets."""
    model = prepare(tmp_path_factory.mktemp("adding"), "adding_problem", "200")
    cells = ("rnn", "relu_rnn", "lstm", "gru")
    return model, {cell: train(model, f"{cell}_solver.prototxt")["squared_error"] for cell in cells}


@pytest.mark.slow
def test_gates_learn_to_add_over_200_steps_and_the_plain_net_does_not(adding_problem):
    _, scores = adding_problem
    assert scores["lstm"] < 0.01
    assert scores["gru"] < 0.01
    assert scores["relu_rnn"] < 0.08
    assert scores["rnn"] > 0.15


@pytest.mark.slow
def test_the_gradient_vanishes_in_the_plain_net_alone(adding_problem, monkeypatch):
    pytest.importorskip("matplotlib")
    model, _ = adding_problem
    monkeypatch.chdir(model.parent.parent)
    plot = runpy.run_path(str(model / "plot.py"))
    norms = {cell: plot["gradient_norms"](cell, model / f"{cell}_iter_2500.caffemodel") for cell in plot["NETS"]}
    assert norms["rnn"][0] < 1e-12 * norms["rnn"][-1]
    for cell in ("relu_rnn", "lstm", "gru"):
        assert norms[cell][0] > 1e-2 * norms[cell][-1], cell
