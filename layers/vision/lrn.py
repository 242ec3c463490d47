"""LRN: each value divided by a power of the squares around it."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import Layer, register
from ...proto import LRNParameter


@fusable
def lrn_forward(
    backend: Any, x: Any, scale: Any, out: Any, axes: tuple[int, ...], size: int, alpha: float, beta: float, k: float
) -> None:
    """scale = k + alpha / size^len(axes) * windowsum(x^2), out = x * scale^-beta; windows lie along ``axes``."""
    xp = backend.xp
    xp.multiply(x, x, out=out)
    scale[...] = _window_sums(out, axes, size)
    scale *= alpha / size ** len(axes)
    scale += k
    xp.power(scale, -beta, out=out)
    out *= x


@fusable
def lrn_backward(
    backend: Any, x: Any, scale: Any, dy: Any, dx: Any, axes: tuple[int, ...], size: int, alpha: float, beta: float
) -> None:
    """dx = dy * scale^-beta - 2 alpha beta / size^len(axes) * x * windowsum(dy * x * scale^(-beta - 1))."""
    xp = backend.xp
    direct = xp.power(scale, -beta)
    direct *= dy
    xp.multiply(direct, x, out=dx)
    dx /= scale
    dx[...] = _window_sums(dx, axes, size)
    dx *= x
    dx *= -2 * alpha * beta / size ** len(axes)
    dx += direct


def _window_sums(values: Any, axes: tuple[int, ...], size: int) -> Any:
    """The sum of ``values`` (N, C, H, W) over a window of ``size`` around each place, along each of ``axes``."""
    for axis in axes:
        sums = values.copy()
        along, result = values.swapaxes(axis, 0), sums.swapaxes(axis, 0)
        for shift in range(1, min(size // 2 + 1, len(along))):
            result[:-shift] += along[shift:]
            result[shift:] += along[:-shift]
        values = sums
    return values


@register
class LRN(Layer):
    """y = x * (k + alpha / n * sum of x^2 over a window of n values around x)^-beta

    Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", NIPS 2012, section
    3.3.  The window is ``local_size`` channels at the same place (ACROSS_CHANNELS, n = local_size), or a square
    of the same channel (WITHIN_CHANNEL, n = local_size^2, and k is always 1); beyond the edges are zeros.

    - bottom: x (N, C, H, W)
    - top: y (N, C, H, W)

    Options (``lrn_param``): local_size (5, odd), alpha (1), beta (0.75), k (1), norm_region (ACROSS_CHANNELS).
    """

    type = "LRN"
    bottoms, tops = (1, 1), (1, 1)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.lrn_param
        self.size, self.alpha, self.beta = param.local_size, param.alpha, param.beta
        if self.size % 2 == 0:
            self.fail(f"local_size is {self.size}, expected an odd number")
        across = param.norm_region == LRNParameter.ACROSS_CHANNELS
        self.axes: tuple[int, ...] = (1,) if across else (2, 3)
        self.k = param.k if across else 1.0

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        if bottom[0].ndim != 4:
            self.fail(f"bottom {bottom[0].name!r} has shape {bottom[0].shape}, expected 4 axes (N, C, H, W)")
        top[0].reshape_like(bottom[0])
        self.scale = self.xp.empty(bottom[0].shape, self.dtype)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, y = bottom[0].data, top[0].data
        lrn_forward(self.backend, x, self.scale, y, self.axes, self.size, self.alpha, self.beta, self.k)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            x, dy, dx = bottom[0].data, top[0].diff, bottom[0].diff
            lrn_backward(self.backend, x, self.scale, dy, dx, self.axes, self.size, self.alpha, self.beta)
