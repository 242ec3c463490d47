"""Small checks shared by many layers."""

from collections.abc import Sequence


def canonical_axis(axis: int, ndim: int) -> int:
    """``axis`` counted from the front; negative ones count from the end.  Raises ValueError outside."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of range for {ndim} axes (from {-ndim} to {ndim - 1})")
    return axis % ndim


def shape_text(shape: Sequence[int]) -> str:
    """A shape as messages write it: ``64 x 20 x 12 x 12``."""
    return " x ".join(str(size) for size in shape) if shape else "a scalar"
