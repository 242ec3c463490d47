"""What layers with a bias for each column do with rows: add the bias to each, and sum their gradients."""

from typing import Any

from ..framework.fusable import fusable
from ..framework.matmul import matmul


@fusable
def add_row(backend: Any, row: Any, out: Any) -> None:
    """out[m] += row for each m; row (N,), out (M, N)."""
    out += row


def row_sums(backend: Any, rows: Any, out: Any) -> None:
    """out = the sum over m of rows[m]; rows (M, N), out (N,)."""
    ones = backend.xp.ones((1, len(rows)), rows.dtype)
    matmul(backend, ones, rows, out[None])
