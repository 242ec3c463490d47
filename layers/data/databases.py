"""Databases of serialized records, sorted by key, opened for reading: LMDB and LevelDB."""

import threading
import weakref
from collections.abc import Generator
from pathlib import Path
from typing import Any

from ...framework.errors import RecaffeError
from .optional import require


class Database:
    """The records of one database.  Layers of one process that read the same path share it."""

    def __init__(self, path: str):
        self.path = path
        if next(self.records(b""), None) is None:
            raise RecaffeError(f"{path}: the database is empty")

    def records(self, after: bytes) -> Generator[tuple[bytes, Any], None, None]:
        """Keys and values in the order of the keys, from the first key that comes after ``after``."""
        raise NotImplementedError


class LmdbDatabase(Database):
    """A folder with data.mdb, or such a file itself."""

    def __init__(self, path: str):
        self._lmdb = require("lmdb", "reading an LMDB database")
        folder = Path(path)
        file = folder / "data.mdb" if folder.is_dir() else folder
        if not file.exists():
            raise RecaffeError(f"{path}: there is no LMDB database here ({file} does not exist)")
        try:
            self._env = self._lmdb.open(path, readonly=True, lock=False, subdir=folder.is_dir())
        except self._lmdb.Error as error:
            raise RecaffeError(f"{path}: cannot be opened as an LMDB database: {error}") from None
        expected = (self._env.info()["last_pgno"] + 1) * self._env.stat()["psize"]
        if file.stat().st_size < expected:
            raise RecaffeError(
                f"{path}: the LMDB database is cut short: {file.stat().st_size} bytes, expected {expected};"
                " copy or make it again"
            )
        super().__init__(path)

    def records(self, after: bytes) -> Generator[tuple[bytes, Any], None, None]:
        try:
            with self._env.begin(buffers=True) as transaction, transaction.cursor() as cursor:
                found = cursor.set_range(after + b"\0")
                while found:
                    yield bytes(cursor.key()), cursor.value()
                    found = cursor.next()
        except self._lmdb.Error as error:
            raise RecaffeError(f"{self.path}: damaged after key {after!r}: {error}") from None


class LevelDbDatabase(Database):
    """A folder that LevelDB has written."""

    def __init__(self, path: str):
        plyvel = require(
            "plyvel",
            f"reading the LevelDB database {path}",
            "plyvel (it has wheels for Python 3.11 and 3.12 only), or convert the database to LMDB",
        )
        if not (Path(path) / "CURRENT").exists():
            raise RecaffeError(f"{path}: there is no LevelDB database here ({Path(path) / 'CURRENT'} does not exist)")
        try:
            self._database = plyvel.DB(path)
        except (plyvel.Error, OSError) as error:
            raise RecaffeError(f"{path}: cannot be opened as a LevelDB database: {error}") from None
        self._error = plyvel.Error
        super().__init__(path)

    def records(self, after: bytes) -> Generator[tuple[bytes, Any], None, None]:
        try:
            with self._database.iterator(start=after, include_start=False, verify_checksums=True) as iterator:
                yield from iterator
        except self._error as error:
            raise RecaffeError(f"{self.path}: damaged after key {after!r}: {error}") from None


KINDS: dict[str, tuple[type[Database], str]] = {  # the class, and the file that tells it
    "LMDB": (LmdbDatabase, "data.mdb"),
    "LEVELDB": (LevelDbDatabase, "CURRENT"),
}

_opened: weakref.WeakValueDictionary[tuple[str, str], Database] = weakref.WeakValueDictionary()
_opening = threading.Lock()


def open_database(path: str, kind: str | None) -> Database:
    """The database at ``path`` of the ``kind`` LMDB or LEVELDB (None: whichever it is).

    Raises RecaffeError where it is not one.
    """
    if not path:
        raise RecaffeError("data_param.source is not given: the path of a database")
    if not Path(path).exists():
        raise RecaffeError(f"{path}: there is no such database")
    present = [known for known, (_, mark) in KINDS.items() if (Path(path) / mark).exists()]
    if kind and present and kind not in present:
        raise RecaffeError(f"{path}: this is a database of kind {present[0]}; set backend: {present[0]} in data_param")
    kind = kind or (present[0] if present else "LMDB")
    place = (kind, str(Path(path).resolve()))
    with _opening:
        database = _opened.get(place)
        if database is None:
            database = _opened[place] = KINDS[kind][0](path)
        return database
