"""Which device a command computes on."""

import logging
from typing import Any

from ..backend import import_cupy, set_device, set_mode_cpu, set_mode_gpu
from ..errors import RecaffeError
from .options import ALL_GPUS

log = logging.getLogger("recaffe")


def gpu_count() -> int:
    """How many GPUs this machine has; none is an error."""
    cupy = import_cupy()
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except Exception as error:
        raise RecaffeError(f"no CUDA device can be used: {error}") from None


def gpu_numbers(gpu: Any) -> list[int]:
    """The numbers that ``--gpu`` gives, where ``all`` stands for every GPU."""
    return list(range(gpu_count())) if gpu == ALL_GPUS else list(gpu)


def gpu_is_usable() -> bool:
    """Whether there is a GPU, and CuPy to use it."""
    try:
        return gpu_count() > 0
    except RecaffeError:
        return False


def use_device(gpu: Any) -> None:
    """Let nets compute on the GPU that ``--gpu`` names, or on the CPU if it names none."""
    numbers = gpu_numbers(gpu)
    if len(numbers) > 1:
        raise RecaffeError(
            f"--gpu names {len(numbers)} GPUs ({', '.join(map(str, numbers))}), but recaffe computes on one:"
            f" give --gpu {numbers[0]}"
        )
    if numbers:
        set_device(numbers[0])
        set_mode_gpu()
        log.info("Use GPU with device ID %d", numbers[0])
    else:
        set_mode_cpu()
        log.info("Use CPU.")
