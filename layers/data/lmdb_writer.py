"""Writing LMDB databases that the Data layer, and Caffe, read."""

import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ...framework.errors import RecaffeError
from .datum import make_datum
from .optional import require

FIRST_SIZE = 1 << 26  # bytes; grows as it fills
RECORDS_A_TRANSACTION = 1000


def write_lmdb(path: str | os.PathLike, pairs: Iterable[tuple[np.ndarray | bytes, int]]) -> int:
    """Write (image, label) ``pairs`` as Datum records under the keys 00000000, 00000001, ...; gives their number.

    An image is C x H x W bytes (uint8) or floats, or the bytes of an image file.  The database is written
    beside ``path`` and takes its place when it is whole; an LMDB database that was there is replaced.
    Raises RecaffeError where something else is at ``path``, or there are no pairs.
    """
    target = Path(path)
    if target.exists() and not is_lmdb_folder(target):
        raise RecaffeError(f"{path}: something that is not an LMDB database is here already; delete or move it")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        temporary.mkdir(parents=True)
        count = fill_lmdb(temporary, pairs)
        if not count:
            raise RecaffeError(f"{path}: not written: there are no records")
        replace_folder(temporary, target)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError):
            raise RecaffeError(f"{path}: cannot be written: {error.strerror or error}") from None
        raise
    return count


def fill_lmdb(folder: Path, pairs: Iterable[tuple[np.ndarray | bytes, int]]) -> int:
    """Write the records into a new database in ``folder``."""
    lmdb = require("lmdb", "writing an LMDB database")
    count = 0
    with lmdb.open(str(folder), map_size=FIRST_SIZE, lock=False) as env:
        waiting: list[tuple[bytes, bytes]] = []
        for count, (image, label) in enumerate(pairs, start=1):
            waiting.append((f"{count - 1:08d}".encode(), make_datum(image, label).SerializeToString()))
            if len(waiting) == RECORDS_A_TRANSACTION:
                put_records(env, waiting)
                waiting.clear()
        put_records(env, waiting)
        env.sync(True)
    return count


def put_records(env: Any, records: list[tuple[bytes, bytes]]) -> None:
    """Add the records in one transaction, in a database that grows as needed."""
    lmdb = require("lmdb", "writing an LMDB database")
    while True:
        try:
            with env.begin(write=True) as transaction:
                for key, value in records:
                    transaction.put(key, value)
            return
        except lmdb.MapFullError:
            env.set_mapsize(env.info()["map_size"] * 2)


def is_lmdb_folder(path: Path) -> bool:
    """Whether ``path`` holds an LMDB database and nothing else (an empty folder counts)."""
    return path.is_dir() and {entry.name for entry in path.iterdir()} <= {"data.mdb", "lock.mdb"}


def replace_folder(new: Path, target: Path) -> None:
    """Let ``new`` take the place of ``target``."""
    old = target.with_name(f"{new.name}.old")
    if target.exists():
        target.rename(old)
    new.rename(target)
    shutil.rmtree(old, ignore_errors=True)
