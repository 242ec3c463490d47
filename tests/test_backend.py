"""Backends: random numbers whose state can be kept, copies, scratch memory, and which one nets compute on."""

import numpy as np
import pytest
import recaffe
from recaffe.framework import backend as backends
from recaffe.framework.backend import CpuBackend, GpuBackend, current_backend, set_backend, use_backend
from recaffe.framework.cli.devices import gpu_is_usable
from recaffe.framework.errors import RecaffeError
from recaffe.framework.fusable import fusable, fusables
from recaffe.framework.layer_case import PlainCpuBackend
from recaffe.framework.matmul import matmul
from recaffe.framework.strict_backend import StrictBackend


@pytest.fixture(params=[PlainCpuBackend, CpuBackend, StrictBackend], ids=["plain", "fused", "strict"])
def backend(request):
    return request.param(seed=3)


def uniform(backend, count, dtype=np.float32):
    numbers = backend.xp.empty(count, dtype)
    backend.uniform(numbers)
    return backend.to_host(numbers)


def split_mix(stream: int, number: int) -> int:
    """The SplitMix64 generator's output ``number`` from the state ``stream``, one number at a time."""
    mask = 2**64 - 1
    z = (stream + (number + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def test_split_mix_gives_the_published_numbers():
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [split_mix(1234567, i) for i in range(4)] == published


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_uniform_numbers_are_the_top_24_bits(backend, dtype):
    stream = backend.random_state()["stream"]
    expected = np.array([(split_mix(stream, i) >> 40) / 2**24 for i in range(50)])
    np.testing.assert_array_equal(uniform(backend, 20, dtype), expected[:20].astype(dtype))
    np.testing.assert_array_equal(uniform(backend, 30, dtype), expected[20:].astype(dtype))


def test_uniform_numbers_are_uniform(backend):
    numbers = uniform(backend, 200_000)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    counts, _ = np.histogram(numbers, bins=50, range=(0, 1))
    assert np.abs(counts - 4000).max() < 5 * np.sqrt(4000)
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.01


def test_the_same_seed_gives_the_same_numbers(backend):
    first, weights = uniform(backend, 10), backend.host_rng.random(10)
    backend.seed(3)
    np.testing.assert_array_equal(uniform(backend, 10), first)
    np.testing.assert_array_equal(backend.host_rng.random(10), weights)
    backend.seed(4)
    assert not np.array_equal(uniform(backend, 10), first)


def test_without_a_seed_the_numbers_differ():
    assert not np.array_equal(uniform(PlainCpuBackend(), 10), uniform(PlainCpuBackend(), 10))


def test_the_random_state_can_be_kept_and_set(backend):
    uniform(backend, 7)
    backend.host_rng.random(3)
    state = backend.random_state()
    expected = uniform(backend, 9), backend.host_rng.random(9)
    other = type(backend)(seed=99)
    other.set_random_state(state)
    np.testing.assert_array_equal(uniform(other, 9), expected[0])
    np.testing.assert_array_equal(other.host_rng.random(9), expected[1])


def test_copies_to_and_from_the_host(backend):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    array = backend.to_device(values)
    assert isinstance(array, backend.xp.ndarray)
    np.testing.assert_array_equal(backend.to_host(array), values)


def test_scratch_has_the_shape_and_dtype_asked_for(backend):
    for shape, dtype in (((2, 3), np.float32), ((4, 5), np.float32), ((2, 2), np.float64), ((), np.float32)):
        buffer = backend.scratch("x", shape, dtype)
        buffer.fill(1)
        assert (buffer.shape, buffer.dtype) == (shape, dtype)


def test_scratch_of_the_cpu_is_reused():
    backend = CpuBackend()
    first = backend.scratch("x", (4, 5), np.float32)
    assert np.shares_memory(first, backend.scratch("x", (3, 6), np.float32))
    assert not np.shares_memory(first, backend.scratch("y", (3, 6), np.float32))
    assert not np.shares_memory(first, backend.scratch("x", (3, 6), np.float64))


@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((300, 400), (400, 500))])
def test_matmul(backend, shapes):
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=shape) for shape in shapes)
    out = backend.xp.empty((*shapes[0][:-1], shapes[1][-1]))
    matmul(backend, backend.to_device(a), backend.to_device(b), out)
    np.testing.assert_allclose(backend.to_host(out), a @ b, rtol=1e-10, atol=1e-10)
    a_transposed = backend.to_device(np.ascontiguousarray(a.swapaxes(-1, -2))).swapaxes(-1, -2)
    matmul(backend, a_transposed, backend.to_device(b), out)
    np.testing.assert_allclose(backend.to_host(out), a @ b, rtol=1e-10, atol=1e-10)


def test_a_fused_function_replaces_the_plain_one():
    @fusable
    def doubled_for_test(backend, x):
        """2 x."""
        return "plain", x

    backend = PlainCpuBackend()
    assert doubled_for_test(backend, 1) == ("plain", 1)
    backend.fused = {"doubled_for_test": lambda backend, x: ("fused", x)}
    assert doubled_for_test(backend, 1) == ("fused", 1)
    assert doubled_for_test.plain(backend, 1) == ("plain", 1)
    assert doubled_for_test.__doc__ == "2 x."
    with pytest.raises(ValueError, match="two fusable functions are named 'doubled_for_test'"):
        fusable(doubled_for_test.plain)
    del fusables["doubled_for_test"]


def test_every_fused_function_has_a_plain_one():
    recaffe.registered_types()  # imports the layers, which bring the plain versions
    assert set(CpuBackend().fused) <= set(fusables)


def test_recaffe_plain_turns_the_fused_functions_off(monkeypatch):
    monkeypatch.setenv("RECAFFE_PLAIN", "1")
    assert CpuBackend().fused == {}


def test_new_nets_compute_on_the_current_backend():
    before, strict = current_backend(), StrictBackend()
    with use_backend(strict):
        assert current_backend() is strict
        assert recaffe.Blob((2,)).data.__class__ is strict.xp.ndarray
    assert current_backend() is before


def test_set_mode_cpu_and_set_random_seed():
    before = current_backend()
    try:
        set_backend(StrictBackend())
        recaffe.set_mode_cpu()
        assert current_backend().name == "cpu"
        kept = current_backend()
        recaffe.set_mode_cpu()
        assert current_backend() is kept
        recaffe.set_random_seed(5)
        first = uniform(kept, 5)
        recaffe.set_random_seed(5)
        np.testing.assert_array_equal(uniform(kept, 5), first)
    finally:
        set_backend(before)


def test_without_cupy_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(RecaffeError, match=r"needs CuPy, which is not installed: pip install 'recaffe\[cuda12\]'"):
        GpuBackend()


def test_a_gpu_that_does_not_exist(monkeypatch):
    class Runtime:
        @staticmethod
        def getDeviceCount():  # noqa: N802
            return 2

    cupy = type("cupy", (), {"cuda": type("cuda", (), {"runtime": Runtime})})
    monkeypatch.setattr(backends, "import_cupy", lambda: cupy)
    with pytest.raises(RecaffeError, match=r"GPU 7 does not exist: this machine has 2"):
        GpuBackend(7)


@pytest.mark.gpu
@pytest.mark.skipif(not gpu_is_usable(), reason="no GPU here")
def test_gpu_numbers_are_those_of_the_cpu():
    np.testing.assert_array_equal(uniform(GpuBackend(seed=3), 1000), uniform(PlainCpuBackend(seed=3), 1000))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
def test_arrays_begin_where_vectors_do(size, dtype):
    backend = CpuBackend()
    for array in (backend.zeros(size, dtype), backend.empty(size, dtype), backend.scratch("x", (size,), dtype)):
        assert array.shape == (size,) and array.dtype == dtype and array.flags.writeable
        assert array.ctypes.data % 64 == 0
    assert not backend.zeros(size, dtype).any()
