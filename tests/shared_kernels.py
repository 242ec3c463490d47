"""Compiled kernels for tests of crews."""

from pathlib import Path

from recaffe.framework.kernels.cpu import SOURCES
from recaffe.framework.kernels.cpu.jobs import shared
from recaffe.framework.kernels.cpu.stale_code import forget_stale_code

forget_stale_code(Path(__file__).parent, [*SOURCES, Path(__file__)])


@shared
def add_value(part, start, stop, numbers, value, parts):
    for i in range(start, stop):
        numbers[i] += value
        parts[i] = part


@shared
def fail_in(part, start, stop, which, numbers):
    if part == which:
        raise ValueError("this part")
    numbers[start:stop] = 1
