"""``recaffe device_query``: what GPUs there are."""

import logging
from typing import Any

import click

from ..backend import import_cupy
from ..errors import RecaffeError
from . import options
from .devices import gpu_count, gpu_numbers

log = logging.getLogger("recaffe")


@click.command("device_query")
@options.gpu
def device_query(gpu: Any) -> None:
    """Show the GPUs: those that --gpu names, or all."""
    count = gpu_count()
    if not count:
        raise RecaffeError("this machine has no GPU that CUDA can use")
    for number in gpu_numbers(gpu or options.ALL_GPUS):
        if number >= count:
            raise RecaffeError(f"GPU {number} does not exist: this machine has {count} (numbered from 0)")
        for name, value in _properties(number).items():
            log.info("%-31s%s", name + ":", value)


def _properties(number: int) -> dict[str, Any]:
    cuda = import_cupy().cuda
    found = cuda.runtime.getDeviceProperties(number)
    with cuda.Device(number):
        free, total = cuda.runtime.memGetInfo()
    return {
        "Device id": number,
        "Major revision number": found["major"],
        "Minor revision number": found["minor"],
        "Name": found["name"].decode(),
        "Total global memory": total,
        "Free global memory": free,
        "Total shared memory per block": found["sharedMemPerBlock"],
        "Total registers per block": found["regsPerBlock"],
        "Warp size": found["warpSize"],
        "Maximum threads per block": found["maxThreadsPerBlock"],
        "Number of multiprocessors": found["multiProcessorCount"],
    }
