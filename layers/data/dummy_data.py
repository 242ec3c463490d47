"""DummyData: blobs filled by fillers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...framework.blob import Blob
from ...framework.errors import RecaffeError
from ...framework.filler import fill_values
from ...framework.layer import Layer, register
from ...proto import FillerParameter
from .batch_layer import own_generator


@register
class DummyData(Layer):
    """top i = values of filler i: constants are written once, random values are drawn anew in each pass.

    Shapes
        top i: shape i (or, in old nets, num i x channels i x height i x width i)

    Options (dummy_data_param)
        shape: one for each top, or one for all; in place of it num, channels, height and width
        data_filler: one for each top, one for all, or none (zeros)
    """

    type = "DummyData"
    bottoms, tops = (0, 0), (1, None)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.dummy_data_param
        fillers = self._for_each_top(list(param.data_filler) or [FillerParameter()], top, "data_filler")
        for blob, shape in zip(top, self._shapes(top), strict=True):
            blob.reshape(shape)
        self.rng = own_generator(self.backend)
        self._random: list[tuple[Blob, Any]] = []
        for blob, filler in zip(top, fillers, strict=True):
            self._fill(blob, filler)
            if filler.type not in ("", "constant"):
                self._random.append((blob, filler))

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """The shapes are those of the options."""

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        for blob, filler in self._random:
            self._fill(blob, filler)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        """There is nothing below."""

    def get_state(self) -> dict[str, Any]:
        return {"rng": self.rng.bit_generator.state} if self._random else {}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.rng.bit_generator.state = state["rng"]

    def _fill(self, blob: Blob, filler: Any) -> None:
        try:
            values = fill_values(filler, blob.shape, self.rng)
        except RecaffeError as error:
            self.fail(f"top {blob.name!r}: {error}")
        blob.data[...] = self.backend.to_device(np.asarray(values, self.dtype))

    def _shapes(self, top: Sequence[Blob]) -> list[tuple[int, ...]]:
        param = self.param.dummy_data_param
        old = {name: list(getattr(param, name)) for name in ("num", "channels", "height", "width")}
        if param.shape:
            if any(old.values()):
                self.fail("dummy_data_param: give shape, or num, channels, height and width; not both")
            return self._for_each_top([tuple(shape.dim) for shape in param.shape], top, "shape")
        axes = [self._for_each_top(sizes, top, name) for name, sizes in old.items()]
        return list(zip(*axes, strict=True))

    def _for_each_top(self, values: list[Any], top: Sequence[Blob], name: str) -> list[Any]:
        if len(values) not in (1, len(top)):
            self.fail(
                f"dummy_data_param: {name} is given {len(values)} time(s);"
                f" give it once, or for each of the {len(top)} top(s)"
            )
        return values * len(top) if len(values) == 1 else values
