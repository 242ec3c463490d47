"""Snapshots: resumed runs give the bits of uninterrupted ones, whatever kills them; Caffe's own are read."""

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import lmdb
import numpy as np
import pytest
import recaffe
from recaffe.framework.backend import current_backend
from recaffe.framework.saved_state import pack, unpack
from recaffe.framework.snapshot import latest_snapshot, read_snapshot
from recaffe.proto import Datum, SolverParameter, SolverState, parse_net, parse_text, read_binary, write_binary

from tests import shuffled_training
from tests.shuffled_training import TYPES, result, solver_param
from tests.support import GOLDEN

PROGRAM = Path(shuffled_training.__file__)
FORMATS = {"BINARYPROTO": "", "HDF5": ".h5"}


class Losses(recaffe.framework.solver.Observer):
    """Keeps every loss and every test score."""

    def __init__(self):
        self.seen = []

    def on_iteration(self, iteration, loss, lr):
        self.seen.append((iteration, loss, lr))

    def on_test(self, iteration, net_index, scores):
        self.seen.append((iteration, net_index, float(scores["loss"])))


def observed(param):
    solver = recaffe.get_solver(param)
    losses = Losses()
    solver.add_observer(losses)
    return solver, losses.seen


@pytest.mark.parametrize("snapshot_format", FORMATS)
@pytest.mark.parametrize("solver_type", TYPES)
def test_resume_is_exact(tmp_path, solver_type, snapshot_format):
    param = solver_param(solver_type, tmp_path / "run", snapshot_format)
    whole, whole_losses = observed(param)
    whole.step(20)

    first, first_losses = observed(param)
    first.step(7)
    state = first.snapshot()
    assert state == tmp_path / f"run_iter_7.solverstate{FORMATS[snapshot_format]}"
    first.step(2)  # goes on, and must leave no trace

    param.random_seed = 99
    second, second_losses = observed(param)
    second.restore(state)
    assert second.iter == 7
    second.step(13)
    assert first_losses[: len(whole_losses) - len(second_losses)] + second_losses == whole_losses
    np.testing.assert_array_equal(result(second), result(whole))
    assert second.smoothed_loss == whole.smoothed_loss


def run_killed(folder, *arguments, delay=None):
    """Run the training program; kill it ``delay`` seconds after it is ready.  Gives its exit status."""
    environment = {**os.environ, "RECAFFE_PLAIN": "1", "RECAFFE_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), str(folder), *arguments], stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout.readline() == b"ready\n"
    if delay is not None:
        time.sleep(delay)
        process.kill()
    process.stdout.close()
    return process.wait()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    assert run_killed(folder) == 0
    return np.load(folder / "result.npy")


def test_killed_before_each_step_of_writing(tmp_path, uninterrupted):
    """A snapshot takes six steps (fsync, rename, fsync of the folder, twice); each is a run's last one in turn."""
    for number in range(1, 8):
        assert run_killed(tmp_path, str(number)) == -signal.SIGKILL
    assert run_killed(tmp_path) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "result.npy"), uninterrupted)
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_at_random_moments(tmp_path, uninterrupted, kills):
    random = np.random.default_rng(kills)
    killed = 0
    for _ in range(kills):
        killed += run_killed(tmp_path, delay=random.uniform(0, 0.02)) == -signal.SIGKILL
        newest = latest_snapshot(str(tmp_path / "run"))
        assert newest is None or read_snapshot(newest).iter % 3 == 0
    assert killed > kills // 4
    assert run_killed(tmp_path) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "result.npy"), uninterrupted)


@pytest.mark.parametrize("ending", FORMATS.values())
def test_goes_on_from_what_caffe_wrote(ending, caplog):
    solver = recaffe.get_solver(GOLDEN / "snapshots" / "adam.prototxt")
    golden = np.load(GOLDEN / "snapshots" / "adam.npz")
    with caplog.at_level(logging.WARNING, "recaffe"):
        solver.restore(GOLDEN / "snapshots" / f"adam_iter_5.solverstate{ending}")
    assert "was not written by recaffe" in caplog.text
    assert solver.iter == 5
    for iteration in range(5, 12):
        for name in ("a", "t"):
            solver.net.blobs[name].data[...] = golden[f"data:{name}"][iteration]
        solver.step(1)
    for layer, blobs in solver.net.params.items():
        for i, blob in enumerate(blobs):
            np.testing.assert_allclose(blob.data, golden[f"after:{layer}:{i}"], rtol=1e-5, atol=1e-6)


def test_binary_state_is_caffes_and_more(tmp_path):
    solver = recaffe.get_solver(solver_param("Adam", tmp_path / "run"))
    solver.step(6)
    message = read_binary(tmp_path / "run_iter_6.solverstate", SolverState)
    assert (message.iter, message.current_step) == (6, 1)
    assert message.learned_net == str(tmp_path / "run_iter_6.caffemodel")
    shapes = [tuple(blob.shape.dim) for blob in message.history]
    assert shapes == 2 * [blob.shape for blob in solver.net.learnable_params]
    np.testing.assert_array_equal(message.history[0].data, solver.history[0][0])
    np.testing.assert_array_equal(message.history[5].data, solver.history[1][1])


def test_hdf5_state_is_caffes_and_more(tmp_path):
    solver = recaffe.get_solver(solver_param("AdaDelta", tmp_path / "run", "HDF5"))
    solver.step(6)
    with h5py.File(tmp_path / "run_iter_6.solverstate.h5") as file:
        assert (file["iter"][0], file["current_step"][0]) == (6, 1)
        assert file["learned_net"][()] == str(tmp_path / "run_iter_6.caffemodel.h5").encode()
        assert sorted(file["history"], key=int) == [str(i) for i in range(8)]
        np.testing.assert_array_equal(file["history/4"][()].ravel(), solver.history[0][1])


def test_snapshot_diff(tmp_path):
    param = solver_param("SGD", tmp_path / "run", "HDF5")
    param.snapshot_diff = True
    recaffe.get_solver(param).step(3)
    with h5py.File(tmp_path / "run_iter_3.caffemodel.h5") as file:
        assert np.abs(file["diff/ip2/0"][()]).max() > 0


def test_a_moved_pair_is_found(tmp_path):
    solver = recaffe.get_solver(solver_param("SGD", tmp_path / "run"))
    solver.step(3)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for path in tmp_path.glob("run_iter_3.*"):
        path.rename(moved / path.name)
    other = recaffe.get_solver(solver_param("SGD", tmp_path / "run"))
    other.restore(moved / "run_iter_3.solverstate")
    np.testing.assert_array_equal(result(other), result(solver))


def test_latest_snapshot_is_the_newest_whole_pair(tmp_path):
    prefix = tmp_path / "run"
    assert latest_snapshot(str(prefix)) is None
    recaffe.get_solver(solver_param("SGD", prefix)).step(12)
    assert latest_snapshot(str(prefix)) == tmp_path / "run_iter_12.solverstate"
    state = tmp_path / "run_iter_12.solverstate"
    state.write_bytes(state.read_bytes()[:-10])
    assert latest_snapshot(str(prefix)) == tmp_path / "run_iter_9.solverstate"
    (tmp_path / "run_iter_9.caffemodel").write_bytes((tmp_path / "run_iter_6.caffemodel").read_bytes())
    assert latest_snapshot(str(prefix)) == tmp_path / "run_iter_6.solverstate"
    (tmp_path / "run_iter_6.caffemodel").unlink()
    assert latest_snapshot(str(prefix)) == tmp_path / "run_iter_3.solverstate"


def test_weights_of_another_moment_are_refused(tmp_path):
    solver = recaffe.get_solver(solver_param("SGD", tmp_path / "run"))
    solver.step(6)
    (tmp_path / "run_iter_3.caffemodel").replace(tmp_path / "run_iter_6.caffemodel")
    with pytest.raises(recaffe.RecaffeError, match=r"not the weights that .*run_iter_6.solverstate was written with"):
        solver.restore(tmp_path / "run_iter_6.solverstate")


@pytest.mark.parametrize(
    ("written", "read", "message"),
    [
        ("SGD", "Nesterov", "of type 'SGD'; this one is 'Nesterov'"),
        ("Adam", "SGD", "of type 'Adam'; this one is 'SGD'"),
    ],
)
def test_a_state_of_another_solver_type_is_refused(tmp_path, written, read, message):
    recaffe.get_solver(solver_param(written, tmp_path / "run")).step(3)
    solver = recaffe.get_solver(solver_param(read, tmp_path / "run"))
    before = result(solver)
    with pytest.raises(recaffe.RecaffeError, match=message):
        solver.restore(tmp_path / "run_iter_3.solverstate")
    np.testing.assert_array_equal(result(solver), before)


def test_histories_that_do_not_fit_are_refused(tmp_path):
    param = solver_param("SGD", tmp_path / "run")
    with pytest.raises(recaffe.RecaffeError, match=r"8 history blobs, expected 4 for type 'SGD'"):
        recaffe.get_solver(param).restore(GOLDEN / "snapshots" / "adam_iter_5.solverstate")
    with pytest.raises(recaffe.RecaffeError, match=r"history blob 0 has shape \(5, 3\), expected \(8, 6\)"):
        recaffe.get_solver(solver_param("Adam", tmp_path / "run")).restore(
            GOLDEN / "snapshots" / "adam_iter_5.solverstate"
        )


@pytest.mark.parametrize("ending", FORMATS.values())
def test_weights_are_no_solver_state(tmp_path, ending):
    solver = recaffe.get_solver(solver_param("SGD", tmp_path / "run"))
    with pytest.raises(recaffe.RecaffeError, match="these are weights, not a solver state"):
        solver.restore(GOLDEN / "snapshots" / f"adam_iter_5.caffemodel{ending}")


@pytest.mark.parametrize("ending", FORMATS.values())
def test_a_state_cut_short_is_told(tmp_path, ending):
    form = next(name for name, end in FORMATS.items() if end == ending)
    solver = recaffe.get_solver(solver_param("SGD", tmp_path / "run", form))
    solver.step(3)
    path = tmp_path / f"run_iter_3.solverstate{ending}"
    whole = path.read_bytes()
    for keep in (0, 1, 50, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:keep])
        with pytest.raises(recaffe.RecaffeError, match=str(path)):
            solver.restore(path)


def test_missing_files_are_told(tmp_path):
    solver = recaffe.get_solver(solver_param("SGD", tmp_path / "run"))
    with pytest.raises(recaffe.RecaffeError, match="no such file"):
        solver.restore(tmp_path / "none.solverstate")
    write_binary(tmp_path / "s.solverstate", SolverState(iter=3, learned_net="gone.caffemodel"))
    with pytest.raises(recaffe.RecaffeError, match=r"history"):
        solver.restore(tmp_path / "s.solverstate")
    solver.step(3)
    (tmp_path / "run_iter_3.caffemodel").unlink()
    with pytest.raises(recaffe.RecaffeError, match="weights that belong to it are missing"):
        solver.restore(tmp_path / "run_iter_3.solverstate")


def test_a_failed_write_leaves_the_old_pair(tmp_path, monkeypatch):
    solver = recaffe.get_solver(solver_param("SGD", tmp_path / "run"))
    solver.step(3)
    old = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(recaffe.RecaffeError, match="No space left on device"):
        solver.snapshot()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == old


@pytest.mark.parametrize(
    ("prefix", "message"), [("", "snapshot_prefix is missing"), ("no_folder/run", "there is no folder 'no_folder'")]
)
def test_where_snapshots_cannot_be_written(tmp_path, monkeypatch, prefix, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(recaffe.RecaffeError, match=message):
        recaffe.get_solver(solver_param("SGD", Path(prefix)) if prefix else _without_prefix())


def _without_prefix() -> SolverParameter:
    param = solver_param("SGD", Path("x"))
    param.ClearField("snapshot_prefix")
    return param


def test_prefix_comes_from_the_solver_file(tmp_path):
    path = tmp_path / "my_solver.prototxt"
    text = (GOLDEN / "snapshots" / "adam.prototxt").read_text()
    path.write_text(text.replace('snapshot_prefix: "adam"', ""))
    assert recaffe.get_solver(path).snapshot() == tmp_path / "my_solver_iter_0.solverstate"
    (tmp_path / "runs").mkdir()
    path.write_text(text.replace('snapshot_prefix: "adam"', f'snapshot_prefix: "{tmp_path / "runs"}"'))
    assert recaffe.get_solver(path).snapshot() == tmp_path / "runs" / "my_solver_iter_0.solverstate"


def test_states_are_packed_whole():
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    state = {"a": array, "b": [1, 2.5, "x", None, {"c": np.float32(1.5)}], "d": 1 << 100}
    text, arrays = pack(state)
    back = unpack(text, arrays)
    np.testing.assert_array_equal(back["a"], array)
    assert back["a"].dtype == np.int16
    assert back["b"] == [1, 2.5, "x", None, {"c": 1.5}]
    assert back["d"] == 1 << 100


def test_random_numbers_go_on(tmp_path):
    backend = current_backend()
    backend.seed(5)
    solver = recaffe.get_solver(solver_param("SGD", tmp_path / "run"))
    state = solver.snapshot()
    expected = backend.host_rng.random(4), np.empty(4, np.float32)
    backend.uniform(expected[1])
    solver.restore(state)
    again = backend.host_rng.random(4), np.empty(4, np.float32)
    backend.uniform(again[1])
    np.testing.assert_array_equal(expected, again)
    assert parse_text("", SolverParameter).random_seed == -1


HDF5_LAYER = """
layer { name: "rows" type: "HDF5Data" top: "x" top: "t"
        hdf5_data_param { source: "list.txt" batch_size: 5 shuffle: true } }
"""
LMDB_LAYERS = """
layer { name: "rows" type: "Data" top: "x" top: "label" data_param { source: "images" backend: LMDB batch_size: 5 }
        transform_param { mirror: true crop_size: 3 } }
layer { name: "t" type: "DummyData" top: "t" dummy_data_param { shape { dim: 5 dim: 2 } } }
layer { name: "unused" type: "Silence" bottom: "label" }
"""


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    """A working folder with two HDF5 files and an LMDB of images."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(2)
    for number, rows in enumerate((7, 9)):
        with h5py.File(f"{number}.h5", "w") as file:
            file["x"] = random.standard_normal((rows, 6)).astype(np.float32)
            file["t"] = random.standard_normal((rows, 2)).astype(np.float32)
    Path("list.txt").write_text("0.h5\n1.h5\n")
    with lmdb.open("images", map_size=1 << 20) as database, database.begin(write=True) as transaction:
        for i in range(12):
            pixels = random.integers(0, 255, (1, 5, 5), dtype=np.uint8)
            datum = Datum(channels=1, height=5, width=5, data=pixels.tobytes(), label=i)
            transaction.put(f"{i:08}".encode(), datum.SerializeToString())
    return tmp_path


@pytest.mark.parametrize("layers", [HDF5_LAYER, LMDB_LAYERS], ids=["HDF5Data", "Data"])
def test_resume_goes_on_in_the_data(data_folder, layers):
    param = solver_param("SGD", data_folder / "run")
    param.base_lr = 1e-5
    rows = param.net_param.layer[0]
    assert rows.type == "ShuffledRows"
    others = list(param.net_param.layer[1:])
    del param.net_param.layer[:]
    param.net_param.layer.extend([*parse_net(layers).layer, *others])
    whole, whole_losses = observed(param)
    whole.step(20)
    first, _ = observed(param)
    first.step(7)
    state = first.snapshot()
    second, second_losses = observed(param)
    second.restore(state)
    second.step(13)
    np.testing.assert_array_equal(result(second), result(whole))
    assert second_losses == whole_losses[-len(second_losses) :]
    for solver in (whole, first, second):
        solver.close()
