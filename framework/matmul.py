"""The matrix product that layers use: one place for backends to split or batch it."""

from typing import Any

from .fusable import fusable


@fusable
def matmul(backend: Any, a: Any, b: Any, out: Any) -> None:
    """out = a @ b; 2-D, or batched as in NumPy; transposed views are fine, no copy is made."""
    backend.xp.matmul(a, b, out=out)
