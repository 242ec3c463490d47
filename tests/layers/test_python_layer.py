"""Layers that the user writes, run by type Python as pycaffe runs them."""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import recaffe

from tests.support import assert_close, make_net

MODULE = '''
import json
import numpy as np
import recaffe

class Affine(recaffe.Layer):
    """y = w * x * factor, one w per column."""

    def setup(self, bottom, top):
        self.factor = json.loads(self.param_str)["factor"]
        self.blobs.add_blob(bottom[0].channels)
        self.blobs[0].data[...] = 3
        self.reshapes = 0

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)
        self.reshapes += 1

    def forward(self, bottom, top):
        top[0].data[...] = bottom[0].data * self.blobs[0].data * self.factor

    def backward(self, top, propagate_down, bottom):
        self.blobs[0].diff[...] += self.factor * (top[0].diff * bottom[0].data).sum(axis=0)
        if propagate_down[0]:
            bottom[0].diff[...] = top[0].diff * self.blobs[0].data * self.factor

class Native(recaffe.Layer):
    def layer_setup(self, bottom, top):
        self.add_blob("w", (2,), None)

    def reshape(self, bottom, top):
        top[0].reshape(2)

    def forward(self, bottom, top):
        top[0].data[...] = self.blobs[0].data

class Broken(Native):
    def forward(self, bottom, top):
        return missing_name

class HalfSquares(recaffe.Layer):
    def setup(self, bottom, top):
        if len(bottom) != 2:
            raise Exception("two bottoms")

    def reshape(self, bottom, top):
        self.difference = np.zeros_like(bottom[0].data)
        top[0].reshape(1)

    def forward(self, bottom, top):
        self.difference[...] = bottom[0].data - bottom[1].data
        top[0].data[...] = np.sum(self.difference**2) / bottom[0].num / 2

    def backward(self, top, propagate_down, bottom):
        for i, sign in enumerate((1, -1)):
            if propagate_down[i]:
                bottom[i].diff[...] = sign * top[0].diff[0] * self.difference / bottom[i].num

number = 3
'''


@pytest.fixture(autouse=True)
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """MODULE as user_layers.py in the current folder."""
    (tmp_path / "user_layers.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "faulty_layers.py").write_text("import there_is_no_such_module\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("user_layers", "faulty_layers"):
        sys.modules.pop(name, None)


def net_with(layer: str, module: str = "user_layers", more: str = "") -> recaffe.Net:
    return make_net(f"""
        force_backward: true
        layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ dim: 4 dim: 3 }} }} }}
        layer {{ name: "user" type: "Python" bottom: "x" top: "y"
                 python_param {{ module: "{module}" layer: "{layer}" {more} }} }}
    """)


def test_values_gradients_and_reshape() -> None:
    net = net_with("Affine", more="""param_str: '{"factor": 2}'""")
    x, dy = np.random.default_rng(1).normal(size=(2, 4, 3))
    net.params["user"][0].data[...] = w = np.array([1.0, -2.0, 0.5])
    net.clear_param_diffs()
    for times in (1, 2):
        assert_close(net.forward(x=x)["y"], 2 * x * w, 1e-6)
        assert_close(net.backward(y=dy)["x"], 2 * dy * w, 1e-6)
        assert_close(net.params["user"][0].diff, times * 2 * (dy * x).sum(axis=0), 1e-6)
    assert net.layer_dict["user"].user.reshapes == 3  # once when built, then before each forward pass


def test_parameters_are_the_net_s() -> None:
    net = net_with("Affine", more="""param_str: '{"factor": 1}'""")
    assert [blob.shape for blob in net.params["user"]] == [(3,)]
    assert net.learnable_params == list(net.params["user"])
    assert (net.params["user"][0].data == 3).all()


def test_a_layer_with_layer_setup_works_too() -> None:
    net = net_with("Native")
    net.params["user"][0].data[...] = [5, 6]
    assert net.forward()["y"].tolist() == [5, 6]


def test_faults_in_the_user_s_code_keep_their_traceback() -> None:
    with pytest.raises(NameError, match="missing_name") as error:
        net_with("Broken").forward()
    assert error.traceback[-1].path.name == "user_layers.py"
    with pytest.raises(ModuleNotFoundError, match="there_is_no_such_module"):
        net_with("Any", module="faulty_layers")


@pytest.mark.parametrize(
    ("layer", "module", "message"),
    [
        ("Affine", "user_layer", "no module 'user_layer' in the current folder"),
        ("Afine", "user_layers", "has no class 'Afine'; did you mean 'Affine'?"),
        ("number", "user_layers", "user_layers.number is not a class that derives from recaffe.Layer"),
        ("", "user_layers", "needs module and layer"),
    ],
)
def test_what_is_not_there_is_told(layer: str, module: str, message: str) -> None:
    with pytest.raises(recaffe.RecaffeError) as error:
        net_with(layer, module)
    assert message in str(error.value)
    assert "'user' (type 'Python')" in str(error.value)


def test_a_class_without_a_type_cannot_be_registered() -> None:
    class Nameless(recaffe.Layer):
        pass

    with pytest.raises(recaffe.RecaffeError, match="Nameless has no type"):
        recaffe.register(Nameless)


def test_a_loss_in_python_trains_as_the_built_in_one() -> None:
    head = """
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: [4, 3] } } }
        layer { name: "t" type: "Input" top: "t" input_param { shape { dim: [4, 2] } } }
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 2 } }
    """
    user = """layer { name: "loss" type: "Python" bottom: "y" bottom: "t" top: "loss" loss_weight: 2
              python_param { module: "user_layers" layer: "HalfSquares" } }"""
    built_in = 'layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" loss_weight: 2 }'
    rng = np.random.default_rng(2)
    x, t, W = rng.normal(size=(4, 3)), rng.normal(size=(4, 2)), rng.normal(size=(2, 3))
    results = []
    for loss in (user, built_in):
        net = make_net(head + loss)
        net.params["ip"][0].data[...] = W
        net.blobs["x"].data[...], net.blobs["t"].data[...] = x, t
        net.clear_param_diffs()
        results.append((net.forward_backward(), net.params["ip"][0].diff.copy()))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-6)
    assert_close(results[0][1], results[1][1], 1e-6)
