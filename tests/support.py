"""Helpers shared by the tests: nets from text, and golden values."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import recaffe
from recaffe.framework.single_layer import SingleLayer
from recaffe.proto import parse_net

GOLDEN = Path(__file__).parent / "golden"


def make_net(text: str, phase: int = recaffe.TRAIN, dtype: Any = np.float32, **options: Any) -> recaffe.Net:
    """The net that the prototxt ``text`` describes."""
    return recaffe.Net(parse_net(text), phase, dtype=dtype, **options)


@dataclass
class GoldenCase:
    """A net that was run by BVLC Caffe, with what went in and what came out; arrays by kind and name."""

    name: str
    path: Path
    phase: int
    forwards: int
    arrays: dict[str, dict[str, np.ndarray]]

    def __getattr__(self, kind: str) -> dict[str, np.ndarray]:
        return self.arrays.get(kind, {})

    @property
    def types(self) -> set[str]:
        """The layer types in the net."""
        return {layer.type for layer in parse_net(self.path.read_text()).layer}


def golden_names() -> list[str]:
    """The names of all golden nets."""
    return sorted(path.stem for path in (GOLDEN / "layers").glob("*.npz"))


def golden_case(name: str) -> GoldenCase:
    """The golden net ``name`` with its arrays: ``case.out["y"]``, ``case.param_diff["layer:0"]``."""
    path = GOLDEN / "layers" / f"{name}.prototxt"
    arrays: dict[str, dict[str, np.ndarray]] = {}
    with np.load(path.with_suffix(".npz")) as stored:
        meta = json.loads(str(stored["meta"]))
        for key in stored.files:
            if key != "meta":
                kind, _, item = key.partition(":")
                kind = "input" if kind == "in" else kind
                arrays.setdefault(kind, {})[item] = stored[key]
    return GoldenCase(name, path, getattr(recaffe, meta["phase"]), meta["forwards"], arrays)


def run_golden(name: str, tolerance: float = 1e-5) -> None:
    """Run the golden net ``name`` forward and backward and compare every value and gradient it has."""
    case = golden_case(name)
    net = recaffe.Net(case.path, case.phase)
    for item, values in case.param.items():
        _param(net, item).data[...] = values
    for item, values in case.input.items():
        net.blobs[item].data[...] = values
    for _ in range(case.forwards):
        net.forward()
    for item, values in case.out.items():
        assert_close(net.blobs[item].data, values, tolerance, f"{name}: {item}")
    for item, values in case.param_after.items():
        assert_close(_param(net, item).data, values, tolerance, f"{name}: parameter {item}")
    if not (case.in_diff or case.param_diff):
        return
    net.clear_param_diffs()
    for item, values in case.top_diff.items():
        net.blobs[item].diff[...] = values
    net.backward()
    for item, values in case.in_diff.items():
        assert_close(net.blobs[item].diff, values, tolerance, f"{name}: diff of {item}")
    for item, values in case.param_diff.items():
        assert_close(_param(net, item).diff, values, tolerance, f"{name}: diff of parameter {item}")


def _param(net: recaffe.Net, item: str) -> recaffe.Blob:
    layer, _, index = item.rpartition(":")
    return net.params[layer][int(index)]


def assert_close(got: Any, expected: Any, tolerance: float = 1e-5, what: str = "values") -> None:
    """Fail unless every value agrees to ``tolerance`` times the largest value expected."""
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    scale = max(np.abs(expected).max(initial=0.0), 1e-3)
    worst = np.abs(got - expected).max(initial=0.0) / scale
    assert worst <= tolerance, f"{what}: off by {worst:.2g} of the largest value\n{got}\nexpected\n{expected}"


def backward(single: SingleLayer, top_diffs: Sequence[Any], propagate_down: Sequence[bool]) -> list[np.ndarray]:
    """Run a layer backward from ``top_diffs``; gives the diffs of its bottoms."""
    single.set_top_diffs([np.asarray(diff) for diff in top_diffs])
    single.backward(propagate_down)
    return single.bottom_diffs()
