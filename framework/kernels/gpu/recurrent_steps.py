"""What the loops of LSTM, GRU and RNN share: how their kernels are compiled and launched, and the order of steps.

A step is one matrix product with the weights and one kernel for all else, in which a thread has one value of one
stream.  T steps, N streams, H values; the arrays are those of ``layers/recurrent/cell.py``, whose loops are the plain
versions.  Two things save a kernel each:

- keep is one number a stream, so W (keep h') = keep (W h'): products read the states as they stand.
- Backward, a step's kernel writes keep d_gates into ``rows``; what ``rows`` W gives is added by the kernel of the step
  that runs next.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

THREADS = 256  # in a block
REAL = {"float32": "float", "float64": "double"}
SIGMOID = """
__device__ real sigmoid(real x) { return real(0.5) * tanh(real(0.5) * x) + real(0.5); }
"""


def cuda_code(source: str, dtype: np.dtype) -> str:
    """``source``, which is CUDA C for numbers of type ``real``, for numbers of type ``dtype``."""
    return f"typedef {REAL[dtype.name]} real;\n{SIGMOID}{source}"


@cache
def step_kernel(xp: Any, source: str, name: str, dtype: np.dtype) -> Callable[..., None]:
    """The kernel ``name`` of ``source``, to be called with N, H and the rest of its arguments."""
    kernel = xp.RawModule(code=cuda_code(source, dtype)).get_function(name)

    def launch(N: int, H: int, *arguments: Any) -> None:
        blocks = (N * H + THREADS - 1) // THREADS
        kernel((blocks,), (THREADS,), (np.int32(N), np.int32(H), *arguments))

    return launch


def marks(xp: Any, keep: Any, mask: Any, gates: Any) -> list[Any]:
    """keep and mask as kernels read them: contiguous, all ones where there is none."""
    ones = xp.ones(gates.shape[:2], gates.dtype)
    return [ones if values is None else xp.ascontiguousarray(values) for values in (keep, mask)]


def bias_rows(xp: Any, bias: Any, gates: Any) -> Any:
    """The bias of every stream, N x G H."""
    return xp.ascontiguousarray(xp.broadcast_to(bias, gates.shape[1:]))


def steps_forward(T: int, reverse: bool) -> Iterator[tuple[int, int, int]]:
    """Each step in the order of running, and where the states before and after it stand."""
    for t in reversed(range(T)) if reverse else range(T):
        yield (t, t + 1, t) if reverse else (t, t, t + 1)


def steps_backward(T: int, reverse: bool) -> Iterator[tuple[int, int, int]]:
    """The same from last to first."""
    yield from reversed(list(steps_forward(T, reverse)))
