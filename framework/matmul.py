"""The matrix products that layers use: one place for backends to split or batch them."""

from typing import Any

from .fusable import fusable


@fusable
def matmul(backend: Any, a: Any, b: Any, out: Any) -> None:
    """out = a @ b; 2-D, or batched as in NumPy; transposed views are fine, no copy is made; out shares no memory."""
    backend.xp.matmul(a, b, out=out)


@fusable
def affine(backend: Any, a: Any, b: Any, row: Any, out: Any) -> None:
    """out = a @ b + row, 2-D, with row (N,) added to each row; None adds nothing.  out shares no memory with them."""
    matmul(backend, a, b, out)
    if row is not None:
        out += row
