"""Cutting an array along one axis."""

from collections.abc import Iterable
from itertools import pairwise


def axis_parts(bounds: Iterable[int], axis: int) -> list[tuple[slice, ...]]:
    """For consecutive ``bounds`` along ``axis``, the index of each part: ``array[part]``."""
    return [(slice(None),) * axis + (slice(start, stop),) for start, stop in pairwise(bounds)]
