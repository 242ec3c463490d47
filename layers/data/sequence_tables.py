"""Sequences with labels out of a table: a row is a step, and a column says which sequence it belongs to."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...framework.errors import RecaffeError
from .sequences import Sequences, SequenceWriter
from .tables import column_place, read_tables


def read_sequence_table(
    path: str, columns: Sequence[str], sequence_column: str, label_column: str, delimiter: str,
    each_step: bool, dtype: Any,
) -> tuple[Sequences, Sequences]:  # fmt: skip
    """The sequences (steps x columns) and their labels, one for ``each_step`` or one.

    A new sequence starts where the value in ``sequence_column`` changes.  Without ``columns`` they are all others.
    """
    wanted = [*columns, sequence_column, label_column] if columns else []
    names, rows = read_tables([path], wanted, delimiter)
    numbers, label = (column_place(path, name, names) for name in (sequence_column, label_column))
    places = [names.index(name) for name in columns or names if name not in (sequence_column, label_column)]
    if not places:
        raise RecaffeError(f"{path}: there is no column of data beside {sequence_column!r} and {label_column!r}")
    values = rows.values
    starts = [0, *(np.flatnonzero(np.diff(values[:, numbers])) + 1), len(values)]
    data, labels = SequenceWriter(dtype, (len(places),)), SequenceWriter(dtype)
    for start, stop in pairwise(starts):
        data.add(values[start:stop, places])
        data.end_sequence()
        of_steps = values[start:stop, label]
        if not each_step and (of_steps != of_steps[0]).any():
            raise RecaffeError(
                f"{path}: the sequence whose {sequence_column!r} is {values[start, numbers]:g} has several labels;"
                " they must be one in all of its rows, as label_each_step is false"
            )
        labels.add(of_steps if each_step else of_steps[:1])
        labels.end_sequence()
    return data.finish(), labels.finish()
