"""Net: pycaffe's names, passes from one layer to another, shapes that change, shared parameters, and mistakes."""

import re

import numpy as np
import pytest
import recaffe
from recaffe.framework.errors import RecaffeError
from recaffe.framework.layer import _registry as registry
from recaffe.framework.strict_backend import StrictBackend
from recaffe.proto import parse_net

from tests.support import assert_close, make_net

NET = """
    name: "two"
    layer { name: "data" type: "Input" top: "x" top: "t"
            input_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 } } }
    layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "h"
            inner_product_param { num_output: 5 weight_filler { type: "xavier" } bias_filler { value: 0.1 } } }
    layer { name: "act" type: "TanH" bottom: "h" top: "h" }
    layer { name: "ip2" type: "InnerProduct" bottom: "h" top: "y"
            inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" loss_weight: 2 }
"""
rng = np.random.default_rng(5)
X, T = rng.normal(size=(4, 3)), rng.normal(size=(4, 2))


@pytest.fixture
def net():
    return make_net(NET, dtype=np.float64)


def by_hand(net, x=X, t=T):
    """h, y, loss and the gradients of W1, b1, W2, b2, straight from the equations."""
    (W1, b1), (W2, b2) = ([blob.data for blob in net.params[name]] for name in ("ip1", "ip2"))
    h = np.tanh(x @ W1.T + b1)
    y = h @ W2.T + b2
    loss = ((y - t) ** 2).sum() / len(x) / 2
    dy = 2 * (y - t) / len(x)
    dz = (dy @ W2) * (1 - h**2)
    return h, y, loss, [dz.T @ x, dz.sum(axis=0), dy.T @ h, dy.sum(axis=0)]


def test_what_a_net_has(net):
    assert net.name == "two"
    assert (net.inputs, net.outputs) == (["x", "t"], ["loss"])
    assert list(net.blobs) == ["x", "t", "h", "y", "loss"]
    assert {name: [blob.shape for blob in blobs] for name, blobs in net.params.items()} == {
        "ip1": [(5, 3), (5,)],
        "ip2": [(2, 5), (2,)],
    }
    assert [layer.type for layer in net.layers] == ["Input", "InnerProduct", "TanH", "InnerProduct", "EuclideanLoss"]
    assert net.layer_dict["act"] is net.layers[2]
    assert net.bottom_names["loss"] == ["y", "t"]
    assert net.top_names["data"] == ["x", "t"]
    assert len(net.learnable_params) == 4


def test_forward_gives_outputs_and_the_blobs_named(net):
    h, y, loss, _ = by_hand(net)
    out = net.forward(["y"], x=X, t=T)
    assert list(out) == ["loss", "y"]
    assert out["loss"] == pytest.approx(loss)
    assert_close(out["y"], y)
    assert_close(net.blobs["h"].data, h)


def test_backward_gives_the_gradients_of_parameters(net):
    net.forward(x=X, t=T)
    net.clear_param_diffs()
    net.backward()
    for blob, expected in zip(net.learnable_params, by_hand(net)[3], strict=True):
        assert_close(blob.diff, expected)
    net.backward()
    for blob, expected in zip(net.learnable_params, by_hand(net)[3], strict=True):
        assert_close(blob.diff, 2 * expected, what="diff of a parameter after two passes")


def test_forward_backward_gives_the_weighted_loss(net):
    net.forward(x=X, t=T)
    assert net.forward_backward() == pytest.approx(2 * by_hand(net)[2])


def test_passes_over_a_part_of_the_net(net):
    h, y, _, _ = by_hand(net)
    net.blobs["x"].data[...] = X
    out = net.forward(end="act")
    assert list(out) == ["h"]
    assert_close(out["h"], h)
    assert not net.blobs["y"].data.any()
    out = net.forward(start="ip2", end="ip2")
    assert_close(out["y"], y)
    net.clear_param_diffs()
    dy = rng.normal(size=(4, 2))
    diffs = net.backward(start="ip2", end="ip2", y=dy)
    assert_close(diffs["h"], dy @ net.params["ip2"][0].data)
    assert not net.params["ip1"][0].diff.any()
    assert_close(net.params["ip2"][1].diff, dy.sum(axis=0))
    assert list(net.backward(["y"], start="ip2", end="act")) == ["h", "y"]


def test_input_diffs_come_with_force_backward(net):
    forced = make_net("force_backward: true " + NET, dtype=np.float64)
    for mine, other in zip(forced.learnable_params, net.learnable_params, strict=True):
        mine.data[...] = other.data
    forced.forward(x=X, t=T)
    diffs = forced.backward()
    assert list(diffs) == ["x", "t"]
    _, y, _, _ = by_hand(forced)
    assert_close(diffs["t"], -2 * (y - T) / 4)
    net.forward(x=X, t=T)
    assert not net.backward()["x"].any()


def test_shapes_follow_the_inputs(net):
    big = rng.normal(size=(9, 3))
    net.blobs["x"].reshape(9, 3)
    net.blobs["t"].reshape(9, 2)
    t = rng.normal(size=(9, 2))
    assert net.forward(x=big, t=t)["loss"] == pytest.approx(by_hand(net, big, t)[2])
    assert net.blobs["h"].shape == (9, 5)
    net.blobs["x"].reshape(1, 3)
    net.blobs["t"].reshape(1, 2)
    net.reshape()
    assert net.blobs["y"].shape == (1, 2)
    assert net.forward(x=X[:1], t=T[:1])["loss"] == pytest.approx(by_hand(net, X[:1], T[:1])[2])
    assert_close(net.blobs["loss"].diff, 2, what="the loss's weight after a reshape")


def test_a_net_from_a_file_with_weights(net, tmp_path):
    path, weights = tmp_path / "two.prototxt", tmp_path / "two.caffemodel"
    path.write_text(NET)
    net.save(weights)
    for loaded in (
        recaffe.Net(path, str(weights), recaffe.TEST),
        recaffe.Net(str(path), recaffe.TEST, weights=weights),
        recaffe.Net(str(path), phase=recaffe.TEST, weights=weights),
    ):
        assert loaded.phase == recaffe.TEST
        for mine, other in zip(loaded.learnable_params, net.learnable_params, strict=True):
            assert_close(mine.data, other.data)


def test_shared_trained_layers_are_one_memory(net):
    other = make_net(NET, recaffe.TEST, dtype=np.float64)
    other.share_trained_layers_with(net)
    net.params["ip1"][0].data[...] = 7
    assert (other.params["ip1"][0].data == 7).all()
    assert (other.params["ip1"][0].diff == 0).all()


def test_the_same_net_on_the_strict_backend(net):
    strict = StrictBackend()
    other = make_net(NET, dtype=np.float64, backend=strict)
    for mine, theirs in zip(other.learnable_params, net.learnable_params, strict=True):
        mine.data[...] = strict.to_device(theirs.data)
    expected = net.forward(x=X, t=T)
    out = other.forward(x=X, t=T)
    assert isinstance(out["loss"], np.ndarray)
    assert_close(out["loss"], expected["loss"])
    for each in (net, other):
        each.clear_param_diffs()
        each.backward()
    for mine, theirs in zip(other.learnable_params, net.learnable_params, strict=True):
        assert_close(strict.to_host(mine.diff), theirs.diff)


def test_a_loss_without_a_top_gets_one():
    net = make_net(NET.replace('top: "loss" ', ""), dtype=np.float64)
    net.forward(x=X, t=T)
    _, _, loss, gradients = by_hand(net)
    net.clear_param_diffs()
    assert net.forward_backward() == pytest.approx(2 * loss)
    for blob, expected in zip(net.learnable_params, gradients, strict=True):
        assert_close(blob.diff, expected)


def test_two_tops_of_a_loss_need_no_weights():
    net = make_net(
        """
        layer { name: "x" type: "Input" top: "x" top: "t" input_param { shape { dim: 2 dim: 3 } shape { dim: 2 } } }
        layer { name: "loss" type: "SoftmaxWithLoss" bottom: "x" bottom: "t" top: "loss" top: "p" }
        """
    )
    out = net.forward(x=np.zeros((2, 3)), t=[0, 2])
    assert out["loss"] == pytest.approx(np.log(3))
    assert_close(out["p"], np.full((2, 3), 1 / 3))


def test_a_net_of_an_old_message_is_upgraded():
    old = recaffe.proto.parse_text(
        """
        input: "x" input_shape { dim: 2 dim: 3 }
        layers { name: "r" type: RELU bottom: "x" top: "y" }
        """,
        recaffe.proto.NetParameter,
    )
    net = recaffe.Net(old, recaffe.TEST)
    assert [layer.type for layer in net.layers] == ["Input", "ReLU"]
    assert_close(net.forward(x=[[1, -2, 3], [-4, 5, -6]])["y"], [[1, 0, 3], [0, 5, 0]])


# shared parameters

SHARING = """
    layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ dim: 2 dim: 3 }} }} }}
    layer {{ name: "a" type: "InnerProduct" bottom: "x" top: "a" param {{ name: "w" {a} }}
            inner_product_param {{ num_output: 3 bias_term: false }} }}
    layer {{ name: "b" type: "InnerProduct" bottom: "a" top: "b" param {{ name: "w" {b} }}
            inner_product_param {{ num_output: {outputs} bias_term: false }} }}
    layer {{ name: "c" type: "InnerProduct" bottom: "a" top: "c" param {{ name: "w" {c} }}
            inner_product_param {{ num_output: 3 bias_term: false }} }}
"""


def sharing(a="", b="", c="", outputs=3):
    return make_net(SHARING.format(a=a, b=b, c=c, outputs=outputs))


def test_shared_parameters_are_one_parameter():
    net = sharing()
    assert len(net.learnable_params) == 1
    net.params["b"][0].data[...] = 3
    net.params["c"][0].diff[...] = 4
    for name in "abc":
        assert (net.params[name][0].data == 3).all()
        assert (net.params[name][0].diff == 4).all()


def test_the_multipliers_of_a_shared_parameter_may_stand_anywhere():
    assert (sharing().params_lr, sharing().params_weight_decay) == ([1], [1])
    assert sharing(a="lr_mult: 2", c="lr_mult: 2 decay_mult: 0").params_lr == [2]
    assert sharing(b="lr_mult: 3", c="decay_mult: 0").params_lr == [3]
    assert sharing(b="lr_mult: 3", c="decay_mult: 0").params_weight_decay == [0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"a": "lr_mult: 2", "b": "lr_mult: 3"}, "'b' .* 'w' with layer 'a', but lr_mult is 3 here and 2 there"),
        ({"b": "lr_mult: 2", "c": "lr_mult: 3"}, "layer 'c' .* lr_mult is 3 here and 2 there"),
        ({"a": "decay_mult: 0", "b": "decay_mult: 1"}, "decay_mult is 1 here and 0 there"),
        ({"outputs": 2}, r"the same shape \(share_mode: STRICT\): \(2, 3\) here, \(3, 3\) there"),
        ({"outputs": 2, "b": "share_mode: PERMISSIVE"}, "as many values"),
    ],
)
def test_parameters_that_cannot_be_shared(options, message):
    with pytest.raises(RecaffeError, match=message):
        sharing(**options)


# mistakes

INPUT = 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }'


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ('layer { name: "r" type: "ReLU" bottom: "xx" top: "y" }', "unknown bottom blob 'xx'.*did you mean 'x'"),
        ('layer { name: "r" type: "RELU" bottom: "x" top: "y" }', "no layer of this type is registered.*'ReLU'"),
        ('layer { name: "x" type: "ReLU" bottom: "x" top: "y" }', "another layer of this net has the same name"),
        ('layer { name: "r" type: "ReLU" bottom: "x" }', r"layer 'r' \(type 'ReLU'\): expected 1 top\(s\), got 0"),
        ('layer { name: "r" type: "ReLU" bottom: "x" bottom: "x" top: "y" }', r"expected 1 bottom\(s\), got 2"),
        ('layer { name: "i" type: "Input" top: "x" }', "top blob 'x' is already made by layer 'x'"),
        ('layer { name: "s" type: "Slice" bottom: "x" top: "y" top: "y" }', "'y' is already made by this layer"),
        (
            'layer { name: "ip" type: "InnerProduct" bottom: "x" top: "x" inner_product_param { num_output: 3 } }',
            "top 'x' is also a bottom, but this type does not work in place",
        ),
        (
            'layer { name: "a" type: "TanH" bottom: "x" top: "a" }'
            'layer { name: "r" type: "ReLU" bottom: "x" top: "x" }',
            "layer 'r' .*: top blob 'x' is already made by layer 'x'; give it another name",
        ),
        ('layer { name: "r" type: "ReLU" bottom: "x" top: "y" propagate_down: true propagate_down: true }',
         r"propagate_down is given 2 time\(s\) for 1 bottom"),
        ('layer { name: "r" type: "ReLU" bottom: "x" top: "y" loss_weight: 1 loss_weight: 1 }',
         r"loss_weight is given 2 time\(s\) for 1 top"),
        ('layer { name: "r" type: "ReLU" bottom: "x" top: "y" param { lr_mult: 1 } }',
         r"1 param blocks for 0 parameter\(s\)"),
        ('layer { name: "r" type: "ReLU" bottom: "x" top: "y" include { phase: TRAIN } exclude { phase: TEST } }',
         "give include rules or exclude rules, not both"),
        ('layer { name: "r" type: "ReLU" bottom: "x" top: "y" reluu_param { negative_slope: 1 } }',
         "no such block as 'reluu_param'; did you mean 'relu_param'"),
    ],
)  # fmt: skip
def test_nets_that_cannot_be_built(layers, message):
    with pytest.raises(RecaffeError, match=message):
        make_net(INPUT + layers)


def test_in_place_after_another_reader_is_told():
    """The second reader would see what the in-place layer leaves; Caffe splits, and so does recaffe."""
    net = make_net(
        INPUT
        + """
        layer { name: "a" type: "Scale" bottom: "x" top: "a" }
        layer { name: "r" type: "ReLU" bottom: "a" top: "r" }
        layer { name: "s" type: "Sigmoid" bottom: "a" top: "s" }
        """
    )
    assert net.bottom_names["r"] == ["a_a_0_split_0"]
    assert net.bottom_names["s"] == ["a_a_0_split_1"]


def test_errors_name_file_and_line(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_text(INPUT + '\n\nlayer { name: "r" type: "ReLU" bottom: "x" }\n')
    with pytest.raises(RecaffeError, match=r"net\.prototxt:3: layer 'r' \(type 'ReLU'\)"):
        recaffe.Net(path, recaffe.TRAIN)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net: net.forward(x=X[:2]), r"'x' has shape \(2, 3\), expected \(4, 3\); net.blobs\['x'\].reshape"),
        (lambda net: net.forward(h=X), "has no input 'h' \\(its inputs: x, t\\)"),
        (lambda net: net.forward(start="ip3"), "has no layer 'ip3' \\(it has: data, ip1"),
        (lambda net: net.backward(y=X), r"the diff for blob 'y' has shape \(4, 3\), expected \(4, 2\)"),
        (lambda net: net.backward(z=X), "has no blob 'z' \\(it has: x, t, h, y, loss\\)"),
    ],
)
def test_wrong_calls(net, call, message):
    with pytest.raises(RecaffeError, match=message):
        call(net)


def test_a_phase_must_be_given():
    with pytest.raises(RecaffeError, match=r"recaffe\.TRAIN or recaffe\.TEST, got None"):
        recaffe.Net(parse_net(INPUT))


def test_the_source_is_left_alone():
    source = parse_net(INPUT + 'layer { name: "r" type: "ReLU" bottom: "x" top: "y" include { phase: TEST } }')
    before = source.SerializeToString()
    assert [layer.name for layer in recaffe.Net(source, recaffe.TRAIN).layers] == ["x"]
    assert [layer.name for layer in recaffe.Net(source, recaffe.TEST).layers] == ["x", "r"]
    assert source.SerializeToString() == before


def test_a_layer_may_have_a_phase_of_its_own():
    net = make_net(INPUT + 'layer { name: "d" type: "Dropout" bottom: "x" top: "y" phase: TEST }', recaffe.TRAIN)
    net.forward(x=np.ones((2, 3)))
    assert (net.blobs["y"].data == 1).all()


def test_layers_keep_their_state_through_the_net(monkeypatch):
    class Counter(recaffe.Layer):
        """top = the number of passes."""

        type = "TestCounter"
        tops = (1, 1)
        passes = 0

        def reshape(self, bottom, top):
            top[0].reshape(1)

        def forward(self, bottom, top):
            self.passes += 1
            top[0].data[...] = self.passes

        def get_state(self):
            return {"passes": self.passes}

        def set_state(self, state):
            self.passes = state["passes"]

    monkeypatch.setitem(registry, "TestCounter", Counter)
    net = make_net(INPUT + 'layer { name: "n" type: "TestCounter" top: "n" }')
    net.forward()
    net.forward()
    state = net.get_state()
    assert state == {"n": {"passes": 2}}
    other = make_net(INPUT + 'layer { name: "n" type: "TestCounter" top: "n" }')
    other.set_state(state)
    assert other.forward()["n"] == 3


KEEPING = """
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 3 dim: 2 dim: 5 } } }
layer { name: "conv" type: "Convolution" bottom: "x" top: "y" convolution_param { num_output: 3 kernel_size: 1
  weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "y" top: "BN" }
layer { name: "scale" type: "Scale" bottom: "BN" top: "SCALE" scale_param { bias_term: true } }
layer { name: "relu" type: "ReLU" bottom: "SCALE" top: "RELU" }
layer { name: "bn2" type: "BatchNorm" bottom: "RELU" top: "BN2" }
layer { name: "tanh" type: "TanH" bottom: "BN2" top: "TANH" }
layer { name: "sigmoid" type: "Sigmoid" bottom: "TANH" top: "SIGMOID" }
layer { name: "elu" type: "ELU" bottom: "SIGMOID" top: "ELUS" }
layer { name: "abs" type: "AbsVal" bottom: "ELUS" top: "ABS" }
layer { name: "swish" type: "Swish" bottom: "ABS" top: "SWISH" }
layer { name: "power" type: "Power" bottom: "SWISH" top: "POWER" power_param { power: 2 } }
layer { name: "dropout" type: "Dropout" bottom: "POWER" top: "DROPOUT" }
layer { name: "softmax" type: "Softmax" bottom: "DROPOUT" top: "SOFTMAX" }
layer { name: "mvn" type: "MVN" bottom: "SOFTMAX" top: "MVNS" }
layer { name: "exp" type: "Exp" bottom: "MVNS" top: "EXP" }
layer { name: "bnll" type: "BNLL" bottom: "EXP" top: "BNLLS" }
layer { name: "last" type: "Scale" bottom: "BNLLS" top: "LAST" }
"""
IN_PLACE = dict.fromkeys(re.findall(r'top: "([A-Z0-9]+)"', KEEPING), "y")
APART = {name: name.lower() for name in IN_PLACE}


@pytest.mark.parametrize("passes", [1, 2])
def test_values_kept_for_backward_survive_layers_in_place(passes):
    """In place and out of place give the same gradients, also where several layers keep and overwrite the same blob."""
    results = []
    for names in (IN_PLACE, APART):
        text = KEEPING
        for name in sorted(names, key=len, reverse=True):
            text = text.replace(f'"{name}"', f'"{names[name]}"')
        recaffe.set_random_seed(1)
        net = recaffe.Net(parse_net("force_backward: true " + text), recaffe.TRAIN, dtype=np.float64)
        random = np.random.default_rng(2)
        for _ in range(passes):
            net.blobs["x"].data[...] = random.standard_normal(net.blobs["x"].shape)
            net.clear_param_diffs()
            net.forward()
            net.blobs[names["LAST"]].diff[...] = random.standard_normal(net.blobs["x"].shape)
            net.backward()
        results.append([net.blobs["x"].diff.copy(), *(blob.diff.copy() for blob in net.learnable_params)])
    for in_place, apart in zip(*results, strict=True):
        np.testing.assert_allclose(in_place, apart, rtol=1e-9, atol=1e-12)
