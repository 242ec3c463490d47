"""Rows of tables: arrays (M, N), or (K, N) where K rows are picked from or added to by number."""

import numpy as np

from .rows import compiled, unsigned


def add_row(backend, row, out):
    """out[m] += row for each m; row (N,), out (M, N)."""
    backend.parallel(lambda start, stop: add_to_rows(row, out, start, stop), len(out), out.size * 0.2)


def take_rows(backend, table, places, out):
    """out[i] = table[places[i]]; table (K, N), places (M,) int64 from 0 to K - 1, out (M, N)."""
    backend.parallel(
        lambda start, stop: np.take(table, places[start:stop], axis=0, out=out[start:stop], mode="clip"),
        len(out),
        out.size * 0.4,
    )


def add_rows(backend, rows, places, out):
    """out[places[i]] += rows[i] for each i in turn; rows (M, N), places (M,) int64 from 0 to K - 1, out (K, N).

    Each thread takes some columns of all rows, so that the order of the sums is always the same.
    """
    backend.parallel(lambda start, stop: add_to_places(rows, places, out, start, stop), out.shape[1], rows.size * 0.5)


@compiled
def add_to_rows(row, out, start, stop):
    for m in range(start, stop):
        for n in range(len(row)):
            out[m, n] += row[n]


@compiled
def add_to_places(rows, places, out, start, stop):
    for i in range(unsigned(len(rows))):
        place = unsigned(places[i])
        for n in range(unsigned(start), unsigned(stop)):
            out[place, n] += rows[i, n]
