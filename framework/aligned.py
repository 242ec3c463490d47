"""Memory on the host that begins where vector instructions read fastest."""

from collections.abc import Callable
from typing import Any

import numpy as np

ALIGNMENT = 64  # bytes: a cache line, and the widest vector


def aligned(make: Callable[..., np.ndarray], size: int, dtype: Any) -> np.ndarray:
    """``make(size, dtype)``, for ``make`` one of numpy.empty and numpy.zeros, at a multiple of 64 bytes."""
    dtype = np.dtype(dtype)
    memory = make(size * dtype.itemsize + ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    return memory[start : start + size * dtype.itemsize].view(dtype)
