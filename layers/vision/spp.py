"""SPP: spatial pyramid pooling."""

import math
from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import Layer, register
from ...proto import LayerParameter
from .pooling import Pooling


@register
class SPP(Layer):
    """y = the poolings of x into 1 x 1, 2 x 2, 4 x 4, ... windows, one after the other.

    Level i has 2^i windows on an axis of size S, of size and stride k = ceil(S / 2^i), with the padding
    (2^i k - S + 1) / 2, rounded down.  dx is the sum of what the levels give.

    He et al., "Spatial Pyramid Pooling in Deep Convolutional Networks for Visual Recognition", ECCV 2014.

    Shapes
        bottom x: N x C x H x W
        top y: N x C (1 + 4 + ... + 4^(levels - 1)); of one level alone N x C x 1 x 1

    Options (spp_param)
        pyramid_height: the number of levels; pool: MAX (the default) or AVE.

    Raises LayerError for a map too small for so many levels.
    """

    type = "SPP"
    bottoms, tops = (1, 1), (1, 1)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.height = self.param.spp_param.pyramid_height
        if self.height < 1:
            self.fail("spp_param needs pyramid_height, 1 or more")

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        if bottom[0].ndim != 4:
            self.fail(f"bottom {bottom[0].name!r} has shape {bottom[0].shape}, expected N x C x H x W")
        self.levels = [self._level(bottom[0], 2**i) for i in range(self.height)]
        if self.height == 1:
            top[0].reshape(*self.levels[0][1].shape)
        else:
            top[0].reshape(bottom[0].shape[0], sum(math.prod(pooled.shape[1:]) for _, pooled in self.levels))
        self.part = Blob(bottom[0].shape, self.dtype, self.backend, f"{self.name}.part")

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        y, start = top[0].data.reshape(top[0].shape[0], -1), 0
        for pooling, pooled in self.levels:
            pooling.forward(bottom, [pooled])
            values = pooled.data.reshape(y.shape[0], -1)
            y[:, start : start + values.shape[1]] = values
            start += values.shape[1]

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if not propagate_down[0]:
            return
        dy, dx, start = top[0].diff.reshape(top[0].shape[0], -1), bottom[0].diff, 0
        dx.fill(0)
        self.part.share_data(bottom[0])
        for pooling, pooled in self.levels:
            diffs = pooled.diff.reshape(dy.shape[0], -1)
            diffs[...] = dy[:, start : start + diffs.shape[1]]
            start += diffs.shape[1]
            pooling.backward([pooled], [True], [self.part])
            dx += self.part.diff

    def _level(self, bottom: Blob, windows: int) -> tuple[Pooling, Blob]:
        """The pooling into ``windows`` x ``windows`` windows, and the blob that it fills."""
        param = LayerParameter(name=f"{self.name}, {windows} x {windows} windows", type="Pooling")
        pooling = param.pooling_param
        pooling.pool = self.param.spp_param.pool  # type: ignore[assignment]
        pooling.kernel_h, pooling.kernel_w = (-(-size // windows) for size in bottom.shape[2:])
        pooling.stride_h, pooling.stride_w = pooling.kernel_h, pooling.kernel_w
        pooling.pad_h = (windows * pooling.kernel_h - bottom.shape[2] + 1) // 2
        pooling.pad_w = (windows * pooling.kernel_w - bottom.shape[3] + 1) // 2
        level, pooled = Pooling(param, self.context), Blob((), self.dtype, self.backend, param.name)
        level.layer_setup([bottom], [pooled])
        level.reshape([bottom], [pooled])
        return level, pooled
