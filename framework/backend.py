"""Where arrays live and how work on them runs: NumPy on the CPU, CuPy on a GPU.

A backend owns the array module ``xp``, copies to and from the host, the random numbers (their state can
be saved), the threads, and the fused versions of hot functions.  This is the only file that imports CuPy.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from .aligned import aligned
from .errors import RecaffeError
from .random_numbers import uniform_numbers
from .threads import ThreadPool, thread_count


class Backend:
    """What every backend offers; the array module and the copies are the device's own.

    ``host_rng`` draws what is drawn on the host (initial weights, shuffles); ``uniform`` draws on the device.
    """

    name: str
    xp: Any

    def __init__(self, seed: int | None = None):
        self.seed(seed)
        self.free_arrays: list[Any] = []  # flat arrays that were given back

    def seed(self, seed: int | None) -> None:
        """Restart all random numbers; None takes a seed from the operating system."""
        self.host_rng = np.random.default_rng(seed)
        self._stream = int(self.host_rng.integers(1 << 63))
        self._position = 0

    def uniform(self, out: Any) -> None:
        """Fill the contiguous array ``out`` with numbers in [0, 1)."""
        uniform_numbers(self, out, *self.set_aside_numbers(out.size))

    def set_aside_numbers(self, count: int) -> tuple[int, int]:
        """Stream and position of ``count`` numbers, for ``uniform_numbers``; ``uniform`` goes on behind them."""
        self._position += count
        return self._stream, self._position - count

    def random_state(self) -> dict[str, Any]:
        """All that the next random numbers depend on."""
        return {
            "host_rng": self.host_rng.bit_generator.state,
            "stream": self._stream,
            "position": self._position,
        }

    def set_random_state(self, state: Mapping[str, Any]) -> None:
        """Continue with the random numbers that follow ``random_state()``."""
        self.host_rng.bit_generator.state = state["host_rng"]
        self._stream, self._position = int(state["stream"]), int(state["position"])

    @cached_property
    def fused(self) -> Mapping[str, Callable[..., Any]]:
        """Fused versions of ``@fusable`` functions, by name."""
        return {}

    def to_host(self, array: Any) -> np.ndarray:
        """A NumPy array with the values of ``array``."""
        raise NotImplementedError

    def to_device(self, array: Any) -> Any:
        """An array of this backend with the values of the NumPy array ``array``."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Wait until the device has done all work given to it."""

    def parallel(self, function: Callable[[int, int], Any], count: int, cost: float) -> list[Any]:
        """Run ``function(start, stop)`` over parts of ``range(count)``; gives the results in order.

        ``cost`` is the estimated time of the whole in nanoseconds; see ``ThreadPool.parallel``.
        """
        return [function(0, count)]

    def scratch(self, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        """A buffer of ``shape`` whose contents are undefined; a later call with this name may reuse it."""
        return self.xp.empty(shape, dtype)

    def zeros(self, size: int, dtype: Any) -> Any:
        """A flat array of zeros."""
        return self.xp.zeros(size, dtype)

    def empty(self, size: int, dtype: Any) -> Any:
        """A flat array of any values."""
        return self.xp.empty(size, dtype)

    def take_array(self, size: int, dtype: Any) -> Any:
        """A flat array of ``size`` or more values, whatever they are: the smallest one given back, or a new one."""
        fits = [i for i, array in enumerate(self.free_arrays) if array.size >= size and array.dtype == dtype]
        if not fits:
            return self.empty(size, dtype)
        return self.free_arrays.pop(min(fits, key=lambda i: self.free_arrays[i].size))

    def computing(self) -> Any:
        """A context for a stretch of computing, in which the backend owns the cores."""
        return nullcontext()


class CpuBackend(Backend):
    """NumPy on the host, with fused Numba kernels where Numba is installed."""

    name = "cpu"
    xp: ModuleType = np

    def __init__(self, seed: int | None = None, threads: int | None = None):
        super().__init__(seed)
        self.pool = ThreadPool(threads or thread_count())
        self.parallel = self.pool.parallel  # type: ignore[method-assign]
        self.share = self.pool.share
        self.computing = self.pool.computing  # type: ignore[method-assign]
        self.scratch = self.pool.scratch  # type: ignore[method-assign]

    @cached_property
    def fused(self) -> Mapping[str, Callable[..., Any]]:
        """The Numba kernels; none without Numba, or where RECAFFE_PLAIN=1 asks for the plain code."""
        if plain_is_wanted():
            return {}
        from .kernels.cpu import fused_functions

        return fused_functions()

    def zeros(self, size: int, dtype: Any) -> np.ndarray:
        return aligned(np.zeros, size, dtype)

    def empty(self, size: int, dtype: Any) -> np.ndarray:
        return aligned(np.empty, size, dtype)

    def to_host(self, array: np.ndarray) -> np.ndarray:
        return array

    def to_device(self, array: Any) -> np.ndarray:
        return np.asarray(array)


class GpuBackend(Backend):
    """CuPy on one NVIDIA GPU."""

    name = "gpu"

    def __init__(self, device_id: int = 0, seed: int | None = None):
        super().__init__(seed)
        cupy = import_cupy()
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except Exception as error:
            raise RecaffeError(f"no CUDA device can be used: {error}; train with --cpu or solver_mode: CPU") from None
        if not 0 <= device_id < count:
            raise RecaffeError(f"GPU {device_id} does not exist: this machine has {count} (numbered from 0)")
        self.xp = cupy
        self.device_id = device_id
        cupy.cuda.Device(device_id).use()

    @cached_property
    def fused(self) -> Mapping[str, Callable[..., Any]]:
        """The CUDA kernels; none where RECAFFE_PLAIN=1 asks for the plain code."""
        if plain_is_wanted():
            return {}
        from .kernels.gpu import fused_functions

        return fused_functions()

    def to_host(self, array: Any) -> np.ndarray:
        return self.xp.asnumpy(array)

    def to_device(self, array: Any) -> Any:
        return self.xp.asarray(array)

    def synchronize(self) -> None:
        self.xp.cuda.get_current_stream().synchronize()


def plain_is_wanted() -> bool:
    """Whether RECAFFE_PLAIN=1 turns the fused functions off."""
    return os.environ.get("RECAFFE_PLAIN", "0") not in ("", "0")


def import_cupy() -> Any:
    """The CuPy module, or an error that says how to get it."""
    try:
        import cupy
    except ImportError:
        raise RecaffeError(
            "the GPU needs CuPy, which is not installed: pip install 'recaffe[cuda12]' or 'recaffe[cuda13]',"
            " or compute on the CPU (solver_mode: CPU, no --gpu)"
        ) from None
    return cupy


_current: Backend | None = None


def current_backend() -> Backend:
    """The backend that new nets compute on."""
    global _current
    if _current is None:
        _current = CpuBackend()
    return _current


def set_backend(backend: Backend) -> None:
    """Let new nets compute on ``backend``."""
    global _current
    _current = backend


@contextmanager
def use_backend(backend: Backend) -> Iterator[Backend]:
    """Let nets built inside the block compute on ``backend``."""
    previous = current_backend()
    set_backend(backend)
    try:
        yield backend
    finally:
        set_backend(previous)


def set_mode_cpu() -> None:
    """Compute on the CPU from the next net on."""
    if current_backend().name != "cpu":
        set_backend(CpuBackend())


def set_mode_gpu() -> None:
    """Compute on the GPU from the next net on."""
    if current_backend().name != "gpu":
        set_backend(GpuBackend(_device_id))


_device_id = 0


def set_device(device_id: int) -> None:
    """Choose the GPU that ``set_mode_gpu`` takes."""
    global _device_id
    _device_id = device_id
    if current_backend().name == "gpu":
        set_backend(GpuBackend(device_id))


def set_random_seed(seed: int) -> None:
    """Restart the random numbers of the current backend."""
    current_backend().seed(seed)
