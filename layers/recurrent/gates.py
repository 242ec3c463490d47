"""Gates: how a cell finds and activates those that stand side by side in one array."""

from collections.abc import Sequence
from typing import Any


def split_gates(gates: Any, count: int) -> Sequence[Any]:
    """The ``count`` gates, N x H each, that stand side by side in ``gates``."""
    H = gates.shape[-1] // count
    return [gates[..., k * H : (k + 1) * H] for k in range(count)]


def sigmoid(xp: Any, x: Any) -> None:
    """x = 1 / (1 + exp(-x)) = (1 + tanh(x / 2)) / 2, in place; this form cannot overflow."""
    x *= 0.5
    xp.tanh(x, out=x)
    x += 1
    x *= 0.5
