"""Rotary positions: pairs of numbers turned by angles that grow with the position."""

from typing import Any

from ...framework.fusable import fusable


def rotate(backend: Any, x: Any, positions: Any, base: float = 10000.0, inverse: bool = False) -> None:
    """Turn x (T x N x heads x d, in place): numbers 2i and 2i + 1 by the angle position / base^(2i / d).

        x'_2i = x_2i cos a - x_2i+1 sin a,   x'_2i+1 = x_2i sin a + x_2i+1 cos a

    So q^T k depends on how far apart two positions are, not where.  ``positions``: T numbers, int or float;
    ``inverse``: turn back, which is also how the gradient of x' becomes that of x.

    Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.
    """
    xp, d = backend.xp, x.shape[3]
    frequencies = base ** (-xp.arange(0, d, 2, dtype=xp.float64) / d)
    angles = positions.astype(xp.float64)[:, None] * (-frequencies if inverse else frequencies)
    turn_pairs(backend, x, xp.cos(angles).astype(x.dtype), xp.sin(angles).astype(x.dtype))


@fusable
def turn_pairs(backend: Any, x: Any, cosine: Any, sine: Any) -> None:
    """Turn numbers 2i and 2i + 1 of x[t] (T x N x heads x d, in place) by angle i of step t; cosine, sine T x d / 2."""
    cosine, sine = cosine[:, None, None], sine[:, None, None]
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = even * sine
    even *= cosine
    even -= odd * sine
    odd *= cosine
    odd += turned
