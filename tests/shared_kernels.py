"""A compiled kernel for tests of crews."""

from recaffe.framework.kernels.cpu.jobs import shared


@shared
def add_value(part, start, stop, numbers, value, parts):
    for i in range(start, stop):
        numbers[i] += value
        parts[i] = part
