"""Nets against Caffe: which layers stay, splits and their names, who runs backward, values and gradients."""

import json
from pathlib import Path

import numpy as np
import pytest
import recaffe

from tests.support import GOLDEN, assert_close

NAMES = sorted(path.stem for path in (GOLDEN / "nets").glob("*.prototxt"))


class Case:
    """A net with what Caffe made of it."""

    def __init__(self, name: str):
        self.name = name
        path = Path(GOLDEN / "nets" / f"{name}.prototxt")
        with np.load(path.with_suffix(".npz")) as stored:
            self.arrays = {key: stored[key] for key in stored.files if key != "meta"}
            self.meta = json.loads(str(stored["meta"]))
        phase = getattr(recaffe, self.meta["phase"])
        self.net = recaffe.Net(path, phase, level=self.meta["level"], stages=self.meta["stages"])

    def items(self, kind: str):
        """(name, array) of all arrays of a kind; a parameter's name is (layer, index)."""
        for key, values in self.arrays.items():
            found, _, name = key.partition(":")
            if found == kind:
                layer, _, index = name.rpartition(":")
                yield ((layer, int(index)) if kind.startswith("param") else name), values


@pytest.fixture(params=NAMES)
def case(request):
    return Case(request.param)


def test_layers_blobs_and_their_names(case):
    net, meta = case.net, case.meta
    assert [layer.name for layer in net.layers] == meta["layers"]
    assert list(net.blobs) == meta["blobs"]
    assert net.bottom_names == meta["bottoms"]
    assert net.top_names == meta["tops"]
    assert net.outputs == meta["outputs"]


def test_who_runs_backward(case):
    forced = case.net.source.force_backward
    assert [step.needs_backward for step in case.net.steps] == [forced or need for need in case.meta["needs_backward"]]


# Layers that read their own values in backward work in place one after the other: Caffe's read those of the last.
# tests/test_net.py compares such nets with the same layers out of place.
WRONG_GRADIENTS_IN_CAFFE = {"in_place_chain"}


def test_values_and_gradients(case):
    net = case.net
    for name, values in case.items("in"):
        net.blobs[name].data[...] = values
    for (layer, i), values in case.items("param"):
        net.params[layer][i].data[...] = values
    net.forward()
    for name, values in case.items("top_diff"):
        net.blobs[name].diff[...] = values
    net.clear_param_diffs()
    net.backward()
    for name, values in case.items("out"):
        assert_close(net.blobs[name].data, values, what=f"data of {name}")
    if case.name in WRONG_GRADIENTS_IN_CAFFE:
        return
    for name, values in case.items("diff"):
        assert_close(net.blobs[name].diff, values, what=f"diff of {name}")
    for (layer, i), values in case.items("param_diff"):
        assert_close(net.params[layer][i].diff, values, what=f"diff of parameter {i} of {layer}")
