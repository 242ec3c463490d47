"""Data: images and labels from a database of Datum records."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from ...framework.errors import RecaffeError
from ...framework.layer import register
from ...proto import DataParameter
from .batch_layer import BatchLayer
from .databases import Database, open_database
from .datum import read_datum
from .image_source import ImageSource, Record
from .optional import refuse_other_options
from .prefetcher import BatchSource
from .transformer import Transformer

OPTIONS = frozenset(("source", "batch_size", "rand_skip", "backend", "force_encoded_color", "prefetch"))


@register
class Data(BatchLayer):
    """top 0 = transformed images, top 1 = labels of the next records in the order of their keys, again and again.

    Shapes
        top 0: N x C x H x W (or the crop's height and width); top 1 (optional): N.  Images of one batch
        must have one size once they are cropped.

    Options (data_param)
        source: the database; backend: LMDB or LEVELDB, which needs plyvel
        batch_size: N; prefetch: batches read ahead (4)
        rand_skip: start after a random number of records below this
        force_encoded_color: decode to three channels

    Options (transform_param): see ``Transformer``; force_color and force_gray decode encoded images to
    three channels or one.
    """

    type = "Data"
    tops = (1, 2)
    transforms = True

    def open_source(self, tops: int, rng: "np.random.Generator") -> BatchSource:
        param, transform = self.param.data_param, self.param.transform_param
        refuse_other_options("data_param", param, OPTIONS)
        if transform.force_color and transform.force_gray:
            raise RecaffeError("transform_param: set force_color or force_gray, not both")
        color = True if transform.force_color or param.force_encoded_color else False if transform.force_gray else None
        kind = DataParameter.DB.Name(param.backend) if param.HasField("backend") else None
        return DatumSource(
            open_database(param.source, kind),
            color,
            param.rand_skip,
            param.batch_size,
            tops,
            Transformer(transform, self.phase, self.dtype, rng),
            rng,
        )


class DatumSource(ImageSource):
    """The records of a database in the order of their keys, again from the first after the last."""

    def __init__(self, database: Database, color: bool | None, rand_skip: int, *args: Any):
        super().__init__(*args)
        self._database, self._color = database, color
        self._after = b""  # the key of the last record read
        self._records = database.records(b"")
        for _ in range(self.rng.integers(rand_skip) if rand_skip else 0):
            self._next()

    def next_record(self) -> Record:
        key, value = self._next()
        try:
            return Record(*read_datum(value, self._color), key)
        except RecaffeError as error:
            raise RecaffeError(f"{self.where(key)}: {error}") from None

    def where(self, place: bytes) -> str:
        return f"{self._database.path}, key {place.decode(errors='backslashreplace')!r}"

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "after": np.frombuffer(self._after, np.uint8)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.close()
        self.rng.bit_generator.state = state["rng"]
        self._after = np.asarray(state["after"], np.uint8).tobytes()
        self._records = self._database.records(self._after)

    def close(self) -> None:
        with suppress(ValueError):  # in a forked child it may be half-way
            self._records.close()

    def _next(self) -> tuple[bytes, Any]:
        found = next(self._records, None)
        if found is None:
            self._records = self._database.records(b"")
            found = next(self._records)
        self._after = found[0]
        return found
