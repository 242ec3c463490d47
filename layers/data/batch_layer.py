"""BatchLayer: the base of the layers that read batches from files."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from ...framework.blob import Blob
from ...framework.errors import LayerError, RecaffeError
from ...framework.layer import Layer
from .prefetcher import BatchSource, Prefetcher


class BatchLayer(Layer):
    """tops = the next batch of a source, read ahead in the background (``data_param.prefetch`` batches).

    A subclass gives ``open_source``.  The layer's state is the place of the last batch that was used, so a
    resumed run goes on with the same records, shuffles, crops and mirrorings.
    """

    bottoms = (0, 0)
    transforms: ClassVar[bool] = False  # whether transform_param is used

    def open_source(self, tops: int, rng: "np.random.Generator") -> BatchSource:
        """The source that the layer's options describe, for so many tops; ``rng`` is the source's own."""
        raise NotImplementedError

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        if self.param.HasField("transform_param") and not self.transforms:
            self.fail(f"{self.type} does not transform its data; remove transform_param")
        rng = own_generator(self.backend)
        with self._as_layer_error():
            source = self.open_source(len(top), rng)
            shapes = source.top_shapes()
        for blob, shape in zip(top, shapes, strict=True):
            blob.reshape(shape)
        self._prefetcher = Prefetcher(source, len(top), self.dtype, self.param.data_param.prefetch)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """Each batch brings its own shape."""

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        with self._as_layer_error():
            batch = self._prefetcher.next()
        for blob, array in zip(top, batch.arrays, strict=True):
            blob.reshape(array.shape)
            blob.data[...] = self.backend.to_device(array)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        """There is nothing below."""

    def get_state(self) -> dict[str, Any]:
        return dict(self._prefetcher.state)

    def set_state(self, state: Mapping[str, Any]) -> None:
        if set(state) != set(self._prefetcher.state):
            self.fail("the saved state is that of another kind of layer; give this one another name")
        with self._as_layer_error():
            self._prefetcher.set_state(state)

    def close(self) -> None:
        self._prefetcher.close()

    @contextmanager
    def _as_layer_error(self) -> Iterator[None]:
        """Let errors about files name the layer too."""
        try:
            yield
        except LayerError:
            raise
        except RecaffeError as error:
            self.fail(str(error))


def own_generator(backend: Any) -> "np.random.Generator":
    """A generator for one layer alone: another thread may draw from it, and its state is the layer's."""
    return np.random.default_rng(int(backend.host_rng.integers(1 << 63)))
