"""Flags in all the forms that scripts for Caffe use."""

import pytest
from recaffe.framework.cli.flags import normalise
from recaffe.framework.cli.options import GpuIds


@pytest.mark.parametrize(
    "words",
    ["train -solver s -gpu 0", "train --solver=s --gpu=0", "train -solver=s -gpu=0", "train --solver s --gpu 0"],
)
def test_one_dash_or_two_with_or_without_equals(words):
    assert normalise(words.split()) == ["train", "--solver=s", "--gpu=0"]


def test_underscores_are_dashes():
    assert normalise(["train", "-sigint_effect", "none", "--log_dir=d"]) == [
        "train",
        "--sigint-effect=none",
        "--log-dir=d",
    ]


def test_flags_before_the_command_follow_it():
    assert normalise(["-solver", "s", "--cpu", "train", "-level", "-1"]) == [
        "train",
        "--solver=s",
        "--cpu",
        "--level=-1",
    ]


def test_flags_of_all_commands_stay_in_front():
    assert normalise(["--version"]) == ["--version"]
    assert normalise(["train", "--help"]) == ["train", "--help"]
    assert normalise(["train", "-minloglevel", "2"]) == ["--minloglevel=2", "train"]


@pytest.mark.parametrize(
    "flag", ["--logtostderr", "-logtostderr=1", "--nologtostderr", "-alsologtostderr", "--v=1", "-v 2"]
)
def test_flags_of_the_logging_library_are_taken(flag):
    assert normalise(["train", *flag.split(), "-solver", "s"]) == ["train", "--solver=s"]


def test_values_may_hold_anything():
    assert normalise(["time", "-model", "a=b", "--stage=x,y"]) == ["time", "--model=a=b", "--stage=x,y"]
    assert normalise(["upgrade_net_proto_text", "in-1", "out_1"]) == ["upgrade_net_proto_text", "in-1", "out_1"]


def test_a_flag_without_its_value_is_left_to_click():
    assert normalise(["train", "-solver"]) == ["train", "--solver"]


def test_gpu_numbers():
    assert GpuIds().convert("", None, None) == []
    assert GpuIds().convert("0", None, None) == [0]
    assert GpuIds().convert("0,2", None, None) == [0, 2]
    assert GpuIds().convert("all", None, None) == "all"
