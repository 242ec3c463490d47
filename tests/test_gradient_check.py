"""gradient_check finds wrong gradients, and only those."""

import re

import numpy as np
import pytest
import recaffe
from recaffe.framework.gradient_check import gradient_check
from recaffe.framework.layer import _registry as registry
from recaffe.framework.strict_backend import StrictBackend

from tests.support import make_net


class WrongSquare(recaffe.Layer):
    """y = w x^2, with a gradient that is wrong in one element of each diff."""

    type = "WrongSquare"
    bottoms, tops = (1, 1), (1, 1)

    def layer_setup(self, bottom, top):
        self.w = self.add_blob("w", bottom[0].shape[1:])

    def reshape(self, bottom, top):
        top[0].reshape_like(bottom[0])

    def forward(self, bottom, top):
        top[0].data[...] = self.w.data * bottom[0].data ** 2

    def backward(self, top, propagate_down, bottom):
        if propagate_down[0]:
            bottom[0].diff[...] = top[0].diff * self.w.data * 2 * bottom[0].data
            bottom[0].diff[1, 1] *= 1.001
        self.w.add_to_diff(lambda dw: (top[0].diff * bottom[0].data ** 2).sum(axis=0, out=dw))
        self.w.diff[0] += 0.25


class Sign(recaffe.Layer):
    """y = |x|, whose gradient does not exist at 0."""

    type = "TestSign"
    bottoms, tops = (1, 1), (1, 1)

    def reshape(self, bottom, top):
        top[0].reshape_like(bottom[0])

    def forward(self, bottom, top):
        self.xp.abs(bottom[0].data, out=top[0].data)

    def backward(self, top, propagate_down, bottom):
        self.xp.multiply(top[0].diff, self.xp.sign(bottom[0].data), out=bottom[0].diff)


def test_right_gradients_pass():
    gradient_check("type: 'Sigmoid'", [(2, 3)])
    gradient_check("type: 'InnerProduct' inner_product_param { num_output: 4 }", [(2, 3)])
    gradient_check("type: 'SoftmaxWithLoss'", [(3, 4), np.array([0.0, 3.0, 1.0])])


def test_a_report_names_blob_index_and_both_values():
    x = np.arange(6.0).reshape(2, 3) / 10
    with pytest.raises(AssertionError) as error:
        gradient_check(WrongSquare, [x], parameters=[np.array([1.0, 2.0, 3.0])])
    lines = str(error.value).splitlines()
    assert lines[0] == "layer 'wrong_square' (type 'WrongSquare'): backward is not the gradient of forward"
    assert lines[1] == "  bottom 0 of shape (2, 3): 1 of 6 elements tried are wrong"
    assert lines[3] == "  parameter 0 of shape (3,): 1 of 3 elements tried are wrong"
    place, analytic, numeric = values_of(lines[2])
    assert place == "[1, 1]"
    assert analytic == pytest.approx(1.001 * numeric, rel=1e-6)
    _, analytic, numeric = values_of(lines[4])
    assert analytic - numeric == pytest.approx(0.25, rel=1e-6)


def values_of(line):
    place, analytic, numeric = re.fullmatch(r" *(\[.*\]): backward gives (.*), differences give (.*)", line).groups()
    return place, float(analytic), float(numeric)


def test_only_the_bottoms_asked_for_are_checked():
    parameters = [np.ones(3)]
    with pytest.raises(AssertionError) as error:
        gradient_check(WrongSquare, [(2, 3)], check_bottoms=(), parameters=parameters)
    assert "bottom 0" not in str(error.value)


def test_elements_near_a_kink_are_left_out():
    x = np.array([5e-6, 1e-6, 1.0, -2.0])
    with pytest.raises(AssertionError, match="2 of 4 elements"):
        gradient_check(Sign, [x])
    gradient_check(Sign, [x], kink=0.0)


def test_of_a_big_blob_only_some_elements_are_tried():
    with pytest.raises(AssertionError, match="of 20 elements tried"):
        gradient_check(WrongSquare, [(100, 30)], parameters=[np.ones(30)], most=20, seed=2, check_bottoms=())


def test_random_layers_draw_the_same_numbers_in_each_pass():
    gradient_check("type: 'Dropout'", [(5, 20)])


def test_a_layer_on_another_backend():
    gradient_check("type: 'Softmax'", [(2, 3)], backend=StrictBackend())


NET = """
    force_backward: true
    layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 3 dim: 4 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
            inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
    layer { name: "act" type: "TanH" bottom: "y" top: "y" }
"""
LOSS = """
    layer { name: "t" type: "Input" top: "t" input_param { shape { dim: 3 dim: 2 } } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" loss_weight: 3 }
"""


@pytest.mark.parametrize("loss", ["", LOSS], ids=["outputs", "loss"])
def test_a_net(loss):
    net = make_net(NET + loss, dtype=np.float64)
    rng = np.random.default_rng(0)
    for name in net.inputs:
        net.blobs[name].data[...] = rng.normal(size=net.blobs[name].shape)
    gradient_check(net)


def test_a_wrong_gradient_in_a_net(monkeypatch):
    monkeypatch.setitem(registry, "WrongSquare", WrongSquare)
    net = make_net(NET + 'layer { name: "bad" type: "WrongSquare" bottom: "y" top: "z" }', dtype=np.float64)
    net.blobs["x"].data[...] = np.random.default_rng(0).normal(size=(3, 4))
    net.params["bad"][0].data[...] = 1
    with pytest.raises(AssertionError, match="parameter 0 of layer 'bad'"):
        gradient_check(net)


def test_a_net_in_float32_is_refused():
    with pytest.raises(ValueError, match="float64"):
        gradient_check(make_net(NET))


def test_marks_that_several_layers_read_are_no_variables():
    net = make_net(
        """
        force_backward: true
        layer { name: "in" type: "Input" top: "x" top: "cont"
          input_param { shape { dim: 3 dim: 2 dim: 4 } shape { dim: 3 dim: 2 } } }
        layer { name: "a" type: "GRU" bottom: "x" bottom: "cont" top: "a" recurrent_param { num_output: 3
          carry_state: false weight_filler { type: "xavier" } } }
        layer { name: "b" type: "GRU" bottom: "a" bottom: "cont" top: "b" recurrent_param { num_output: 2
          carry_state: false weight_filler { type: "xavier" } } }
        """,
        dtype=np.float64,
    )
    net.blobs["x"].data[...] = np.random.default_rng(0).normal(size=(3, 2, 4))
    net.blobs["cont"].data[...] = [[0, 1], [1, 0], [1, 1]]
    splits = {
        net.bottom_names[step.layer.name][0]: step.propagate_down for step in net.steps if step.layer.type == "Split"
    }
    assert splits == {"cont": [False]}
    gradient_check(net)
