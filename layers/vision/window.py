"""Windows that slide over the spatial axes: their sizes, and what all of them see at one offset.

Window p of an axis covers the positions p * stride - pad + k * dilation, for k in 0 .. kernel - 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ...framework.layer import Layer

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Window:
    """kernel, stride, pad and dilation, each with one number per spatial axis."""

    kernel: Sizes
    stride: Sizes
    pad: Sizes
    dilation: Sizes

    def output_sizes(self, sizes: Sequence[int]) -> Sizes:
        """How many windows fit on each axis: (size + 2 pad - extent) // stride + 1."""
        return tuple(
            (size + 2 * p - self._extent(k, d)) // s + 1
            for size, k, s, p, d in zip(sizes, self.kernel, self.stride, self.pad, self.dilation, strict=True)
        )

    def input_sizes(self, sizes: Sequence[int]) -> Sizes:
        """The smallest input in which so many windows fit: stride (size - 1) + extent - 2 pad."""
        return tuple(
            s * (size - 1) + self._extent(k, d) - 2 * p
            for size, k, s, p, d in zip(sizes, self.kernel, self.stride, self.pad, self.dilation, strict=True)
        )

    def with_leading_axes(self, count: int) -> "Window":
        """The same window over ``count`` more axes, in front, on which it has size 1."""
        ones, zeros = (1,) * count, (0,) * count
        return Window(ones + self.kernel, ones + self.stride, zeros + self.pad, ones + self.dilation)

    @staticmethod
    def _extent(kernel: int, dilation: int) -> int:
        return dilation * (kernel - 1) + 1


def read_window(layer: Layer, param: Any, axes: int) -> Window:
    """The window that a ConvolutionParameter describes, over ``axes`` spatial axes."""
    kernel = _per_axis(layer, param, "kernel_size", "kernel", axes, None)
    stride = _per_axis(layer, param, "stride", "stride", axes, 1)
    pad = _per_axis(layer, param, "pad", "pad", axes, 0)
    dilation = _per_axis(layer, param, "dilation", None, axes, 1)
    for name, values in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if any(value < 1 for value in values):
            layer.fail(f"{name} is {_listed(values)}, expected at least 1 on every axis")
    return Window(kernel, stride, pad, dilation)


def _per_axis(layer: Layer, param: Any, name: str, short: str | None, axes: int, default: int | None) -> Sizes:
    """One number per axis from the repeated field ``name`` or from ``short``_h and ``short``_w."""
    values = tuple(getattr(param, name))
    given = [f"{short}_{end}" for end in "hw" if short and param.HasField(f"{short}_{end}")]
    if given:
        if values:
            layer.fail(f"{name} and {given[0]} are both given; give {name}, or {short}_h and {short}_w")
        if axes != 2:
            layer.fail(f"{given[0]} is for 2 spatial axes, but the bottom has {axes}; give {name} instead")
        if len(given) == 1 and short != "pad":
            layer.fail(f"{given[0]} is given alone; give both {short}_h and {short}_w")
        return getattr(param, f"{short}_h"), getattr(param, f"{short}_w")
    if not values:
        if default is None and axes:
            layer.fail(f"no {name} is given; give {name}, or {short}_h and {short}_w")
        return (default or 0,) * axes
    if len(values) not in (1, axes):
        layer.fail(f"{name} is given {len(values)} times; expected once, or once for each of the {axes} spatial axes")
    return values * axes if len(values) == 1 else values


def _listed(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


def windows_extent(kernel: Sizes, stride: Sizes, dilation: Sizes, sizes: Sizes) -> Sizes:
    """How far ``sizes`` windows reach on each axis, from the start of the first to the end of the last."""
    return tuple(
        (size - 1) * s + (k - 1) * d + 1 for k, s, d, size in zip(kernel, stride, dilation, sizes, strict=True)
    )


def window_views(x: Any, kernel: Sizes, stride: Sizes, dilation: Sizes, sizes: Sizes) -> Iterator[tuple[Sizes, Any]]:
    """For each offset within the kernel: the offset, and a view (N, C, *sizes) of what every window has there.

    ``x`` (N, C, *extent) starts where the first window starts: it is padded already.
    """
    for offset in product(*map(range, kernel)):
        steps = tuple(
            slice(k * d, k * d + (size - 1) * s + 1, s)
            for k, s, d, size in zip(offset, stride, dilation, sizes, strict=True)
        )
        yield offset, x[(..., *steps)]


def needs_padding(x: Any, pad: Sizes, extent: Sizes) -> bool:
    """Whether windows of this pad and extent reach beyond x (N, C, *sizes)."""
    return any(pad) or any(reach > size for reach, size in zip(extent, x.shape[2:], strict=True))


def padded(backend: Any, x: Any, pad: Sizes, extent: Sizes, value: float) -> Any:
    """x (N, C, *sizes) as the windows see it: (N, C, *extent) or more, with ``value`` outside of x."""
    if not needs_padding(x, pad, extent):
        return x
    result = backend.scratch("window.padded", (*x.shape[:2], *extent), x.dtype)
    result.fill(value)
    outer, inner = overlap(x.shape[2:], pad, extent)
    result[outer] = x[inner]
    return result


def overlap(sizes: Sizes, pad: Sizes, extent: Sizes) -> tuple[Any, Any]:
    """Where the padded array and the plain one hold the same values: an index into each."""
    counts = [max(0, min(size, reach - p)) for size, p, reach in zip(sizes, pad, extent, strict=True)]
    outer = tuple(slice(p, p + count) for p, count in zip(pad, counts, strict=True))
    inner = tuple(slice(0, count) for count in counts)
    return (..., *outer), (..., *inner)
