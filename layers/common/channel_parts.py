"""Values that lie along some axes of a blob and are the same along all others: shapes for Scale and Bias."""

import math
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import Layer

Shape = tuple[int, ...]


@fusable
def scale_channels(backend: Any, x: Any, scale: Any, bias: Any, out: Any) -> None:
    """out = x * scale + bias, for x, out (N, C, P), scale (C,), bias (C,) or None; out may be x."""
    backend.xp.multiply(x, scale[:, None], out=out)
    if bias is not None:
        out += bias[:, None]


def learnt_shape(layer: Layer, bottom: Blob, axis: int, num_axes: int) -> Shape:
    """The shape of a parameter that covers ``num_axes`` axes of the bottom from ``axis`` on; -1 for all of them."""
    if num_axes < -1:
        layer.fail(f"num_axes is {num_axes}, expected -1 (all axes from axis on), 0 or more")
    if num_axes == 0:
        return ()
    start = layer.axis(axis, bottom)
    end = bottom.ndim if num_axes == -1 else start + num_axes
    if end > bottom.ndim:
        layer.fail(
            f"bottom {bottom.name!r} has shape {bottom.shape}, but num_axes {num_axes} from axis {start} on"
            f" needs {end} axes"
        )
    return bottom.shape[start:end]


def channel_parts(layer: Layer, bottom: Blob, other: Blob, axis: int) -> Shape:
    """The bottom's shape as (N, C, P), where C counts the values of ``other``, which lies along it from ``axis``."""
    start = layer.axis(axis, bottom) if other.ndim else 0
    covered = bottom.shape[start : start + other.ndim]
    if covered != other.shape:
        layer.fail(
            f"{other.name!r} has shape {other.shape}, expected {covered}: the axes of"
            f" bottom {bottom.name!r} {bottom.shape} from axis {start} on"
        )
    return math.prod(bottom.shape[:start]), other.count, math.prod(bottom.shape[start + other.ndim :])
