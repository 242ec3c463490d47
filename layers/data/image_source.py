"""ImageSource: batches of transformed images with their labels, from records of any kind."""

from typing import Any, NamedTuple

import numpy as np

from ...framework.errors import RecaffeError
from .prefetcher import Batch, BatchSource
from .transformer import Transformer

IN_CACHE = 1 << 17  # values that are transformed at once


class Record(NamedTuple):
    """An image, C x H x W, its label, and its key or line in what it comes from."""

    image: np.ndarray
    label: float
    place: Any


class ImageSource(BatchSource):
    """The shape of each batch is that of its first image once transformed; the others must agree.

    A subclass gives ``next_record``, ``where`` and the state of what it reads.
    """

    def __init__(self, batch_size: int, tops: int, transformer: Transformer, rng: "np.random.Generator"):
        if batch_size < 1:
            raise RecaffeError(f"batch_size is {batch_size}, expected 1 or more")
        self.batch_size, self.tops = batch_size, tops
        self.transformer, self.rng = transformer, rng

    def next_record(self) -> Record:
        """Read one record and go on to the next."""
        raise NotImplementedError

    def where(self, place: Any) -> str:
        """The words for ``place`` in messages."""
        raise NotImplementedError

    def top_shapes(self) -> list[tuple[int, ...]]:
        before = self.get_state()
        record = self.next_record()
        self.set_state(before)
        return [(self.batch_size, *self._shape(record)), (self.batch_size,)][: self.tops]

    def fill(self, batch: Batch) -> None:
        record = self.next_record()
        shape, size = self._shape(record), record.image.shape
        images = batch.array(0, (self.batch_size, *shape))
        labels = batch.array(1, (self.batch_size,)) if self.tops > 1 else None
        step = max(IN_CACHE // images[0].size, 1)
        for start in range(0, self.batch_size, step):
            records = [record] if not start else []
            while len(records) < min(step, self.batch_size - start):
                record = self.next_record()
                if record.image.shape != size:
                    self._check_shape(record, shape)
                records.append(record)
            self.transformer.transform([record.image for record in records], images[start : start + step])
            if labels is not None:
                labels[start : start + step] = [record.label for record in records]

    def _check_shape(self, record: Record, shape: tuple[int, int, int]) -> None:
        if self._shape(record) != shape:
            raise RecaffeError(
                f"{self.where(record.place)}: the image has shape {self._shape(record)}, expected {shape} as the"
                " first of its batch; resize or crop the images, or set batch_size: 1"
            )

    def _shape(self, record: Record) -> tuple[int, int, int]:
        try:
            return self.transformer.output_shape(record.image.shape)
        except RecaffeError as error:
            raise RecaffeError(f"{self.where(record.place)}: {error}") from None

    def get_state(self) -> dict[str, Any]:
        return {"rng": self.rng.bit_generator.state}
