"""Weights in .caffemodel and .caffemodel.h5: matched by layer name, checked, told."""

import logging

import h5py
import numpy as np
import pytest
import recaffe
from recaffe.framework.weights import load_weights, save_weights
from recaffe.proto import NetParameter, array_to_blob, read_net_binary, write_binary

from tests.support import GOLDEN, make_net

NET = """
name: "small"
layer { name: "data" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "group/ip1" type: "InnerProduct" bottom: "x" top: "h"
        inner_product_param { num_output: 4 weight_filler { type: "gaussian" std: 1 }
                              bias_filler { type: "gaussian" std: 1 } } }
layer { name: "ip2" type: "InnerProduct" bottom: "h" top: "y"
        inner_product_param { num_output: 2 weight_filler { type: "gaussian" std: 1 }
                              bias_filler { type: "gaussian" std: 1 } } }
"""

SHARED = """
layer { name: "data" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "a" type: "InnerProduct" bottom: "x" top: "p" param { name: "w" } param { name: "ba" }
        inner_product_param { num_output: 4 weight_filler { type: "gaussian" std: 1 }
                              bias_filler { type: "gaussian" std: 1 } } }
layer { name: "b" type: "InnerProduct" bottom: "x" top: "q" param { name: "w" } param { name: "bb" }
        inner_product_param { num_output: 4 weight_filler { type: "gaussian" std: 1 }
                              bias_filler { type: "gaussian" std: 1 } } }
"""


def values(net):
    return {name: [blob.data.copy() for blob in blobs] for name, blobs in net.params.items()}


def assert_same(ours, theirs):
    for name, arrays in theirs.items():
        for one, other in zip(ours[name], arrays, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("ending", [".caffemodel", ".caffemodel.h5"])
@pytest.mark.parametrize("text", [NET, SHARED])
def test_what_is_saved_is_loaded(tmp_path, ending, text):
    path = tmp_path / f"w{ending}"
    saved = make_net(text)
    saved.save(path)
    loaded = make_net(text)
    report = loaded.copy_from(path)
    assert_same(values(loaded), values(saved))
    assert report.filled == list(saved.params)
    assert report.missing == []
    assert not list(tmp_path.glob("*.tmp")) and not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("ending", ["", ".h5"])
def test_reads_what_caffe_wrote(ending):
    solver = recaffe.get_solver(GOLDEN / "snapshots" / "adam.prototxt")
    solver.net.copy_from(GOLDEN / "snapshots" / f"adam_iter_5.caffemodel{ending}")
    with h5py.File(GOLDEN / "snapshots" / "adam_iter_5.caffemodel.h5") as file:
        for layer, blobs in solver.net.params.items():
            for i, blob in enumerate(blobs):
                np.testing.assert_allclose(blob.data, file["data"][layer][str(i)][()], rtol=1e-6)


def test_hdf5_has_caffes_layout(tmp_path):
    net = make_net(SHARED)
    for blob in net.learnable_params:
        blob.diff[...] = 3 * blob.data
    save_weights(net, tmp_path / "w.h5", write_diff=True)
    with h5py.File(tmp_path / "w.h5") as file:
        assert {layer: sorted(group) for layer, group in file["data"].items() if layer in "ab"} == {
            "a": ["0", "1"],
            "b": ["1"],  # the shared weight is held once, at its owner
        }
        np.testing.assert_array_equal(file["data/b/1"][()], net.params["b"][1].data)
        np.testing.assert_array_equal(file["diff/a/0"][()], 3 * net.params["a"][0].data)


def test_caffemodel_holds_layers_and_diffs(tmp_path):
    net = make_net(NET)
    for blob in net.learnable_params:
        blob.diff[...] = 2 * blob.data
    save_weights(net, tmp_path / "w.caffemodel", write_diff=True)
    param = read_net_binary(tmp_path / "w.caffemodel")
    assert (param.name, [layer.name for layer in param.layer]) == ("small", ["data", "group/ip1", "ip2"])
    blob = param.layer[2].blobs[0]
    assert list(blob.shape.dim) == [2, 4]
    assert list(blob.diff) == [2 * value for value in blob.data]


def test_layers_that_do_not_match_are_told(tmp_path, caplog):
    make_net(NET).save(tmp_path / "w.caffemodel")
    other = make_net(NET.replace('name: "ip2"', 'name: "other"'))
    before = values(other)["other"]
    with caplog.at_level(logging.INFO, "recaffe"):
        report = load_weights(other, tmp_path / "w.caffemodel")
    assert (report.filled, report.missing, report.unused) == (["group/ip1"], ["other"], ["ip2"])
    assert "Ignoring source layer ip2" in caplog.messages
    assert any("not filled, initial values kept: other" in message for message in caplog.messages)
    assert_same({"other": before}, {"other": values(other)["other"]})


@pytest.mark.parametrize("ending", [".caffemodel", ".caffemodel.h5"])
def test_another_shape_is_refused_and_nothing_is_filled(tmp_path, ending):
    make_net(NET).save(tmp_path / f"w{ending}")
    net = make_net(NET.replace("num_output: 2", "num_output: 5"))
    before = values(net)
    message = r"layer 'ip2', parameter 0: the shape is 2 x 4 in the file, 5 x 4 in the net; .* another name"
    with pytest.raises(recaffe.RecaffeError, match=message):
        net.copy_from(tmp_path / f"w{ending}")
    assert_same(before, values(net))


@pytest.mark.parametrize("ending", [".caffemodel", ".caffemodel.h5"])
def test_another_number_of_parameters_is_refused(tmp_path, ending):
    make_net(NET).save(tmp_path / f"w{ending}")
    net = make_net(NET.replace("num_output: 2", "bias_term: false num_output: 2"))
    with pytest.raises(recaffe.RecaffeError, match=r"'ip2' has 2 parameter\(s\) in the file, 1 in the net"):
        net.copy_from(tmp_path / f"w{ending}")


def test_old_four_axes_fit_shapes_without_the_leading_ones(tmp_path):
    param = NetParameter(name="old")
    layer = param.layer.add(name="ip2", type="InnerProduct")
    for shape, count in (((1, 1, 2, 4), 8), ((1, 1, 1, 2), 2)):
        blob = array_to_blob(np.arange(count, dtype=np.float32))
        blob.ClearField("shape")
        blob.num, blob.channels, blob.height, blob.width = shape
        layer.blobs.append(blob)
    write_binary(tmp_path / "old.caffemodel", param)
    net = make_net(NET)
    net.copy_from(tmp_path / "old.caffemodel")
    np.testing.assert_array_equal(net.params["ip2"][0].data, np.arange(8).reshape(2, 4))
    np.testing.assert_array_equal(net.params["ip2"][1].data, [0, 1])


def test_new_style_shapes_must_be_equal(tmp_path):
    param = NetParameter(name="new")
    layer = param.layer.add(name="ip2", type="InnerProduct")
    layer.blobs.append(array_to_blob(np.zeros((1, 1, 2, 4), np.float32)))
    layer.blobs.append(array_to_blob(np.zeros(2, np.float32)))
    write_binary(tmp_path / "new.caffemodel", param)
    with pytest.raises(recaffe.RecaffeError, match="1 x 1 x 2 x 4 in the file, 2 x 4 in the net"):
        make_net(NET).copy_from(tmp_path / "new.caffemodel")


def test_a_file_that_fills_nothing_is_an_error(tmp_path):
    make_net(NET).save(tmp_path / "w.caffemodel")
    net = make_net(SHARED)
    with pytest.raises(recaffe.RecaffeError, match=r"no layer of the file fills one .* the net a, b"):
        net.copy_from(tmp_path / "w.caffemodel")


@pytest.mark.parametrize("ending", ["", ".h5"])
def test_a_solver_state_is_no_weights(ending):
    path = GOLDEN / "snapshots" / f"adam_iter_5.solverstate{ending}"
    with pytest.raises(recaffe.RecaffeError, match="this is a solver state, not weights"):
        make_net(NET).copy_from(path)


@pytest.mark.parametrize("ending", ["", ".h5"])
@pytest.mark.parametrize("keep", [1, 40, 200, 300])
def test_a_file_cut_short_is_told(tmp_path, ending, keep):
    whole = (GOLDEN / "snapshots" / f"adam_iter_5.caffemodel{ending}").read_bytes()
    path = tmp_path / f"cut.caffemodel{ending}"
    path.write_bytes(whole[:keep])
    solver = recaffe.get_solver(GOLDEN / "snapshots" / "adam.prototxt")
    with pytest.raises(recaffe.RecaffeError, match=str(path)):
        solver.net.copy_from(path)


def test_missing_and_other_files_are_told(tmp_path):
    net = make_net(NET)
    with pytest.raises(recaffe.RecaffeError, match="no such file"):
        net.copy_from(tmp_path / "none.caffemodel")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(recaffe.RecaffeError, match="no weights"):
        net.copy_from(tmp_path / "other.h5")
    with pytest.raises(recaffe.RecaffeError, match="folder"):
        net.save(tmp_path / "no such folder" / "w.caffemodel")
