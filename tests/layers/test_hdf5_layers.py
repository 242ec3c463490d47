"""HDF5Data and HDF5Output."""

import logging
import subprocess
import sys

import numpy as np
import pytest
import recaffe

from tests.layers.data_files import ROWS, batches, data_net, write_rows
from tests.support import make_net

h5py = pytest.importorskip("h5py")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path)
    return tmp_path


def rows_net(options: str = "batch_size: 4", source: str = "rows.txt", tops: str = "data label", **more) -> recaffe.Net:
    return data_net(f'hdf5_data_param {{ source: "{source}" {options} }}', tops=tops, **more)


def test_rows_come_in_order_across_files_and_epochs():
    got = batches(rows_net(), 8)
    numbers = np.arange(32) % 11
    np.testing.assert_array_equal(np.concatenate([batch["label"] for batch in got]), numbers)
    np.testing.assert_array_equal(np.concatenate([batch["data"] for batch in got]), ROWS[numbers])


def test_a_batch_larger_than_all_files():
    (batch,) = batches(rows_net("batch_size: 30"), 1)
    np.testing.assert_array_equal(batch["label"], np.arange(30) % 11)


def test_any_tops_in_any_order(folder):
    assert [batch["label"].tolist() for batch in batches(rows_net(tops="label"), 2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with h5py.File("rows0.h5", "a") as file:
        file["g/deep"] = np.array([[5], [6]])
    (folder / "one.txt").write_text("rows0.h5")
    (batch,) = batches(rows_net("batch_size: 3", "one.txt", "label g/deep data"), 1)
    np.testing.assert_array_equal(batch["g/deep"], [[5], [6], [5]])
    np.testing.assert_array_equal(batch["data"], ROWS[[0, 1, 0]])


def test_shuffling_takes_each_row_once_an_epoch_file_by_file():
    got = batches(rows_net("batch_size: 11 shuffle: true"), 30)
    for batch in got:
        np.testing.assert_array_equal(np.sort(batch["label"]), range(11))
        np.testing.assert_array_equal(batch["data"], ROWS[batch["label"].astype(int)])
        files = np.searchsorted([1, 6], batch["label"])
        assert np.count_nonzero(np.diff(files)) == 2
    assert len({tuple(batch["label"]) for batch in got}) == 30
    assert len({batch["label"][0] for batch in got}) > 5


def test_numbers_of_any_kind_become_the_nets(folder):
    with h5py.File("kinds.h5", "w") as file:
        file["a"], file["b"] = np.array([[1], [300]], np.int64), np.array([0.1, 0.2])
    (folder / "kinds.txt").write_text("kinds.h5\n")
    (batch,) = batches(rows_net("batch_size: 2", "kinds.txt", "a b"), 1)
    assert batch["a"].dtype == batch["b"].dtype == np.float32
    np.testing.assert_array_equal(batch["a"], [[1], [300]])
    (batch,) = batches(rows_net("batch_size: 2", "kinds.txt", "a b", dtype=np.float64), 1)
    np.testing.assert_array_equal(batch["b"], [0.1, 0.2])


def fail_to_build(match: str, **net) -> None:
    with pytest.raises(recaffe.RecaffeError, match=match):
        rows_net(**net)


def test_mistakes_in_the_options():
    fail_to_build("source is not given", source="")
    fail_to_build("batch_size is 0", options="")
    with pytest.raises(recaffe.RecaffeError, match="does not transform"):
        data_net('hdf5_data_param { source: "rows.txt" batch_size: 1 }', "scale: 2", tops="data")


def test_bad_lists_and_files(folder):
    fail_to_build("nolist: the list cannot be read", source="nolist")
    (folder / "list.txt").write_text("\n")
    fail_to_build("list.txt: the list is empty", source="list.txt")
    (folder / "list.txt").write_text("rows0.h5\n\nmissing.h5\n")
    fail_to_build("list.txt:3: missing.h5: there is no such file", source="list.txt")
    (folder / "list.txt").write_text("list.txt\n")
    fail_to_build("list.txt:1: list.txt: cannot be read as HDF5", source="list.txt")
    (folder / "cut.h5").write_bytes((folder / "rows0.h5").read_bytes()[:1500])
    (folder / "list.txt").write_text("cut.h5\n")
    fail_to_build("list.txt:1: cut.h5: cannot be read as HDF5", source="list.txt")


def test_bad_datasets(folder):
    fail_to_build(r"rows.txt:1: rows0.h5: there is no dataset 'x' \(it has: data, label\)", tops="x")
    (folder / "list.txt").write_text("rows0.h5\nbad.h5\n")

    def bad(match, **datasets):
        with h5py.File("bad.h5", "w") as file:
            for name, values in datasets.items():
                file[name] = values
        fail_to_build(f"list.txt:2: bad.h5: {match}", source="list.txt")

    label = np.zeros(3)
    bad("there is no dataset 'label'", data=ROWS[:3])
    bad("the datasets have different numbers of rows: {'data': 4, 'label': 3}", data=ROWS[:4], label=label)
    other_shapes = r"rows have the shapes \[\(3, 2\), \(\)\], those of rows0.h5 \[\(2, 3\), \(\)\]"
    bad(other_shapes, data=np.zeros((3, 3, 2)), label=label)
    bad(r"dataset 'data' of shape \(0, 2, 3\) has no rows", data=ROWS[:0], label=label)
    bad(r"dataset 'data' of shape \(\) has no rows", data=1.5, label=label)
    bad("dataset 'data' holds .*, expected numbers", data=[b"abc"], label=label)


def test_a_file_that_changes_while_it_is_in_use(folder):
    net = rows_net("batch_size: 2")
    with h5py.File("rows1.h5", "w") as file:
        file["data"] = ROWS[:1]
    with pytest.raises(recaffe.RecaffeError, match=r"layer 'd'.*rows1.h5: there is no dataset 'label'"):
        batches(net, 2)


def output_net(file_name: str = "out.h5", second: str = "dim: 4", **more) -> recaffe.Net:
    return make_net(
        'layer { name: "a" type: "Input" top: "a" input_param { shape { dim: 4 dim: 3 } } }'
        f'layer {{ name: "b" type: "Input" top: "b" input_param {{ shape {{ {second} }} }} }}'
        'layer { name: "out" type: "HDF5Output" bottom: "a" bottom: "b"'
        f' hdf5_output_param {{ file_name: "{file_name}" }} }}',
        **more,
    )


A = np.arange(36, dtype=np.float32).reshape(12, 3)
B = np.arange(12, dtype=np.float32) * 10


def give(net: recaffe.Net, start: int, stop: int) -> None:
    for row in range(start, stop, 4):
        net.forward(a=A[row : row + 4], b=B[row : row + 4])


def read(path: str) -> tuple[np.ndarray, np.ndarray]:
    with h5py.File(path) as file:
        return file["data"][()], file["label"][()]


def test_output_appends_the_rows_of_every_pass(folder):
    net = output_net()
    give(net, 0, 12)
    assert not (folder / "out.h5").exists()
    net.close()
    data, label = read("out.h5")
    assert data.dtype == label.dtype == np.float32
    np.testing.assert_array_equal(data, A)
    np.testing.assert_array_equal(label, B)
    assert not (folder / "out.h5.partial").exists()


def test_output_follows_the_number_of_rows_and_replaces_an_old_file():
    for rows in (4, 2):
        net = output_net()
        net.blobs["a"].reshape(rows, 3)
        net.blobs["b"].reshape(rows)
        net.forward(a=A[:rows], b=B[:rows])
        net.close()
        np.testing.assert_array_equal(read("out.h5")[0], A[:rows])


def test_output_of_a_net_that_nobody_closes():
    net = output_net()
    give(net, 0, 8)
    del net
    np.testing.assert_array_equal(read("out.h5")[1], B[:8])


def test_output_goes_on_after_a_resume():
    net = output_net()
    give(net, 0, 4)
    state = net.get_state()
    give(net, 4, 8)
    net.close()
    resumed = output_net()
    resumed.set_state(state)
    give(resumed, 4, 12)
    resumed.close()
    np.testing.assert_array_equal(read("out.h5")[0], A)
    np.testing.assert_array_equal(read("out.h5")[1], B)


KILLED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from tests.layers.test_hdf5_layers import give, output_net
net = output_net()
give(net, 0, 8)
print(net.get_state())
give(net, 8, 12)
os._exit(9)
"""


def test_output_goes_on_after_a_kill(pytestconfig):
    command = [sys.executable, "-c", KILLED, str(pytestconfig.rootpath)]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert killed.returncode == 9, killed.stderr
    resumed = output_net()
    resumed.set_state(eval(killed.stdout))
    give(resumed, 8, 12)
    resumed.close()
    np.testing.assert_array_equal(read("out.h5")[0], A)


def test_output_whose_first_rows_are_gone(caplog):
    net = output_net()
    net.set_state({"out": {"rows": 8}})
    with caplog.at_level(logging.WARNING, "recaffe"):
        give(net, 8, 12)
    assert "out.h5: the first 8 rows of the resumed run are gone" in caplog.text
    net.close()
    np.testing.assert_array_equal(read("out.h5")[0], A[8:])


def test_mistakes_in_the_output(folder):
    (folder / "sub").mkdir()
    for match, net in {
        "file_name is not given": {"file_name": ""},
        "the folder nofolder does not exist": {"file_name": "nofolder/out.h5"},
        "sub: cannot be written: it is a folder": {"file_name": "sub"},
        "expected equally many rows": {"second": "dim: 3"},
    }.items():
        with pytest.raises(recaffe.RecaffeError, match=match):
            output_net(**net)
    net = output_net()
    give(net, 0, 4)
    net.blobs["a"].reshape(4, 1, 3)
    with pytest.raises(recaffe.RecaffeError, match=r"dataset 'data' has rows of \(3,\), cannot take \(1, 3\)"):
        net.forward()


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    for build in (rows_net, output_net):
        with pytest.raises(recaffe.RecaffeError, match=r"pip install 'recaffe\[data\]'"):
            build()
