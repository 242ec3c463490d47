"""ImageData: images and labels from a list of image files."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...framework.errors import RecaffeError
from ...framework.layer import register
from .batch_layer import BatchLayer
from .image_source import ImageSource, Record
from .images import read_image, resize
from .lists import read_lines
from .optional import refuse_other_options
from .order import Order
from .prefetcher import BatchSource
from .transformer import Transformer

OPTIONS = frozenset(
    ("source", "batch_size", "rand_skip", "shuffle", "new_height", "new_width", "is_color", "root_folder")
)


@register
class ImageData(BatchLayer):
    """top 0 = transformed images, top 1 = labels of the next lines of a list, again and again.

    Shapes
        top 0: N x C x H x W (C is 3: B, G, R; or 1; H and W after resizing and cropping);
        top 1 (optional): N.  Images of one batch must have one size.

    Options (image_data_param)
        source: a text file of lines ``file label``; root_folder is put before each file, as it is written
        batch_size: N; shuffle: a new random order each epoch
        rand_skip: start after a random number of lines below this
        new_height, new_width: resize bilinearly to this (both or neither)
        is_color: three channels (true) or one

    Options (transform_param): see ``Transformer``.
    """

    type = "ImageData"
    tops = (1, 2)
    transforms = True

    def open_source(self, tops: int, rng: "np.random.Generator") -> BatchSource:
        param = self.param.image_data_param
        refuse_other_options("image_data_param", param, OPTIONS)
        if bool(param.new_height) != bool(param.new_width):
            raise RecaffeError("image_data_param: new_height and new_width go together; give both or neither")
        transformer = Transformer(self.param.transform_param, self.phase, self.dtype, rng)
        return ImageListSource(param, param.batch_size, tops, transformer, rng)


class ImageListSource(ImageSource):
    """The images of a list, in its order or shuffled."""

    def __init__(self, param: Any, *args: Any):
        super().__init__(*args)
        self._param = param
        self._entries = read_image_list(param.source)
        self._order = Order(len(self._entries), param.shuffle, self.rng)
        if param.rand_skip:
            skip = int(self.rng.integers(param.rand_skip))
            if skip >= len(self._entries):
                raise RecaffeError(f"rand_skip skips {skip} images, but {param.source} has {len(self._entries)}")
            self._order.take(skip)

    def next_record(self) -> Record:
        if self._order.finished:
            self._order.start_epoch()
        line, file, label = self._entries[int(self._order.take(1)[0])]
        try:
            image = read_image(self._param.root_folder + file, self._param.is_color)
        except RecaffeError as error:
            raise RecaffeError(f"{self.where(line)}: {error}") from None
        if self._param.new_height:
            image = resize(image, self._param.new_height, self._param.new_width)
        return Record(image, label, line)

    def where(self, place: int) -> str:
        return f"{self._param.source}:{place}"

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), **self._order.get_state()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self._order.set_state(state)
        self.rng.bit_generator.state = state["rng"]


def read_image_list(path: str) -> list[tuple[int, str, float]]:
    """The lines of a list as (line number, file, label).  File names may have spaces in them."""
    if not path:
        raise RecaffeError("image_data_param.source is not given: a text file of lines `file label`")
    entries = []
    for number, line in read_lines(path):
        try:
            file, label = line.rsplit(maxsplit=1)
            entries.append((number, file, float(label)))
        except ValueError:
            raise RecaffeError(f"{path}:{number}: expected `file label`, found {line!r}") from None
    return entries
