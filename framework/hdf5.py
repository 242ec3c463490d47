"""Opening HDF5 files with h5py, which is optional, and clear errors."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import RecaffeError

SIGNATURE = b"\x89HDF\r\n\x1a\n"


def import_h5py() -> Any:
    """The module h5py, or an error that says how to get it."""
    try:
        import h5py
    except ImportError:
        raise RecaffeError("HDF5 files need h5py, which is not installed: pip install 'recaffe[data]'") from None
    return h5py


def is_hdf5(path: str | os.PathLike) -> bool:
    """Whether the file begins as HDF5 files do; a file that cannot be read does not."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(SIGNATURE)) == SIGNATURE
    except OSError:
        return False


@contextmanager
def open_hdf5(path: str | os.PathLike) -> Iterator[Any]:
    """The HDF5 file ``path`` for reading; faults in it, found now or while it is read, become RecaffeErrors."""
    h5py = import_h5py()
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (KeyError, OSError, RuntimeError, ValueError) as error:  # whatever h5py raises for a broken object
        if not Path(path).exists():
            raise RecaffeError(f"{path}: there is no such file") from None
        raise RecaffeError(f"{path}: cannot be read as HDF5, it is corrupt or cut short ({error})") from None
