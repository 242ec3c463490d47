"""A GPU for tests on machines without one: the host's C++ compiler compiles CUDA kernels, which run thread by thread.

The rest is the strict stand-in backend, so the code that launches kernels must keep to what CuPy offers as well.
"""

import ctypes
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from recaffe.framework.kernels.gpu import fused_functions
from recaffe.framework.strict_array import DeviceArray
from recaffe.framework.strict_backend import StrictBackend, StrictModule

COMPILER = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")

# What kernels expect of CUDA.
CUDA = """
#include <math.h>
static struct { int x; } blockIdx, blockDim, threadIdx;
extern "C" void place(int block, int threads, int thread)
{
    blockIdx.x = block;
    blockDim.x = threads;
    threadIdx.x = thread;
}
#define __global__
#define __device__ static
"""


@cache
def compiled(code: str) -> ctypes.CDLL:
    """The kernels of ``code`` as a library for the host."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "kernels.cpp"), Path(folder, "kernels.so")
        source.write_text(CUDA + code)
        subprocess.run([COMPILER, "-O1", "-shared", "-fPIC", source, "-o", library], check=True)
        return ctypes.CDLL(str(library))


class HostRawModule:
    """``cupy.RawModule`` as far as it is used here; CuPy does not check arguments, this does."""

    def __init__(self, *, code: str):
        self.code, self.library = code, compiled(code)
        self.real = {"float": np.float32, "double": np.float64}[re.search(r"typedef (\w+) real;", code)[1]]

    def get_function(self, name: str) -> Any:
        """The kernel ``name``, to be called with grid, block and arguments."""
        kernel = getattr(self.library, name)
        parameters = re.search(rf"void {name}\(([^)]*)\)", self.code)[1].split(",")

        def launch(grid: tuple[int], block: tuple[int], arguments: tuple) -> None:
            passed = [self.passed(*pair) for pair in zip(parameters, arguments, strict=True)]
            for place in np.random.default_rng(0).permutation(grid[0] * block[0]):  # threads run in no order
                self.library.place(int(place) // block[0], block[0], int(place) % block[0])
                kernel(*passed)

        return launch

    def passed(self, parameter: str, argument: Any) -> Any:
        """``argument`` as C takes it; AssertionError if it is not what ``parameter`` declares."""
        if "*" not in parameter:
            assert "int" in parameter and type(argument) is np.int32, f"{parameter} got {type(argument)}"
            return ctypes.c_int(argument)
        assert type(argument) is DeviceArray, f"{parameter} got {type(argument)}"
        host = argument._host
        assert host.dtype == self.real and host.flags.c_contiguous, f"{parameter} got {host.dtype}, {host.strides}"
        return ctypes.c_void_p(host.ctypes.data)


class HostGpuModule(StrictModule):
    """CuPy's names, with kernels."""

    RawModule = HostRawModule


class HostGpuBackend(StrictBackend):
    """The GPU's fused functions on arrays of the strict stand-in."""

    name = "host gpu"

    def __init__(self, seed: int | None = None):
        super().__init__(seed)
        self.xp = HostGpuModule()
        self.fused = fused_functions()
