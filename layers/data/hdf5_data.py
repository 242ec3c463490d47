"""HDF5Data: rows of datasets from a list of HDF5 files."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...framework.errors import RecaffeError
from ...framework.hdf5 import open_hdf5
from ...framework.layer import register
from .batch_layer import BatchLayer
from .lists import read_lines
from .optional import refuse_other_options
from .order import Order
from .prefetcher import Batch, BatchSource

OPTIONS = frozenset(("source", "batch_size", "shuffle"))


@register
class HDF5Data(BatchLayer):
    """top i = the next rows of the dataset named like top i, file after file, again and again.

    Shapes
        top i: N x (the dataset's shape without its first axis).  A file's datasets have equally many rows;
        a batch goes on into the next file.

    Options (hdf5_data_param)
        source: a text file that lists HDF5 files; batch_size: N
        shuffle: a new random order of the files each epoch, and of the rows of each file
    """

    type = "HDF5Data"
    tops = (1, None)

    def open_source(self, tops: int, rng: "np.random.Generator") -> BatchSource:
        param = self.param.hdf5_data_param
        refuse_other_options("hdf5_data_param", param, OPTIONS)
        if not param.source:
            raise RecaffeError("hdf5_data_param.source is not given: a text file that lists HDF5 files")
        return RowSource(param.source, list(self.param.top), param.batch_size, param.shuffle, self.dtype, rng)


class RowSource(BatchSource):
    """The rows of the files in a list; one file at a time is in memory."""

    def __init__(
        self,
        list_path: str,
        names: Sequence[str],
        batch_size: int,
        shuffle: bool,
        dtype: Any,
        rng: "np.random.Generator",
    ):
        if batch_size < 1:
            raise RecaffeError(f"batch_size is {batch_size}, expected 1 or more")
        self.names, self.batch_size, self.shuffle = names, batch_size, shuffle
        self.dtype, self.rng = dtype, rng
        self._paths: list[str] = []
        self._counts: list[int] = []
        for number, path in read_lines(list_path):
            try:
                with open_hdf5(path) as file:
                    count, shapes = rows_of(file, path, names)
            except RecaffeError as error:
                raise RecaffeError(f"{list_path}:{number}: {error}") from None
            if not self._paths:
                self._row_shapes = shapes
            elif shapes != self._row_shapes:
                raise RecaffeError(
                    f"{list_path}:{number}: {path}: rows have the shapes {shapes},"
                    f" those of {self._paths[0]} {self._row_shapes}"
                )
            self._paths.append(path)
            self._counts.append(count)
        self._loaded = -1
        self._values: list[np.ndarray] = []
        self._files = Order(len(self._paths), shuffle, rng)
        self._file = int(self._files.take(1)[0])
        self._rows = self._row_order()

    def top_shapes(self) -> list[tuple[int, ...]]:
        return [(self.batch_size, *shape) for shape in self._row_shapes]

    def fill(self, batch: Batch) -> None:
        arrays = [batch.array(i, shape) for i, shape in enumerate(self.top_shapes())]
        done = 0
        while done < self.batch_size:
            if self._rows.finished:
                self._next_file()
            self._load()
            rows = self._rows.take(self.batch_size - done)
            for array, values in zip(arrays, self._values, strict=True):
                values.take(rows, axis=0, out=array[done : done + len(rows)], mode="clip")
            done += len(rows)

    def _next_file(self) -> None:
        if self._files.finished:
            self._files.start_epoch()
        self._file = int(self._files.take(1)[0])
        self._rows = self._row_order()

    def _row_order(self) -> Order:
        return Order(self._counts[self._file], self.shuffle, self.rng)

    def _load(self) -> None:
        if self._loaded == self._file:
            return
        path = self._paths[self._file]
        self._values, self._loaded = [], -1  # frees the last file's rows before the next ones come
        with open_hdf5(path) as file:
            if rows_of(file, path, self.names) != (self._counts[self._file], self._row_shapes):
                raise RecaffeError(f"{path}: the file has changed while it was in use")
            for name in self.names:
                values = np.empty(file[name].shape, self.dtype)
                file[name].read_direct(values)
                self._values.append(values)
        self._loaded = self._file

    def get_state(self) -> dict[str, Any]:
        return {
            "rng": self.rng.bit_generator.state,
            "files": self._files.get_state(),
            "file": self._file,
            "rows": self._rows.get_state(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        self._files.set_state(state["files"])
        self._file = int(state["file"])
        if self._file >= len(self._paths):
            count = len(self._paths)
            raise RecaffeError(f"the saved state goes on in file {self._file} (from 0), but there are {count}")
        self._rows = self._row_order()
        self._rows.set_state(state["rows"])
        self.rng.bit_generator.state = state["rng"]

    def close(self) -> None:
        self._values, self._loaded = [], -1


def rows_of(file: Any, path: str, names: Sequence[str]) -> tuple[int, list[tuple[int, ...]]]:
    """The number of rows of the datasets ``names``, and the shape of one row of each."""
    shapes = []
    for name in names:
        if name not in file or not hasattr(file[name], "shape"):
            raise RecaffeError(f"{path}: there is no dataset {name!r} (it has: {', '.join(map(str, file)) or 'none'})")
        shape, dtype = file[name].shape, file[name].dtype
        if dtype.kind not in "iuf":
            raise RecaffeError(f"{path}: dataset {name!r} holds {dtype}, expected numbers")
        if not shape or not shape[0]:
            raise RecaffeError(f"{path}: dataset {name!r} of shape {shape} has no rows")
        shapes.append(shape)
    counts = {name: shape[0] for name, shape in zip(names, shapes, strict=True)}
    if len(set(counts.values())) > 1:
        raise RecaffeError(f"{path}: the datasets have different numbers of rows: {counts}")
    return shapes[0][0], [tuple(shape[1:]) for shape in shapes]
