"""Tables of numbers: named columns of CSV or HDF5 files."""

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from ...framework.errors import RecaffeError, nearest
from ...framework.hdf5 import is_hdf5, open_hdf5
from .sequences import Sequences, SequenceWriter

ROWS = 4096  # rows that are read at once


def read_tables(paths: Sequence[str], columns: Sequence[str], delimiter: str = ",") -> tuple[list[str], Sequences]:
    """The names of the columns (all, where ``columns`` is empty), and their rows, one sequence a file, in float64."""
    names = list(columns)
    writer: SequenceWriter | None = None
    for path in paths:
        blocks = hdf5_blocks(path, names) if is_hdf5(path) else csv_blocks(path, names, delimiter)
        for block in blocks:  # the first block of all puts the names there
            writer = writer or SequenceWriter(np.float64, (len(names),))
            writer.add(block)
        if writer is None:
            raise RecaffeError(f"{path}: there are no rows in it")
        writer.end_sequence()
    assert writer is not None
    return names, writer.finish()


def csv_blocks(path: str, names: list[str], delimiter: str) -> Iterator[np.ndarray]:
    """The rows of a CSV file.  Its first line may name the columns; else they are called 0, 1, 2, ..."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            lines = csv.reader(file, delimiter=delimiter)
            first = next((row for row in lines if row), [])
            has_header = not all(map(is_number, first))
            known = [name.strip() for name in first] if has_header else [str(i) for i in range(len(first))]
            names.extend([] if names else known)
            places = [column_place(path, name, known) for name in names]
            rows: list[list[float]] = []
            for row in lines if has_header else chain([first] if first else [], lines):
                if not row:
                    continue
                if len(row) != len(known):
                    raise RecaffeError(f"{path}:{lines.line_num}: {len(row)} columns, expected {len(known)}")
                rows.append([number(row[place], f"{path}:{lines.line_num}", known[place]) for place in places])
                if len(rows) == ROWS:
                    yield np.array(rows)
                    rows = []
            if rows:
                yield np.array(rows)
    except OSError as error:
        raise RecaffeError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise RecaffeError(f"{path}: neither HDF5 nor a text in UTF-8") from None
    except csv.Error as error:
        raise RecaffeError(f"{path}: not a table in CSV: {error}") from None


def hdf5_blocks(path: str, names: list[str]) -> Iterator[np.ndarray]:
    """The rows of the datasets of one axis in an HDF5 file; a column is a dataset."""
    with open_hdf5(path) as file:
        known = [name for name, one in file.items() if getattr(one, "ndim", None) == 1 and one.dtype.kind in "iuf"]
        names.extend([] if names else known)
        for name in names:
            column_place(path, name, known)
        counts = {name: len(file[name]) for name in names}
        if len(set(counts.values())) > 1:
            raise RecaffeError(f"{path}: the columns have different numbers of rows: {counts}")
        for start in range(0, next(iter(counts.values()), 0), ROWS):
            block = np.stack([file[name][start : start + ROWS].astype(np.float64) for name in names], axis=1)
            if not np.isfinite(block).all():
                row, column = np.argwhere(~np.isfinite(block))[0]
                value = block[row, column]
                raise RecaffeError(f"{path}: row {start + row} of {names[column]!r} is {value}, expected a number")
            yield block


def column_place(path: str, name: str, known: Sequence[str]) -> int:
    """The place of the column ``name``."""
    if name not in known:
        close = nearest(name, known)
        hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known) or 'none'}"
        raise RecaffeError(f"{path}: there is no column {name!r}; {hint}")
    return known.index(name)


def is_number(text: str) -> bool:
    """Whether ``text`` is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def number(text: str, where: str, column: str) -> float:
    """The number that ``text`` is; RecaffeError for anything else, and for nan and inf."""
    value = float(text) if is_number(text) else np.nan
    if not np.isfinite(value):
        raise RecaffeError(f"{where}: column {column!r} is {text!r}, expected a number")
    return value
