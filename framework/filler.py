"""Fillers: the first values of parameters.

With fan_in = count / shape[0] and fan_out = count / shape[1] (count for a blob of one axis), and n one of
them or their mean (``variance_norm``):

- constant: value
- uniform: U(min, max)
- gaussian: N(mean, std^2); with ``sparse`` s, each weight is kept with probability s / shape[0]
- positive_unitball: U(0, 1), then each row divided by its sum
- xavier: U(-a, a) with a = sqrt(3 / n); Glorot and Bengio, AISTATS 2010
- msra: N(0, 2 / n); He et al., ICCV 2015
- bilinear: the kernel of bilinear upsampling, for Deconvolution; Long et al., CVPR 2015
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..proto import FillerParameter
from .errors import RecaffeError, nearest

Fill = Callable[..., np.ndarray]
PART = 1 << 20  # values that are drawn at once: draws are float64, and large weights should not stand there twice


def fill_values(param: Any, shape: tuple[int, ...], rng: "np.random.Generator", dtype: Any = np.float64) -> np.ndarray:
    """Values of ``shape`` and (for the large ones) ``dtype`` by the FillerParameter ``param``, drawn from ``rng``.

    Raises RecaffeError for an unknown type or a shape that the filler cannot fill.
    """
    kind = param.type or "constant"
    if kind not in FILLERS:
        close = nearest(kind, FILLERS)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise RecaffeError(f"unknown filler {kind!r}{hint} (known: {', '.join(FILLERS)})")
    if param.sparse != -1 and kind != "gaussian":
        raise RecaffeError(f"sparse is an option of the gaussian filler, not of {kind!r}")
    return FILLERS[kind](param, shape, rng, dtype)


def _constant(param: Any, shape: tuple[int, ...], rng: "np.random.Generator", dtype: Any) -> np.ndarray:
    return np.broadcast_to(np.asarray(param.value, dtype), shape)


def _uniform(param: Any, shape: tuple[int, ...], rng: "np.random.Generator", dtype: Any) -> np.ndarray:
    if param.max < param.min:
        raise RecaffeError(f"uniform filler: max {param.max:g} is below min {param.min:g}")
    return _in_parts(lambda count: rng.uniform(param.min, param.max, count), shape, dtype)


def _gaussian(param: Any, shape: tuple[int, ...], rng: "np.random.Generator", dtype: Any) -> np.ndarray:
    if param.std < 0:
        raise RecaffeError(f"gaussian filler: std is {param.std:g}, expected 0 or more")
    values = _in_parts(lambda count: rng.normal(param.mean, param.std, count), shape, dtype)
    if param.sparse == -1:
        return values
    if param.sparse < 1 or not shape:
        raise RecaffeError(f"gaussian filler: sparse is {param.sparse}, expected 1 or more on a blob with axes")
    return values * (rng.random(shape) < param.sparse / shape[0])


def _positive_unitball(param: Any, shape: tuple[int, ...], rng: "np.random.Generator", dtype: Any) -> np.ndarray:
    if not shape:
        raise RecaffeError("positive_unitball filler: the blob needs at least one axis")
    values = rng.random(shape)
    rows = values.reshape(shape[0], -1)
    rows /= rows.sum(axis=1, keepdims=True)
    return values


def _xavier(param: Any, shape: tuple[int, ...], rng: "np.random.Generator", dtype: Any) -> np.ndarray:
    limit = np.sqrt(3 / _fan(param, shape))
    return _in_parts(lambda count: rng.uniform(-limit, limit, count), shape, dtype)


def _msra(param: Any, shape: tuple[int, ...], rng: "np.random.Generator", dtype: Any) -> np.ndarray:
    std = np.sqrt(2 / _fan(param, shape))
    return _in_parts(lambda count: rng.normal(0, std, count), shape, dtype)


def _bilinear(param: Any, shape: tuple[int, ...], rng: "np.random.Generator", dtype: Any) -> np.ndarray:
    if len(shape) != 4 or shape[2] != shape[3]:
        raise RecaffeError(f"bilinear filler: expected a blob of 4 axes with square kernels, got the shape {shape}")
    size = shape[3]
    factor = (size + 1) // 2
    ramp = 1 - np.abs(np.arange(size) - (size - 1) / 2) / factor
    return np.broadcast_to(np.outer(ramp, ramp), shape)


def _in_parts(draw: Callable[[int], np.ndarray], shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """What ``draw(count)`` gives for all values of ``shape``, a part at a time."""
    values = np.empty(shape, dtype)
    flat = values.reshape(-1)
    for start in range(0, flat.size, PART):
        part = flat[start : start + PART]
        part[:] = draw(part.size)
    return values


def _fan(param: Any, shape: tuple[int, ...]) -> float:
    count = int(np.prod(shape))
    fan_in = count / shape[0] if shape else 1
    fan_out = count / shape[1] if len(shape) > 1 else count
    norm = param.variance_norm
    if norm == FillerParameter.AVERAGE:
        return (fan_in + fan_out) / 2
    return fan_out if norm == FillerParameter.FAN_OUT else fan_in


FILLERS: dict[str, Fill] = {
    "constant": _constant,
    "uniform": _uniform,
    "gaussian": _gaussian,
    "positive_unitball": _positive_unitball,
    "xavier": _xavier,
    "msra": _msra,
    "bilinear": _bilinear,
}
