"""The command line as a user runs it: log lines, exit status, signals, event files."""

import os
import pty
import re
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import recaffe
from recaffe.framework.cli.devices import gpu_is_usable
from recaffe.proto import NetParameter, format_text, parse_text, read_binary, read_net, write_binary

from tests.command_line import LOG_LINE, run_cli, run_process

NET = """name: "tiny"
layer {
  name: "data" type: "DummyData" top: "x" top: "label"
  dummy_data_param {
    shape { dim: 4 dim: 3 } shape { dim: 4 }
    data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 }
  }
}
layer {
  name: "ip" type: "InnerProduct" bottom: "x" top: "y"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } }
}
layer { name: "accuracy" type: "Accuracy" bottom: "y" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "label" top: "loss" loss_weight: 2 }
"""

SOLVER = """net: "net.prototxt"
base_lr: 0.1
lr_policy: "fixed"
max_iter: 4
display: 2
snapshot: 2
snapshot_prefix: "snap"
test_iter: 3
test_interval: 2
random_seed: 1
solver_mode: CPU
"""

SLOW_DATA = """
import time
import recaffe


@recaffe.register
class SlowData(recaffe.Layer):
    type = "SlowData"
    bottoms, tops = (0, 0), (2, 2)

    def reshape(self, bottom, top):
        top[0].reshape(4, 3)
        top[1].reshape(4)

    def forward(self, bottom, top):
        time.sleep(SECONDS)
        top[0].data[...] = 1
"""

NUMBER = r"-?\d[\d.]*(?:e[+-]\d+)?"


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "solver.prototxt").write_text(SOLVER)
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A folder with a trained net; not to be changed."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "net.prototxt").write_text(NET)
    (folder / "solver.prototxt").write_text(SOLVER)
    assert run_cli(["train", "--solver", "solver.prototxt"], folder).status == 0
    return folder


def shape_of(lines: list[str]) -> list[str]:
    """The lines with every measured number (those with a point or an exponent) as #."""
    return [re.sub(r"(?<![\w.])\d+(\.\d+(e[+-]\d+)?|e[+-]\d+)", "#", line) for line in lines]


# train


def test_train_writes_caffes_lines_to_standard_error(folder):
    result = run_process(["train", "-solver", "solver.prototxt"], folder)
    assert result.status == 0 and result.out == ""
    assert all(re.match(LOG_LINE, line) for line in result.err.splitlines())
    tests = [
        "Iteration {}, Testing net (#0)",
        "    Test net output #0: accuracy = A",
        "    Test net output #1: loss = # (* 2 = # loss)",
    ]
    iteration = [
        "Iteration {} (R iter/s, Ss/2 iters), loss = #",
        "    Train net output #0: loss = # (* 2 = # loss)",
        "Iteration {}, lr = #",
    ]
    snapshot = [
        "Snapshotting to binary proto file snap_iter_{}.caffemodel",
        "Snapshotting solver state to binary proto file snap_iter_{}.solverstate",
    ]
    start = ["Use CPU.", "Starting Optimization", "Solving tiny", "Learning Rate Policy: fixed"]
    expected = start + [line.format(0) for line in tests + iteration]
    expected += [line.format(2) for line in snapshot + tests + iteration]
    expected += [line.format(4) for line in [*snapshot, "Iteration {}, loss = #", *tests]] + ["Optimization Done."]
    found = [re.sub(rf"\({NUMBER} iter/s, {NUMBER}s/", "(R iter/s, Ss/", line) for line in result.lines]
    found = [re.sub(rf"accuracy = {NUMBER}", "accuracy = A", line) for line in found]
    assert shape_of(found) == expected


def test_the_prefix_is_that_of_caffes_log(folder):
    before = time.time()
    result = run_cli(["train", "--solver=solver.prototxt"], folder)
    prefix = re.match(r"([IWE])(\d{8}) (\d\d:\d\d:\d\d)\.(\d{6})( +\d+) (\w+\.py):(\d+)\] ", result.err)
    assert prefix and prefix[1] == "I" and len(prefix[5]) >= 6
    logged = time.mktime(time.strptime(prefix[2] + prefix[3], "%Y%m%d%H:%M:%S")) + float("0." + prefix[4])
    assert before <= logged <= time.time()


def test_a_snapshot_goes_on_to_the_same_weights(trained, folder):
    for name in ("snap_iter_2.caffemodel", "snap_iter_2.solverstate"):
        (folder / name).write_bytes((trained / name).read_bytes())
    result = run_cli(["train", "-solver", "solver.prototxt", "-snapshot=snap_iter_2.solverstate", "-weights="], folder)
    assert result.status == 0, result.err
    assert "Resuming from snap_iter_2.solverstate" in result.lines
    assert (folder / "snap_iter_4.caffemodel").read_bytes() == (trained / "snap_iter_4.caffemodel").read_bytes()


def test_weights_fill_the_train_net(trained, folder):
    (folder / "solver.prototxt").write_text(SOLVER.replace("base_lr: 0.1", "base_lr: 0"))
    weights = f"{trained}/snap_iter_2.caffemodel,{trained}/snap_iter_4.caffemodel"
    result = run_cli(["train", "-solver", "solver.prototxt", "-weights", weights], folder)
    assert result.status == 0, result.err
    kept = recaffe.Net(str(folder / "net.prototxt"), str(folder / "snap_iter_4.caffemodel"), recaffe.TEST)
    last = recaffe.Net(str(folder / "net.prototxt"), str(trained / "snap_iter_4.caffemodel"), recaffe.TEST)
    np.testing.assert_array_equal(kept.params["ip"][0].data, last.params["ip"][0].data)


def test_level_and_stage_choose_layers(folder):
    more = 'layer {{ name: "{0}" type: "InnerProduct" bottom: "x" top: "{0}" include {{ {1} }}'
    more += " inner_product_param {{ num_output: 1 }} }}"
    text = NET + more.format("staged", 'stage: "a" stage: "b"') + more.format("levelled", "min_level: 2")
    (folder / "net.prototxt").write_text(text)

    def layers_timed(*flags: str) -> set[str]:
        result = run_cli(["time", "-model", "net.prototxt", "-iterations", "1", *flags], folder)
        assert result.status == 0, result.err
        return {line.split()[0] for line in result.lines if line.endswith("ms.") and "forward:" in line}

    common = {"data", "x_data_0_split", "ip", "loss"}
    assert layers_timed() == common - {"x_data_0_split"}
    assert layers_timed("-stage=a,b") == {*common, "staged"}
    assert layers_timed("--level", "2") == {*common, "levelled"}
    result = run_cli(["train", "-solver", "solver.prototxt", "-level", "2", "-stage", "a,b"], folder)
    assert result.status == 0, result.err
    saved = read_binary(folder / "snap_iter_4.caffemodel", NetParameter)
    assert {"staged", "levelled"} < {layer.name for layer in saved.layer}


def test_minloglevel_hides_lines(folder, monkeypatch):
    assert run_cli(["train", "-minloglevel=1", "-solver=solver.prototxt", "--logtostderr"], folder).err == ""
    monkeypatch.setenv("GLOG_minloglevel", "2")
    assert run_cli(["train", "-solver=solver.prototxt"], folder).err == ""


def test_warnings_are_log_lines(folder):
    layer = 'layer { name: "r" type: "ReLU" bottom: "x" top: "r" wholly_unheard_of_param { a: 1 } }'
    (folder / "net.prototxt").write_text(NET + layer)
    result = run_cli(["time", "-model", "net.prototxt", "-iterations", "1"], folder)
    assert result.status == 0, result.err
    (warning,) = (line for line in result.err.splitlines() if line.startswith("W"))
    assert re.fullmatch(LOG_LINE + r"net.prototxt:15: layer 'r' .*'wholly_unheard_of_param' is not used", warning)


def test_a_net_without_loss_is_warned_of(folder):
    (folder / "net.prototxt").write_text(NET[: NET.index('layer { name: "loss"')])
    result = run_cli(["train", "-solver", "solver.prototxt"], folder)
    assert result.status == 0, result.err
    assert any(line.startswith("W") and "'tiny', has no loss" in line for line in result.err.splitlines())


# test


def test_test_prints_each_batch_and_the_means(trained):
    weights = "snap_iter_4.caffemodel"
    result = run_cli(["test", "-model", "net.prototxt", "-weights", weights, "-iterations=3"], trained)
    assert result.status == 0, result.err
    lines = result.lines
    assert lines[:2] == ["Use CPU.", "Running for 3 iterations."]
    batches = [re.fullmatch(rf"Batch (\d), (accuracy|loss) = ({NUMBER})", line) for line in lines[2:8]]
    assert [(match[1], match[2]) for match in batches] == [(str(k), n) for k in range(3) for n in ("accuracy", "loss")]
    accuracy, loss = (
        np.mean([float(match[3]) for match in batches if match[2] == name]) for name in ("accuracy", "loss")
    )
    total = re.fullmatch(rf"Loss: ({NUMBER})", lines[8])
    assert float(total[1]) == pytest.approx(2 * loss, rel=1e-5)
    assert float(re.fullmatch(rf"accuracy = ({NUMBER})", lines[9])[1]) == pytest.approx(accuracy, rel=1e-5)
    mean = re.fullmatch(rf"loss = ({NUMBER}) \(\* 2 = ({NUMBER}) loss\)", lines[10])
    assert [float(mean[1]), float(mean[2])] == pytest.approx([loss, 2 * loss], rel=1e-5)
    assert len(lines) == 11


def test_the_scores_are_those_of_the_net(folder):
    (folder / "net.prototxt").write_text(
        'layer { name: "w" type: "Parameter" top: "w" parameter_param { shape { dim: 2 } } }'
    )
    net = recaffe.Net(str(folder / "net.prototxt"), recaffe.TEST)
    net.params["w"][0].data[...] = 0.5, -3
    net.save(folder / "w.caffemodel")
    result = run_cli(["test", "-model", "net.prototxt", "-weights", "w.caffemodel", "-iterations", "2"], folder)
    assert result.lines[2:] == [
        "Batch 0, w = 0.5", "Batch 0, w = -3", "Batch 1, w = 0.5", "Batch 1, w = -3", "Loss: 0", "w = 0.5", "w = -3",
    ]  # fmt: skip


# time


def test_time_prints_layers_and_averages(folder):
    result = run_cli(["time", "-model", "net.prototxt", "-iterations", "2", "-phase", "TEST"], folder)
    assert result.status == 0, result.err
    layers = re.findall(rf"\] +(\w+)\tforward: ({NUMBER}) ms\.\n.*\] +(\w+)\tbackward: ({NUMBER}) ms\.\n", result.err)
    assert [layer[0] for layer in layers][-1] == "loss" and all(layer[0] == layer[2] for layer in layers)
    average = {
        name: float(re.search(rf"\] Average {name}: ({NUMBER}) ms\.\n", result.err)[1])
        for name in ("Forward pass", "Backward pass", "Forward-Backward")
    }
    assert average["Forward pass"] == pytest.approx(sum(float(layer[1]) for layer in layers), rel=1e-3)
    assert average["Backward pass"] == pytest.approx(sum(float(layer[3]) for layer in layers), rel=1e-3)
    assert average["Forward-Backward"] == pytest.approx(average["Forward pass"] + average["Backward pass"], rel=1e-3)
    assert "        ip\tforward: " in result.err


# upgrades


def test_upgrade_of_a_net_in_text_and_binary(tmp_path):
    old = 'layers { name: "ip" type: INNER_PRODUCT blobs_lr: 2 inner_product_param { num_output: 2 } }'
    today = parse_text(
        'layer { name: "ip" type: "InnerProduct" param { lr_mult: 2 } inner_product_param { num_output: 2 } }',
        NetParameter,
    )
    (tmp_path / "old.prototxt").write_text(old)
    assert run_cli(["upgrade_net_proto_text", "old.prototxt", "new.prototxt"], tmp_path).status == 0
    assert read_net(tmp_path / "new.prototxt") == today
    assert (tmp_path / "new.prototxt").read_text() == format_text(today)
    write_binary(tmp_path / "old.caffemodel", parse_text(old, NetParameter))
    assert run_cli(["upgrade_net_proto_binary", "old.caffemodel", "new.caffemodel"], tmp_path).status == 0
    assert read_binary(tmp_path / "new.caffemodel", NetParameter) == today


def test_upgrade_of_a_solver(tmp_path):
    (tmp_path / "old.prototxt").write_text('net: "n" solver_type: ADAGRAD')
    assert run_cli(["upgrade_solver_proto_text", "old.prototxt", "old.prototxt"], tmp_path).status == 0
    assert (tmp_path / "old.prototxt").read_text().split() == ["net:", '"n"', "type:", '"AdaGrad"']


# signals


class Training:
    """A training in a process of its own that takes ``seconds`` an iteration."""

    def __init__(self, folder: Path, seconds: float, *flags: str):
        start, stop = NET.index("layer {"), NET.index('layer {\n  name: "ip"')
        layer = 'layer { name: "data" type: "SlowData" top: "x" top: "label" }\n'
        (folder / "slow_data.py").write_text(SLOW_DATA.replace("SECONDS", str(seconds)))
        (folder / "net.prototxt").write_text(NET[:start] + layer + NET[stop:])
        solver = SOLVER.replace("max_iter: 4", "max_iter: 100000").replace("snapshot: 2", "snapshot: 100000")
        (folder / "solver.prototxt").write_text(solver.replace("test_iter: 3\ntest_interval: 2\n", ""))
        command = [sys.executable, "-m", "recaffe", "train", "-solver=solver.prototxt", "-import=slow_data.py", *flags]
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []

    def __enter__(self) -> "Training":
        return self

    def __exit__(self, *error) -> None:
        self.process.kill()
        self.process.communicate()

    def wait_for(self, text: str) -> None:
        for line in self.process.stderr:
            self.lines.append(line)
            if text in line:
                return
        raise AssertionError("".join(self.lines))

    def end(self) -> tuple[int, str]:
        rest, _ = self.process.communicate(timeout=60)[1], None
        return self.process.returncode, rest


def iterations_saved(folder: Path) -> list[int]:
    return sorted(int(re.search(r"_(\d+)\.", path.name)[1]) for path in folder.glob("snap_iter_*.solverstate"))


def test_sigint_stops_after_the_iteration_with_a_snapshot(folder):
    with Training(folder, 0.001) as training:
        training.wait_for("Iteration 2,")
        training.process.send_signal(signal.SIGINT)
        status, err = training.end()
    assert status == 0
    assert err.rstrip().endswith("Optimization stopped early.")
    (iteration,) = iterations_saved(folder)
    assert f"snap_iter_{iteration}.solverstate" in err


def test_a_second_sigint_ends_at_once(folder):
    with Training(folder, 30) as training:
        training.wait_for("Learning Rate Policy")
        time.sleep(0.3)
        training.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert training.process.poll() is None
        training.process.send_signal(signal.SIGINT)
        status, err = training.end()
    assert status == 130
    assert err == "recaffe: error: interrupted\n"
    assert iterations_saved(folder) == []


def test_sighup_snapshots_and_goes_on(folder):
    with Training(folder, 0.001, "-sigint_effect", "snapshot") as training:
        training.wait_for("Iteration 2,")
        training.process.send_signal(signal.SIGHUP)
        training.wait_for("Snapshotting solver state")
        training.wait_for("Iteration ")
        training.process.send_signal(signal.SIGINT)
        training.wait_for("Snapshotting solver state")
        training.wait_for("Iteration ")
    assert len(iterations_saved(folder)) == 2


def test_signals_without_effect(folder):
    with Training(folder, 0.001, "-sigint_effect=none", "-sighup_effect=stop") as training:
        training.wait_for("Iteration 2,")
        training.process.send_signal(signal.SIGINT)
        training.wait_for("Iteration ")
        training.process.send_signal(signal.SIGHUP)
        status, err = training.end()
    assert status == 0 and "stopped early" in err


# what else may happen


def failing_layer(body: str) -> str:
    return (
        "import recaffe\n\n\n@recaffe.register\nclass Failing(recaffe.Layer):\n"
        f"    type = 'Failing{abs(hash(body))}'\n    tops = (1, 1)\n\n"
        "    def reshape(self, bottom, top):\n        top[0].reshape(1)\n\n"
        f"    def forward(self, bottom, top):\n        {body}\n"
    )


def run_failing(folder: Path, body: str):
    (folder / "failing.py").write_text(failing_layer(body))
    (folder / "net.prototxt").write_text(f'layer {{ name: "f" type: "Failing{abs(hash(body))}" top: "y" }}')
    return run_cli(["time", "-model", "net.prototxt", "-import", "failing.py"], folder)


def test_a_fault_shows_its_traceback(folder):
    result = run_failing(folder, "raise ZeroDivisionError('seven')")
    assert result.status == 70
    assert "Traceback" in result.err and "ZeroDivisionError: seven" in result.err and "failing.py" in result.err
    assert "report" in result.err.splitlines()[-1]


def test_a_users_mistake_shows_none(folder):
    result = run_failing(folder, "self.fail('seven is too many')")
    assert result.status == 1 and "Traceback" not in result.err
    assert result.err.splitlines()[-1].endswith("seven is too many")
    assert "layer 'f'" in result.err.splitlines()[-1]


def test_no_memory_left(folder):
    result = run_failing(folder, "raise MemoryError('Unable to allocate 1 TiB')")
    assert result.status == 1 and "Traceback" not in result.err
    assert "out of memory: Unable to allocate 1 TiB" in result.err


def test_interrupted_before_the_training(folder):
    result = run_failing(folder, "raise KeyboardInterrupt")
    assert result.status == 130 and result.err.endswith("recaffe: error: interrupted\n")


def test_nobody_reads_the_log(folder):
    with Training(folder, 0.001) as training:
        training.wait_for("Iteration 2,")
        training.process.stderr.close()
        training.process.stderr = None
        assert training.process.wait(timeout=60) == 141
    assert iterations_saved(folder) == []


@pytest.mark.skipif(gpu_is_usable(), reason="there is a GPU")
def test_device_query_without_gpu(tmp_path):
    result = run_cli(["device_query", "-gpu", "0"], tmp_path)
    assert result.status == 1 and "CuPy" in result.err


def test_a_layer_of_the_users_by_module_name(folder):
    (folder / "net.prototxt").write_text(
        'layer { name: "mine" type: "Imported" top: "y" imported_param { value: 2.5 } }'
    )
    (folder / "imported_layer.py").write_text(
        "from dataclasses import dataclass\n\nimport recaffe\n\n\n"
        "@dataclass\nclass Options:\n    value: float = 0\n\n\n"
        "@recaffe.register\nclass Imported(recaffe.Layer):\n    type = 'Imported'\n    options_type = Options\n"
        "    tops = (1, 1)\n\n    def reshape(self, bottom, top):\n        top[0].reshape()\n\n"
        "    def forward(self, bottom, top):\n        top[0].data[...] = self.options.value\n"
        "\n    def default_loss_weight(self, top_index):\n        return 2.0\n"
    )
    result = run_process(["time", "--model=net.prototxt", "--import=imported_layer", "--iterations=1"], folder)
    assert result.status == 0, result.err
    assert "Initial loss: 5" in result.lines


# the terminal, event files, start


def test_a_terminal_gets_a_progress_bar_below_the_lines(folder):
    (folder / "solver.prototxt").write_text(
        SOLVER.replace("max_iter: 4", "max_iter: 400").replace("snapshot: 2", "snapshot: 400")
    )
    terminal, process_side = pty.openpty()
    command = [sys.executable, "-m", "recaffe", "train", "-solver", "solver.prototxt"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, cwd=folder, stderr=process_side, env=environment) as process:
        os.close(process_side)
        written = b""
        while True:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # Linux's way to say that the other side is closed
                break
            if not piece:
                break
            written += piece
    os.close(terminal)
    text = written.decode()
    assert process.returncode == 0
    assert "/400" in text and "it/s" in text and re.search(rf"loss {NUMBER}  lr 0.1", text)
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "\r", text)
    lines = [piece for piece in re.split(r"[\r\n]+", plain) if re.match(LOG_LINE, piece)]
    assert any("Iteration 398, lr = 0.1" in line for line in lines)
    assert lines[-1].endswith("Optimization Done.")


def read_events(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """The scalars in a folder's event files: framed records, each a message Event."""
    from tensorboardX.proto.event_pb2 import Event

    scalars: dict[str, list[tuple[int, float]]] = {}
    for path in folder.glob("events.*"):
        content = path.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            event = Event.FromString(content[12 : 12 + length])
            content = content[12 + length + 4 :]
            for value in event.summary.value:
                scalars.setdefault(value.tag, []).append((event.step, value.simple_value))
    return scalars


def test_event_files_hold_what_the_log_shows(folder):
    pytest.importorskip("tensorboardX")
    result = run_cli(["train", "-solver=solver.prototxt", "--log-dir", "logs/run"], folder)
    assert result.status == 0, result.err
    scalars = read_events(folder / "logs" / "run")
    assert scalars.keys() == {"loss", "lr", "train/loss", "test/loss", "test/accuracy"}
    assert scalars["lr"] == [(0, pytest.approx(0.1)), (2, pytest.approx(0.1))]
    assert [step for step, _ in scalars["test/accuracy"]] == [0, 2, 4]
    shown = re.findall(rf"Train net output #0: loss = ({NUMBER})", result.err)
    assert [value for _, value in scalars["train/loss"]] == pytest.approx([float(value) for value in shown], rel=1e-5)
    shown = re.findall(rf"iters\), loss = ({NUMBER})", result.err)
    assert [value for _, value in scalars["loss"]] == pytest.approx([float(value) for value in shown], rel=1e-5)
    shown = re.findall(rf"Test net output #1: loss = ({NUMBER})", result.err)
    assert [value for _, value in scalars["test/loss"]] == pytest.approx([float(value) for value in shown], rel=1e-5)
    assert (folder / "logs" / "run" / "recaffe.log").read_text() in result.err


def test_help_and_version(tmp_path):
    assert run_cli(["--version"], tmp_path).out == f"recaffe {recaffe.__version__}\n"
    general = run_cli(["--help"], tmp_path)
    assert general.status == 0
    for command in (
        "train",
        "test",
        "time",
        "generate",
        "translate",
        "attention",
        "device_query",
        "upgrade_net_proto_text",
        "upgrade_solver_proto_text",
    ):
        assert re.search(rf"^  {command} +\S", general.out, re.MULTILINE)
        assert run_cli([command, "-h"], tmp_path).out.startswith(f"Usage: recaffe {command}")
    nothing = run_cli([], tmp_path)
    assert nothing.status == 2 and "train" in nothing.err + nothing.out


def test_help_loads_nothing_heavy(tmp_path):
    code = (
        "import sys; from recaffe.framework.cli.main import main; main(['--help']);"
        "heavy = {'numba', 'torch', 'h5py', 'lmdb', 'PIL', 'cupy', 'rich', 'tensorboardX', 'threadpoolctl',"
        " 'matplotlib'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr
