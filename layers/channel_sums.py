"""Sums over all but the channels: the gradients of whatever stands once per channel."""

from typing import Any

from ..framework.fusable import fusable


@fusable
def channel_sums(backend: Any, x: Any, out: Any) -> None:
    """out[c] = sum over n and p of x[n, c, p]; x (N, C, ...), out (C,)."""
    x = x.reshape(*x.shape[:2], -1)
    backend.xp.sum(x, axis=(0, 2), out=out)


@fusable
def channel_dots(backend: Any, x: Any, y: Any, out: Any) -> None:
    """out[c] = sum over n and p of x[n, c, p] * y[n, c, p]; x, y (N, C, P), out (C,)."""
    products = backend.scratch("channel_dots.products", x.shape, x.dtype)
    backend.xp.multiply(x, y, out=products)
    backend.xp.sum(products, axis=(0, 2), out=out)
