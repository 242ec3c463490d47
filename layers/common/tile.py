"""Tile."""

import math
from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import Layer, register


@register
class Tile(Layer):
    """y = x repeated along one axis.

    dx = sum of the tiles of dy.

    Shapes
        bottom x: any with the axis; top y: as x, ``tiles`` times as long along the axis

    Options (tile_param)
        tiles: how often; axis (1).
    """

    type = "Tile"
    bottoms, tops = (1, 1), (1, 1)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.tiles = self.param.tile_param.tiles
        if self.tiles < 1:
            self.fail("tile_param needs tiles, 1 or more")

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        shape = bottom[0].shape
        axis = self.axis(self.param.tile_param.axis, bottom[0])
        top[0].reshape(*shape[:axis], shape[axis] * self.tiles, *shape[axis + 1 :])
        self.outer, self.inner = math.prod(shape[:axis]), math.prod(shape[axis:])

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        y = top[0].data.reshape(self.outer, self.tiles, self.inner)
        y[...] = bottom[0].data.reshape(self.outer, 1, self.inner)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            dy = top[0].diff.reshape(self.outer, self.tiles, self.inner)
            dy.sum(axis=1, out=bottom[0].diff.reshape(self.outer, self.inner))
