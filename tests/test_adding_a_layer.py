"""docs/adding_a_layer.md is true: its files are written as they stand there, and its commands run."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from recaffe.framework.layer_checks import CHECKS

PAGE = (Path(__file__).parent.parent / "docs" / "adding_a_layer.md").read_text()
FILES = dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^```sh\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(command, folder):
    words = shlex.split(command)
    words = [sys.executable, "-m", "recaffe", *words[1:]] if words[0] == "recaffe" else [sys.executable, *words[1:]]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def python(code, folder):
    return run(f"python -c {shlex.quote(code)}", folder)


def test_the_page_has_the_files_and_commands():
    assert list(FILES) == [
        "my_layers.py", "net.prototxt", "solver.prototxt", "test_my_layers.py", "my_gain.py", "scaled.py",
    ]  # fmt: skip
    assert len(COMMANDS) == 2


def test_the_layer_trains_from_the_command_line(folder):
    log = run(COMMANDS[0], folder)
    losses = [float(loss) for loss in re.findall(r"Iteration \d+.*, loss = ([\d.e-]+)", log)]
    assert losses[0] > 0.02
    assert losses[-1] < 0.1 * losses[0]
    assert (folder / "mine_iter_200.caffemodel").exists()


def test_the_layers_test_passes(folder):
    assert "1 passed" in run(COMMANDS[1] + " -p no:cacheprovider", folder)


def test_the_options_survive_saving(folder):
    run(COMMANDS[0], folder)
    code = (
        "import recaffe, my_layers; from recaffe.proto import read_net_binary;"
        "net = recaffe.Net(read_net_binary('mine_iter_200.caffemodel'), recaffe.TRAIN);"
        "print(net.layer_dict['mine'].options)"
    )
    assert "MyOptions(alpha=0.5)" in python(code, folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("alhpa: 0.5", r'net\.prototxt:\d+: .*MyOptions has no field "alhpa"; did you mean "alpha"'),
        ("alpha: half", r"net\.prototxt:\d+: .*alpha"),
    ],
)
def test_wrong_options_name_file_and_line(folder, options, message):
    (folder / "net.prototxt").write_text(FILES["net.prototxt"].replace("alpha: 0.5", options))
    words = [sys.executable, "-m", "recaffe", *shlex.split(COMMANDS[0])[1:]]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert re.search(message, done.stderr), done.stderr


def test_the_layer_with_a_parameter_passes_the_checks(folder):
    python("import my_gain; from recaffe.framework.layer_checks import check_layer; "
           "check_layer(my_gain.Gain, [(2, 3, 4)]); check_layer(my_gain.Gain, [(2, 3)])", folder)  # fmt: skip


def test_an_installed_package_is_found_by_its_entry_point(folder):
    project = tomllib.loads(re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)[1])["project"]
    info = folder / "my_layers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = "\n".join(f"{name} = {target}" for name, target in project["entry-points"]["recaffe.layers"].items())
    (info / "entry_points.txt").write_text(f"[recaffe.layers]\n{points}\n")
    assert "Iteration 200" in run("recaffe train --solver solver.prototxt", folder)


def test_the_layer_written_for_pycaffe_runs(folder):
    blocks = re.findall(r"```protobuf\n(.*?)```", PAGE, re.DOTALL)
    source = 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 } } }\n'
    (folder / "python.prototxt").write_text(source + blocks[-1])
    code = "import recaffe; print(recaffe.Net('python.prototxt', recaffe.TEST).forward(x=[2.0, -4.0])['y'])"
    assert np.array2string(np.array([1.0, -2.0])) in python(code, folder)


def test_the_table_lists_every_check():
    assert re.findall(r"^\| `(check_\w+)` \|", PAGE, re.MULTILINE) == list(CHECKS)


FAULTY = """
import my_layers
from recaffe.framework.gradient_check import gradient_check

right = my_layers.MyLayer.backward

def wrong(self, top, propagate_down, bottom):
    right(self, top, propagate_down, bottom)
    bottom[0].diff[...] *= 1.05

my_layers.MyLayer.backward = wrong
try:
    gradient_check(my_layers.MyLayer, [(2, 3)])
except AssertionError as error:
    print(error)
"""


def test_the_report_is_the_one_that_the_page_shows(folder):
    shown = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)[1].splitlines()
    got = python(FAULTY, folder).splitlines()
    number = r"(-?\d\.\d{6})\d*"
    assert [re.sub(number, r"\1", line) for line in got[:3]] == [re.sub(number, r"\1", line) for line in shown]
