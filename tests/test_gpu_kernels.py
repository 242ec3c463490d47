"""Every fused GPU function against the plain version of its name: on a GPU, and compiled for the host."""

import copy
import shutil
import subprocess
from importlib import import_module

import numpy as np
import pytest
from recaffe.framework.fusable import fusables
from recaffe.framework.kernels.gpu import FUSED, fused_functions
from recaffe.framework.kernels.gpu.recurrent_steps import cuda_code
from recaffe.framework.layer_case import PlainCpuBackend
from recaffe.framework.layer_checks import check_backend, gpu

from tests import recurrent_kernels
from tests.host_gpu import COMPILER, HostGpuBackend
from tests.kernel_arrays import TOLERANCE, Arrays
from tests.layers.conformance_cases import CASES as LAYERS

RECURRENT = {f"{type}-{i}": case for type in ("LSTM", "GRU", "RNN") for i, case in enumerate(LAYERS[type])}


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def backend(request):
    if request.param == "gpu":
        return gpu()
    if COMPILER is None:
        pytest.skip("no C++ compiler here")
    return HostGpuBackend()


def moved(value, move):
    """An argument with its arrays moved to a device."""
    if isinstance(value, list):
        return [move(array) for array in value]
    return move(value) if isinstance(value, np.ndarray) else value


def test_every_fused_function_has_a_case():
    assert set(fused_functions()) == set(recurrent_kernels.CASES)
    assert set(fused_functions()) <= set(fusables)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", recurrent_kernels.CASES)
def test_fused_equals_plain(backend, name, dtype):
    make, outputs = recurrent_kernels.CASES[name]
    for arguments in make(Arrays(dtype)):
        expected, got = list(copy.deepcopy(arguments)), [moved(value, backend.to_device) for value in arguments]
        fusables[name].plain(PlainCpuBackend(), *expected)
        fused_functions()[name](backend, *got)
        for index in outputs:
            values = backend.to_host(got[index])
            bound = TOLERANCE[dtype] * np.abs(expected[index]).max(initial=1e-30)
            np.testing.assert_allclose(values, expected[index], rtol=0, atol=bound)


@pytest.mark.parametrize("name", RECURRENT)
def test_layers(backend, name):
    check_backend(RECURRENT[name], backend)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no CUDA compiler here")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("module", FUSED)
def test_the_cuda_compiler_takes_the_kernels(module, dtype, tmp_path):
    source = tmp_path / "kernels.cu"
    cell = import_module(f"recaffe.framework.kernels.gpu.{module}")
    source.write_text(cuda_code(cell.SOURCE, np.dtype(dtype)))
    subprocess.run(["nvcc", "-ptx", source, "-o", tmp_path / "kernels.ptx"], check=True)
