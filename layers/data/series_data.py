"""SeriesData: windows of numeric series."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ...framework.errors import RecaffeError
from ...framework.layer import register
from ...proto import TRAIN, atomic_write
from .batch_layer import BatchLayer
from .example_source import ExampleSource
from .prefetcher import Batch, BatchSource
from .sequences import Sequences
from .tables import column_place, read_tables
from .texts import find_files

ROWS = 1 << 16  # rows whose sums are made at once


@dataclass
class SeriesDataOptions:
    """See SeriesData."""

    source: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    target: str = ""
    delimiter: str = ","
    window: int = 32
    stride: int = 1
    horizon: int = 1
    target_each_step: bool = False
    statistics: str = ""
    mean: list[float] = field(default_factory=list)
    std: list[float] = field(default_factory=list)
    batch_size: int = 32
    shuffle: bool = False


@register
class SeriesData(BatchLayer):
    """data = T rows of a table; target = the next values of one of its columns.

    With rows x_0, x_1, ... and y the target's column, the window that starts at row s has data x_s ... x_{s+T-1} and
    target y_{s+T} ... y_{s+T+h-1}, or with ``target_each_step`` y_{s+t+h} at each step t.

    Shapes
        tops data: T x N x D; target: N x h, or T x N with ``target_each_step``.

    Options (series_data_param)
        source: CSV files, whose first line may name the columns (else 0, 1, ...), or HDF5 files, whose datasets of
            one axis are the columns; no window goes from file to file.  delimiter: of CSV (",")
        columns: D of them (by default all); target: a column (by default the first of them)
        window: T (32); stride: from one window's start to the next (1); horizon: h (1)
        statistics: a JSON file of mean and standard deviation of each column; data and target become
            (value - mean) / std.  In phase TRAIN it is computed from the source and written, in TEST it is read
        mean, std: the same as numbers, for each column in turn, and then for the target where it is none of them.
            Without either the values stay as they are
        batch_size: N (32); shuffle: a new random order of the windows each epoch, in phase TRAIN (false).
    """

    type = "SeriesData"
    tops = (2, 2)
    options_type = SeriesDataOptions

    def open_source(self, tops: int, rng: np.random.Generator) -> BatchSource:
        options = self.options
        for name in ("window", "stride", "horizon"):
            if getattr(options, name) < 1:
                raise RecaffeError(f"{name} is {getattr(options, name)}, expected 1 or more")
        if not options.source:
            raise RecaffeError("series_data_param gives no source: the CSV or HDF5 files to read")
        if len(options.delimiter) != 1:
            raise RecaffeError(f"delimiter is {options.delimiter!r}, expected one character")
        paths = find_files(options.source)
        wanted = list(options.columns)
        if wanted and options.target and options.target not in wanted:
            wanted.append(options.target)  # read, but no part of data
        names, rows = read_tables(paths, wanted, options.delimiter)
        shuffle = options.shuffle and self.phase == TRAIN
        mean, std = self._statistics(names, rows.values)
        D = len(options.columns) or len(names)
        target = column_place(paths[0], options.target, names) if options.target else 0
        return WindowSource(rows, mean, std, D, target, options, shuffle, rng)

    def _statistics(self, names: list[str], values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of each column, as ``statistics`` says."""
        path, given = self.options.statistics, (self.options.mean, self.options.std)
        if any(given):
            return given_statistics(path, names, *given)
        if not path:
            return np.zeros(len(names)), np.ones(len(names))
        if self.phase != TRAIN:
            return read_statistics(path, names)
        mean, std = mean_and_std(values)
        write_statistics(path, names, mean, std)
        return mean, std


class WindowSource(ExampleSource):
    """The windows of all files; the first D columns are data."""

    def __init__(
        self,
        rows: Sequences,
        mean: np.ndarray,
        std: np.ndarray,
        D: int,
        target: int,
        options: SeriesDataOptions,
        shuffle: bool,
        rng: np.random.Generator,
    ):
        self._rows, self._mean, self._std, self._D, self._target = rows.values, mean, std, D, target
        self._options = options
        needed = options.window + options.horizon
        self._starts = np.concatenate(
            [
                np.arange(start, stop - needed + 1, options.stride)
                for start, stop in zip(rows.starts[:-1], rows.starts[1:], strict=True)
            ]
        )
        if not len(self._starts):
            raise RecaffeError(
                f"no file has a window: the longest has {rows.lengths.max()} rows, window and horizon need {needed}"
            )
        super().__init__(np.full(len(self._starts), needed), options.batch_size, shuffle, 1, rng)

    def top_shapes(self) -> list[tuple[int, ...]]:
        T, N = self._options.window, self.batch_size
        return [(T, N, self._D), (T, N) if self._options.target_each_step else (N, self._options.horizon)]

    def fill(self, batch: Batch) -> None:
        data, target = (batch.array(i, shape) for i, shape in enumerate(self.top_shapes()))
        T, h, j = self._options.window, self._options.horizon, self._target
        starts = self._starts[self.next_examples()]
        steps = np.arange(T)[:, None] + starts
        data[...] = (self._rows[steps, : self._D] - self._mean[: self._D]) / self._std[: self._D]
        of_target = steps + h if self._options.target_each_step else starts[:, None] + T + np.arange(h)
        target[...] = (self._rows[of_target, j] - self._mean[j]) / self._std[j]


def mean_and_std(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column; that of a constant column counts as 1."""
    mean = values.mean(axis=0)
    squares = np.zeros_like(mean)
    for start in range(0, len(values), ROWS):
        squares += ((values[start : start + ROWS] - mean) ** 2).sum(axis=0)
    std = np.sqrt(squares / len(values))
    return mean, np.where(std > 0, std, 1.0)


def given_statistics(path: str, names: list[str], mean: list[float], std: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """The statistics that the options ``mean`` and ``std`` give."""
    if path:
        raise RecaffeError("give statistics, or mean and std, not both")
    if not len(mean) == len(std) == len(names):
        raise RecaffeError(
            f"mean has {len(mean)} and std {len(std)} values, expected one for each of {', '.join(names)}"
        )
    if min(std) <= 0:
        raise RecaffeError(f"std has the value {min(std):g}, expected more than 0")
    return np.array(mean), np.array(std)


def write_statistics(path: str, names: list[str], mean: np.ndarray, std: np.ndarray) -> None:
    """Write the statistics as JSON, by column."""
    stored = {name: {"mean": float(m), "std": float(s)} for name, m, s in zip(names, mean, std, strict=True)}
    with atomic_write(path) as file:
        file.write(json.dumps(stored, indent=1).encode() + b"\n")


def read_statistics(path: str, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """The statistics that ``write_statistics`` wrote."""
    try:
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
        pairs = [(float(stored[name]["mean"]), float(stored[name]["std"])) for name in names]
    except OSError as error:
        raise RecaffeError(
            f"{path}: the statistics cannot be read: {error.strerror}; they are written when the net of phase TRAIN"
            " is built"
        ) from None
    except (ValueError, TypeError, KeyError) as error:
        raise RecaffeError(f"{path}: expected mean and std of each of {', '.join(names)} in JSON ({error})") from None
    mean, std = np.array(pairs).T
    if not (std > 0).all():
        raise RecaffeError(f"{path}: a standard deviation is not above 0")
    return mean, std
