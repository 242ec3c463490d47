"""SequenceData: sequences with labels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...framework.errors import RecaffeError
from ...framework.hdf5 import is_hdf5, open_hdf5
from ...framework.layer import register
from ...proto import TRAIN
from .batch_layer import BatchLayer
from .example_source import ExampleSource, Padding, check_length, check_room, put_columns
from .hdf5_data import rows_of
from .prefetcher import Batch, BatchSource
from .sequence_tables import read_sequence_table
from .sequences import Sequences, SequenceWriter
from .texts import PairLine, read_pairs
from .vocabulary import PAD, Vocabulary, open_vocabulary

ROWS = 256  # sequences that are read at once from HDF5
TEXT_OPTIONS, TABLE_OPTIONS = ("labels", "vocabulary", "label_vocabulary"), ("label_column", "columns")


@dataclass
class SequenceDataOptions:
    """See SequenceData."""

    source: str
    labels: str = ""
    vocabulary: str = ""
    label_vocabulary: str = ""
    label_each_step: bool = False
    batch_size: int = 32
    length: int = 0
    sort_batches: int = 1
    shuffle: bool = False
    ignore_label: int = -1
    padding: Padding = Padding.LENGTHS
    sequence_column: str = ""
    label_column: str = ""
    columns: list[str] = field(default_factory=list)
    delimiter: str = ","


@register
class SequenceData(BatchLayer):
    """data = sequences, one a column, padded behind their end; label = the class of each, or of each of its steps.

    Shapes
        tops data: T x N x ..., padded with ``<pad>`` or 0; label: N, or T x N with ``label_each_step``, padded with
        ``ignore_label``; the true steps (optional): their numbers N or their mask T x N, as ``padding`` says.
        T is the longest of each batch, or ``length``.

    Options (sequence_data_param)
        source, a text: lines ``sequence TAB label``; or the sequences, one a line, and labels: the file of labels.
            vocabulary, label_vocabulary: files, see ``Vocabulary``; without them sequences are bytes and labels
            whole numbers between blanks
        source, HDF5: datasets named like the tops: data (M x L x ...), label (M, or M x L) and, unless all L steps
            are true, one named ``lengths`` (M)
        source, a table: CSV whose first line names the columns, or HDF5 whose datasets of one axis are the columns; a
            row is a step (D values).  sequence_column: a new sequence starts where its number changes; label_column;
            columns: those of data (by default all others); delimiter: of CSV (",")
        label_each_step: whether each step has a label, or the sequence one (false)
        batch_size: N (32); length: fixed T, 0 for the longest of each batch (0)
        sort_batches: the examples of so many batches are sorted by length before they are cut into batches (1)
        shuffle: a new random order each epoch, in phase TRAIN (false); ignore_label (-1)
        padding: LENGTHS or MASK, which is 1 at true steps and 0 at padded ones (LENGTHS).
    """

    type = "SequenceData"
    tops = (2, 3)
    options_type = SequenceDataOptions

    def open_source(self, tops: int, rng: np.random.Generator) -> BatchSource:
        options = self.options
        check_length("length", options.length)
        padding = 0
        if options.sequence_column:
            refuse(options, TEXT_OPTIONS, "is a table, which has numbers and labels in it")
            data, labels = read_table(options, self.dtype)
        elif is_hdf5(options.source):
            refuse(options, TEXT_OPTIONS, "is HDF5, which has numbers and labels in it")
            refuse(options, TABLE_OPTIONS, "is no table without a sequence_column")
            data, labels = read_hdf5(options, self.param.top[0], self.param.top[1], self.dtype)
        else:
            refuse(options, TABLE_OPTIONS, "is no table without a sequence_column")
            vocabulary = open_vocabulary(options.vocabulary)
            padding = vocabulary.number(PAD) or 0
            data, labels = read_text(options, vocabulary)
        shuffle = options.shuffle and self.phase == TRAIN
        return LabelledSource(data, labels, padding, tops, options, shuffle, rng)


class LabelledSource(ExampleSource):
    """Sequences with their labels, as many as they have steps or one."""

    def __init__(
        self,
        data: Sequences,
        labels: Sequences,
        padding: int,
        tops: int,
        options: SequenceDataOptions,
        shuffle: bool,
        rng: np.random.Generator,
    ):
        super().__init__(data.lengths, options.batch_size, shuffle, options.sort_batches, rng)
        self._data, self._labels, self._padding, self._tops, self._options = data, labels, padding, tops, options

    def top_shapes(self) -> list[tuple[int, ...]]:
        return self._shapes(self.peek_examples())

    def _shapes(self, examples: np.ndarray) -> list[tuple[int, ...]]:
        N = len(examples)
        T = self._options.length or int(self._lengths[examples].max())
        label = (T, N) if self._options.label_each_step else (N,)
        return [(T, N, *self._data.values.shape[1:]), label, self._options.padding.shape(T, N)][: self._tops]

    def fill(self, batch: Batch) -> None:
        examples = self.next_examples()
        tops = [batch.array(i, shape) for i, shape in enumerate(self._shapes(examples))]
        put_columns(tops[0], [self._data[i] for i in examples], self._padding)
        if self._options.label_each_step:
            put_columns(tops[1], [self._labels[i] for i in examples], self._options.ignore_label)
        else:
            tops[1][...] = [self._labels[i][0] for i in examples]
        if self._tops == 3:
            self._options.padding.write(tops[2], self._lengths[examples])


def refuse(options: SequenceDataOptions, names: Sequence[str], why: str) -> None:
    """Raise RecaffeError where one of these options is given: for this kind of source they mean nothing."""
    for name in names:
        if getattr(options, name):
            raise RecaffeError(f"{options.source} {why}; remove {name}")


def read_table(options: SequenceDataOptions, dtype: Any) -> tuple[Sequences, Sequences]:
    """The sequences and labels of a table."""
    path = options.source
    if not options.label_column:
        raise RecaffeError("sequence_column needs a label_column beside it")
    data, labels = read_sequence_table(
        path, options.columns, options.sequence_column, options.label_column, options.delimiter,
        options.label_each_step, dtype,
    )  # fmt: skip
    for i, (steps, own_labels) in enumerate(zip(data.lengths, labels.lengths, strict=True)):
        check_lengths(options, int(steps), int(own_labels), f"{path}, sequence {i}")
    return data, labels


def read_text(options: SequenceDataOptions, vocabulary: Vocabulary) -> tuple[Sequences, Sequences]:
    """The sequences and labels of text files."""
    label_vocabulary = Vocabulary.load(options.label_vocabulary) if options.label_vocabulary else None
    data, labels = SequenceWriter(vocabulary.dtype), SequenceWriter(np.int64)
    for pair in read_pairs(options.source, options.labels):
        data.add(pair.encode(0, vocabulary))
        labels.add(pair.encode(1, label_vocabulary) if label_vocabulary else whole_numbers(pair))
        check_lengths(options, data.end_sequence(), labels.end_sequence(), pair.where(1))
    if not data.count:
        raise RecaffeError(f"{options.source}: there are no sequences in it")
    return data.finish(), labels.finish()


def whole_numbers(pair: PairLine) -> np.ndarray:
    """The labels on the right of a pair, written as numbers."""
    try:
        return np.array([int(word) for word in pair.texts[1].split()], np.int64)
    except ValueError:
        raise RecaffeError(
            f"{pair.where(1)}: the labels are {pair.texts[1]!r}, expected whole numbers (or give label_vocabulary)"
        ) from None


def check_lengths(options: SequenceDataOptions, steps: int, labels: int, where: str) -> None:
    """Raise RecaffeError unless the sequence has as many labels as it should, and room."""
    expected = steps if options.label_each_step else 1
    if labels != expected:
        of_each = f"one for each of {steps} steps" if options.label_each_step else "1 (label_each_step is false)"
        raise RecaffeError(f"{where}: the sequence has {labels} label(s), expected {of_each}")
    check_room("length", options.length, steps, where)


def read_hdf5(options: SequenceDataOptions, data_name: str, label_name: str, dtype: Any) -> tuple[Sequences, Sequences]:
    """The sequences and labels of an HDF5 file, without padding."""
    path = options.source
    with open_hdf5(path) as file:
        names = [data_name, label_name, *(["lengths"] if "lengths" in file else [])]
        count, shapes = rows_of(file, path, names)
        if not shapes[0]:
            raise RecaffeError(f"{path}: dataset {data_name!r} has shape ({count},), expected sequences x steps x ...")
        L = shapes[0][0]
        expected = (L,) if options.label_each_step else ()
        if shapes[1] != expected:
            raise RecaffeError(
                f"{path}: dataset {label_name!r} has shape {(count, *shapes[1])}, expected {(count, *expected)}"
                f" as label_each_step is {str(options.label_each_step).lower()}"
            )
        data, labels = SequenceWriter(dtype, shapes[0][1:]), SequenceWriter(dtype)
        lengths = np.full(count, L) if len(names) == 2 else np.asarray(file["lengths"][()])
        if lengths.shape != (count,):
            raise RecaffeError(f"{path}: dataset 'lengths' has shape {lengths.shape}, expected {(count,)}")
        wrong = ~np.isin(lengths, np.arange(1, L + 1))
        if wrong.any():
            i = int(wrong.argmax())
            raise RecaffeError(
                f"{path}: row {i} of 'lengths' is {lengths[i]:g}, expected a whole number of steps from 1 to {L}"
            )
        for i, (sequence, label) in enumerate(hdf5_rows(file[data_name], file[label_name], count)):
            steps = int(lengths[i])
            data.add(sequence[:steps])
            labels.add(label[:steps] if options.label_each_step else label[None])
            check_lengths(options, data.end_sequence(), labels.end_sequence(), f"{path}, sequence {i}")
    return data.finish(), labels.finish()


def hdf5_rows(data: Any, labels: Any, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The rows of two datasets, read in blocks."""
    for start in range(0, count, ROWS):
        yield from zip(data[start : start + ROWS], labels[start : start + ROWS], strict=True)
