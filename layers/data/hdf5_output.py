"""HDF5Output: rows of blobs written to an HDF5 file."""

import logging
import shutil
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...framework.blob import Blob
from ...framework.hdf5 import import_h5py
from ...framework.layer import Layer, register

log = logging.getLogger("recaffe")
DATASETS = ("data", "label")


@register
class HDF5Output(Layer):
    """The rows of bottom 0 and bottom 1 of every forward pass, one pass after the other, in one file.

    Shapes
        bottom 0 (dataset ``data``): N x ...; bottom 1 (dataset ``label``): N x ...

    Options (hdf5_output_param)
        file_name: it appears, whole, when the net is closed; until then the rows are in file_name.partial
    """

    type = "HDF5Output"
    bottoms, tops = (2, 2), (0, 0)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self._h5py = import_h5py()
        self.path = Path(self.param.hdf5_output_param.file_name)
        if not self.path.name:
            self.fail("hdf5_output_param.file_name is not given")
        if not self.path.parent.is_dir():
            self.fail(f"{self.path}: the folder {self.path.parent} does not exist")
        if self.path.is_dir():
            self.fail(f"{self.path}: cannot be written: it is a folder")
        self.partial = self.path.with_name(self.path.name + ".partial")
        self.rows = 0
        self._file: Any = None
        self._finish: Any = None

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        data, label = bottom
        if not data.ndim or not label.ndim or data.shape[0] != label.shape[0]:
            self.fail(
                f"bottom {data.name!r} has shape {data.shape} and {label.name!r} {label.shape};"
                " expected equally many rows"
            )

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        if self._file is None:
            self._open()
        try:
            for name, blob in zip(DATASETS, bottom, strict=True):
                self._append(name, self.backend.to_host(blob.data))
        except OSError as error:
            self.fail(f"{self.partial}: cannot be written: {error}")
        self.rows += bottom[0].shape[0]

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        for blob, wanted in zip(bottom, propagate_down, strict=True):
            if wanted:
                blob.diff.fill(0)

    def allow_force_backward(self, bottom_index: int) -> bool:
        return False

    def get_state(self) -> dict[str, Any]:
        if self._file is not None:
            self._file.flush()
        return {"rows": self.rows}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.close()
        self.rows = int(state["rows"])

    def close(self) -> None:
        if self._finish is not None:
            self._finish()
        self._file = self._finish = None

    def _append(self, name: str, values: Any) -> None:
        dataset = self._file.get(name)
        if dataset is None:
            dataset = self._file.create_dataset(
                name, (0, *values.shape[1:]), values.dtype, maxshape=(None, *values.shape[1:])
            )
        if dataset.shape[1:] != values.shape[1:]:
            self.fail(f"{self.path}: dataset {name!r} has rows of {dataset.shape[1:]}, cannot take {values.shape[1:]}")
        dataset.resize(self.rows + len(values), axis=0)
        dataset[self.rows :] = values

    def _open(self) -> None:
        """Start the file, or go on after the first ``rows`` rows of an earlier run's."""
        try:
            if self.rows and not self.partial.exists() and self.path.exists():
                shutil.copyfile(self.path, self.partial)
            if self.rows and self._holds_rows():
                self._file = self._h5py.File(self.partial, "r+")
            else:
                self._file = self._h5py.File(self.partial, "w")
        except OSError as error:
            self.fail(f"{self.partial}: cannot be written: {error}")
        self._finish = weakref.finalize(self, finish, self._file, self.partial, self.path)

    def _holds_rows(self) -> bool:
        try:
            with self._h5py.File(self.partial, "r") as file:
                found = min(len(file[name]) for name in DATASETS)
        except (OSError, KeyError):
            found = 0
        if found < self.rows:
            log.warning("%s: the first %d rows of the resumed run are gone; it starts anew", self.path, self.rows)
            self.rows = 0
        return self.rows > 0


def finish(file: Any, partial: Path, path: Path) -> None:
    """Close the file and give it its name."""
    file.close()
    partial.replace(path)
