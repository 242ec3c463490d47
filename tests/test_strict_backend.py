"""The stand-in for the GPU: what CuPy refuses is refused, and the rest computes what NumPy does."""

import numpy as np
import pytest
import recaffe
from recaffe.framework.backend import use_backend
from recaffe.framework.layer_case import PlainCpuBackend
from recaffe.framework.strict_array import DeviceArray, arrays_made
from recaffe.framework.strict_backend import StrictBackend, StrictModule

backend = StrictBackend(seed=1)
xp = backend.xp
host = np.arange(6.0).reshape(2, 3)


def device(values=host):
    return backend.to_device(np.asarray(values))


def values(array):
    assert isinstance(array, DeviceArray)
    return backend.to_host(array)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: device() + host,
        lambda: host + device(),
        lambda: host * device(),
        lambda: host @ device(),
        lambda: device() @ host,
        lambda: np.exp(device()),
        lambda: np.sum(device()),
        lambda: np.add(device(), device()),
        lambda: np.asarray(device()),
        lambda: np.array([device()]),
        lambda: np.concatenate([device(), device()]),
        lambda: xp.exp(host),
        lambda: xp.add(device(), host),
        lambda: xp.sum(host),
        lambda: xp.concatenate([device(), host]),
        lambda: xp.where(device() > 1, host, 0.0),
        lambda: xp.add(device(), device(), out=host.copy()),
        lambda: xp.matmul(device(), host.T),
        lambda: xp.full_like(host, 1.0),
        lambda: xp.prod((2, 3)),
        lambda: xp.add.at(device(), np.array([0]), 1.0),
        lambda: device()[np.array([0, 1])],
        lambda: device().__setitem__(..., host),
        lambda: device().__setitem__(0, [1.0, 2.0, 3.0]),
        lambda: device().__iadd__(host),
        lambda: float(device()),
        lambda: int(device([1])),
        lambda: bool(device() > 1),
        lambda: list(device()),
        lambda: 1.0 in device(),
        lambda: range(device(3)),
        lambda: {device(): 1},
        lambda: backend.to_host(host),
    ],
)
def test_what_cupy_refuses_is_refused(refused):
    with pytest.raises(TypeError):
        refused()


@pytest.mark.parametrize(
    "refused",
    [
        lambda: xp.add(device(), device(), where=device() > 1),
        lambda: xp.sum(device(), where=device() > 1),
        lambda: device().max(initial=0.0),
        lambda: device().take(device([0]), axis=0, mode="clip"),
        lambda: xp.einsum("ij->i", device(), out=device([0.0, 0.0])),
        lambda: device().astype(np.float32, casting="unsafe"),
    ],
)
def test_keywords_that_cupy_lacks_are_refused(refused):
    with pytest.raises(TypeError, match=r"CuPy's .* has no"):
        refused()


@pytest.mark.parametrize("name", ["put_along_axis", "nditer", "errstate", "pow", "concat", "random", "no_such_name"])
def test_functions_that_cupy_lacks_are_not_there(name):
    with pytest.raises(AttributeError):
        getattr(xp, name)


@pytest.mark.parametrize("method", [xp.maximum.reduce, xp.maximum.accumulate])
def test_reductions_that_cupy_lacks_are_refused(method):
    with pytest.raises(NotImplementedError):
        method(device())
    with pytest.raises(NotImplementedError):
        xp.multiply.at(device(), device([0]), 2.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda xp, a: a + 1,
        lambda xp, a: 1 - a,
        lambda xp, a: a / a.sum(axis=1, keepdims=True),
        lambda xp, a: a**2 @ a.T,
        lambda xp, a: -a,
        lambda xp, a: abs(a - 2),
        lambda xp, a: (a > 1) & ~(a < 4),
        lambda xp, a: np.float64(2) * a,
        lambda xp, a: xp.maximum(a, 2.5),
        lambda xp, a: xp.exp(a),
        lambda xp, a: xp.where(a > 2, a, 0.0),
        lambda xp, a: xp.concatenate([a, a], axis=1),
        lambda xp, a: xp.einsum("ij,kj->ik", a, a),
        lambda xp, a: xp.tensordot(a, a, axes=((0,), (0,))),
        lambda xp, a: xp.pad(a, ((1, 0), (0, 2))),
        lambda xp, a: xp.take(a, xp.argmax(a, axis=1), axis=1),
        lambda xp, a: xp.take_along_axis(a, xp.argsort(-a, axis=1), axis=1),
        lambda xp, a: xp.linalg.norm(a),
        lambda xp, a: xp.lib.stride_tricks.sliding_window_view(a, 2, axis=1),
        lambda xp, a: xp.add.reduce(a, axis=0),
        lambda xp, a: xp.add.accumulate(a, axis=1),
        lambda xp, a: xp.add.outer(a[0], a[1]),
        lambda xp, a: xp.zeros_like(a) + xp.arange(3),
        lambda xp, a: xp.broadcast_to(a[:, :1], a.shape),
        lambda xp, a: a[:, 1],
        lambda xp, a: a[1, 2],
        lambda xp, a: a[..., None, ::-1],
        lambda xp, a: a[a > 2],
        lambda xp, a: a[xp.asarray([1, 0, 1])],
        lambda xp, a: a.T.reshape(-1),
        lambda xp, a: a.astype(xp.float32).mean(),
        lambda xp, a: xp.stack(xp.split(a, 3, axis=1)),
        lambda xp, a: xp.count_nonzero(a),
        lambda xp, a: xp.allclose(a, a),
    ],
)
def test_the_rest_computes_what_numpy_does(function):
    got, expected = function(xp, device()), np.asarray(function(np, host))
    np.testing.assert_array_equal(values(got), expected)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape


def test_writing_in_place():
    array = device(np.zeros((2, 3)))
    array[0] = device([1.0, 2.0, 3.0])
    array[1, 1:] = 5
    array += 1
    array[array > 5] = 0.5
    xp.multiply(array, 2, out=array)
    xp.copyto(array[1, :1], device([7.0]))
    xp.add.at(array, (device([0, 0]), device([0, 0])), 10.0)
    np.testing.assert_array_equal(values(array), [[24.0, 6.0, 8.0], [7.0, 1.0, 1.0]])


def test_a_slice_or_an_element_is_a_view():
    array = device()
    array[1][...] = 0
    array[0, 0][...] = 9
    array.reshape(-1)[1] = 8
    np.testing.assert_array_equal(values(array), [[9, 8, 2], [0, 0, 0]])


def test_numbers_leave_by_float_int_bool_and_item():
    total = device().sum()
    assert isinstance(total, DeviceArray)
    assert total.shape == ()
    assert (float(total), int(total), total.item(), device().tolist()) == (15.0, 15, 15.0, host.tolist())
    assert bool((device() >= 0).all())


def test_copies_to_and_from_the_host_share_no_memory():
    source = host.copy()
    array = backend.to_device(source)
    source[...] = -1
    copy = backend.to_host(array)
    copy[...] = -2
    np.testing.assert_array_equal(values(array), host)
    assert values(xp.asarray(host)).tolist() == host.tolist()


def test_random_numbers_are_those_of_numpy():
    cpu = PlainCpuBackend(seed=1)
    backend.seed(1)
    expected, got = np.empty(100, np.float32), xp.empty(100, np.float32)
    for _ in range(2):
        cpu.uniform(expected)
        backend.uniform(got)
        np.testing.assert_array_equal(values(got), expected)


def test_arrays_made_are_recorded():
    array = device(host.astype(np.float32))
    with arrays_made() as made:
        array * 2
        array * np.float64(2)
    assert made == [(np.float32, 6), (np.float64, 6)]


def test_every_name_is_one_of_cupy():
    cupy = pytest.importorskip("cupy")
    module = StrictModule()
    ours = [name for name in dir(np) if not name.startswith("_") and callable(getattr(module, name, None))]
    assert [name for name in ours if not hasattr(cupy, name)] == []


TRAINING = """
    net_param {
      layer { name: "data" type: "DummyData" top: "x" top: "t" dummy_data_param {
        shape { dim: 16 dim: 8 } shape { dim: 16 dim: 1 }
        data_filler { type: "gaussian" std: 1 } data_filler { value: 1 } } }
      layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "h"
              inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
      layer { name: "drop" type: "Dropout" bottom: "h" top: "h" }
      layer { name: "ip2" type: "InnerProduct" bottom: "h" top: "y"
              inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
    }
    lr_policy: "fixed" base_lr: 0.01 weight_decay: 0.01 iter_size: 2 clip_gradients: 1 random_seed: 3
    snapshot_prefix: "trained"
"""
SOLVERS = {
    "SGD": "momentum: 0.9 regularization_type: 'L1'",
    "Nesterov": "momentum: 0.9",
    "AdaGrad": "",
    "RMSProp": "rms_decay: 0.9",
    "AdaDelta": "momentum: 0.9",
    "Adam": "momentum: 0.9",
    "AdamW": "momentum: 0.9",
}


@pytest.mark.parametrize("solver", SOLVERS)
def test_training_and_resuming_give_the_bits_of_numpy(solver, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "solver.prototxt"
    path.write_text(f"{TRAINING} type: '{solver}' {SOLVERS[solver]}")
    trained = []
    for backend in (PlainCpuBackend(threads=1), StrictBackend()):
        with use_backend(backend):
            first = recaffe.get_solver(path)
            first.step(2)
            first.snapshot()
            resumed = recaffe.get_solver(path)
            resumed.restore(tmp_path / "trained_iter_2.solverstate")
            resumed.step(3)
            trained.append([np.array(backend.to_host(blob.data)) for blob in resumed.net.learnable_params])
    for got, expected in zip(*trained, strict=True):
        np.testing.assert_array_equal(got, expected)
