"""Files: what is read and written, what is refused, and that a write is whole or not at all."""

import os
import subprocess
import sys

import numpy as np
import pytest
from recaffe.proto import (
    BlobProto,
    Datum,
    NetParameter,
    ParseError,
    RecaffeError,
    SolverParameter,
    SolverState,
    array_to_blob,
    atomic_write,
    parse_text,
    read_binary,
    read_net,
    read_net_binary,
    read_net_with_lines,
    read_solver,
    read_solver_with_lines,
    write_binary,
    write_text,
)
from recaffe.proto import files as proto_files

OLD = 'layers {\n name: "r" type: RELU }'
NEW = parse_text('layer { name: "r" type: "ReLU" }', NetParameter)
WEIGHTS = NetParameter()
WEIGHTS.layer.add(name="ip", type="InnerProduct").blobs.append(array_to_blob(np.arange(6.0)))
STATE = SolverState(iter=7, learned_net="x_iter_7.caffemodel")
STATE.history.add().data.append(1)
MEAN = BlobProto(num=1, channels=1, height=1, width=2, data=[1, 2])


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def test_nets_and_solvers_are_read_and_upgraded(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_text(OLD)
    assert read_net(path) == read_net(str(path)) == NEW
    net, lines = read_net_with_lines(path)
    assert (net, lines.where("r")) == (NEW, f"{path}:1")
    path.write_text(f"\nnet_param {{ {OLD} }} solver_type: ADAM")
    assert read_solver(path) == SolverParameter(type="Adam", net_param=NEW)
    solver, lines = read_solver_with_lines(path)
    assert (solver.type, lines.where("r")) == ("Adam", f"{path}:2")


def test_binary_nets_are_read_and_upgraded(tmp_path):
    path = tmp_path / "net.caffemodel"
    write_binary(path, parse_text(OLD, NetParameter))
    assert read_net_binary(path) == NEW
    assert read_binary(path, NetParameter) == parse_text(OLD, NetParameter)


def test_other_messages_are_read(tmp_path):
    write_binary(tmp_path / "x.solverstate", STATE)
    assert read_binary(tmp_path / "x.solverstate", SolverState) == STATE
    write_binary(tmp_path / "mean.binaryproto", BlobProto(num=1, data=[2]))
    assert read_binary(tmp_path / "mean.binaryproto", BlobProto).data == [2]


def test_text_is_written(tmp_path):
    write_text(tmp_path / "net.prototxt", parse_text('name: "\u00e9" layer { x_param { a: 1 } }', NetParameter))
    written = (tmp_path / "net.prototxt").read_text(encoding="utf-8")
    assert written == 'name: "\u00e9"\nlayer {\n  x_param {\n    a: 1\n  }\n}\n'


@pytest.mark.parametrize(
    "data",
    [b"\xef\xbb\xbfname: 'x'", b"name: 'x' # \xc4\xe3\xba\xc3", b"name: 'x'\r\n# dos\r\n", b"\fname: 'x'\v"],
    ids=["byte order mark", "comment in another encoding", "line ends of DOS", "form feeds"],
)
def test_odd_text_is_read(tmp_path, data):
    (tmp_path / "net").write_bytes(data)
    assert read_net(tmp_path / "net") == NetParameter(name="x")


def test_a_mistake_in_a_file_tells_its_place(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_text("name: 'x'\n lyer {}")
    with pytest.raises(ParseError, match=r'net.prototxt:2:2: NetParameter has no field "lyer"'):
        read_net(path)


READERS = {
    "text": read_net,
    "solver": read_solver,
    "net": read_net_binary,
    "state": lambda path: read_binary(path, SolverState),
    "mean": lambda path: read_binary(path, BlobProto),
    "datum": lambda path: read_binary(path, Datum),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_files_that_are_not_there_or_empty(tmp_path, reader):
    with pytest.raises(RecaffeError, match="nowhere: there is no such file"):
        reader(tmp_path / "nowhere")
    with pytest.raises(RecaffeError, match="this is a folder; expected a file"):
        reader(tmp_path)
    (tmp_path / "empty").touch()
    with pytest.raises(RecaffeError, match="empty: the file is empty"):
        reader(tmp_path / "empty")
    with pytest.raises(RecaffeError, match="cannot be read: "):
        reader(tmp_path / "empty" / "below")


@pytest.mark.parametrize(
    ("reader", "data", "message"),
    [
        ("text", WEIGHTS.SerializeToString(), "this is a binary file; expected text"),
        ("solver", STATE.SerializeToString(), "this is a binary file; expected text"),
        ("net", OLD.encode(), "this is a text file; expected a net in binary"),
        ("state", b'net: "x"', "this is a text file; expected a solver's state"),
        ("mean", b"# nothing", "this is a text file; expected a blob"),
        ("net", b"\x89HDF\r\n\x1a\n" + 100 * b"\0", "this is an HDF5 file; expected a net in binary"),
        ("net", WEIGHTS.SerializeToString()[:-1], "not a net in binary .* or corrupt or cut short"),
        ("net", b"\xff" + WEIGHTS.SerializeToString(), "corrupt or cut short"),
        ("state", STATE.SerializeToString()[:-3], "not a solver's state .* or corrupt or cut short"),
        ("net", STATE.SerializeToString(), "this is a solver's state .*; expected a net"),
        ("net", MEAN.SerializeToString(), "this is a blob .*; expected a net"),
        ("state", WEIGHTS.SerializeToString(), "this is a net .*; expected a solver's state"),
        ("state", MEAN.SerializeToString(), "this is a blob .*; expected a solver's state"),
        ("mean", WEIGHTS.SerializeToString(), "this is a net .*; expected a blob"),
        ("mean", STATE.SerializeToString(), "this is a solver's state .*; expected a blob"),
        ("datum", b"\x00\xff", "not a binary Datum, or corrupt or cut short"),
    ],
)
def test_files_of_another_kind_are_refused(tmp_path, reader, data, message):
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(RecaffeError, match=message) as caught:
        READERS[reader](path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_write_replaces_the_file_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "net.caffemodel"
    path.write_bytes(b"old")
    write_binary(path, WEIGHTS)
    assert path.read_bytes() == WEIGHTS.SerializeToString()
    assert names_in(tmp_path) == ["net.caffemodel"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~current_umask()


def current_umask():
    umask = os.umask(0)
    os.umask(umask)
    return umask


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyError), atomic_write(path) as file:
        file.write(b"half of the n")
        raise KeyError
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["file"]


def test_a_full_disk_is_told(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(RecaffeError, match="file: cannot be written: No space left"), atomic_write(path):
        raise OSError(28, "No space left on device")
    assert names_in(tmp_path) == []


def test_another_file_s_trouble_within_a_write_is_not_ours(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "file"):
        open(tmp_path / "nowhere")  # noqa: PTH123, SIM115
    assert names_in(tmp_path) == []


def test_text_mode(tmp_path):
    with atomic_write(tmp_path / "file", "w") as file:
        file.write("\u00e9\n")
    assert (tmp_path / "file").read_bytes() == "\u00e9\n".encode()


def test_a_write_goes_through_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real" / "file")
    write_text(tmp_path / "link", NetParameter(name="x"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "file").read_text() == 'name: "x"\n'


@pytest.mark.parametrize("path", [".", "nowhere/file", "file/below", "/dev/null"])
def test_places_that_cannot_be_written(tmp_path, path):
    (tmp_path / "file").touch()
    with pytest.raises(RecaffeError, match="cannot be written: "):
        write_text(tmp_path / path, NetParameter(name="x"))


def test_a_message_too_large_to_be_read_back_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(proto_files, "LARGEST_MESSAGE", 10)
    with pytest.raises(RecaffeError, match="and protobuf reads at most 10; save in HDF5"):
        write_binary(tmp_path / "net", WEIGHTS)
    assert names_in(tmp_path) == []


def test_an_unfinished_message_is_not_written(tmp_path):
    net = NetParameter()
    net.layer.add().clip_param.min = 1
    with pytest.raises(RecaffeError, match=r"not written: .*max"):
        write_binary(tmp_path / "net", net)


def test_a_killed_writer_leaves_the_old_file_or_the_new(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    script = (
        "import os, signal, sys\n"
        "from recaffe.proto.files import atomic_write\n"
        "with atomic_write(sys.argv[1]) as file:\n"
        "    file.write(b'new' * 100000)\n"
        "    file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False, capture_output=True)
    assert done.returncode == -9, done.stderr.decode()
    assert path.read_bytes() == b"old"
