"""Rows of tables: arrays (M, N), or (K, N) where K rows are picked from or added to by number."""

from .jobs import shared
from .rows import compiled, unsigned


def add_row(backend, row, out):
    """out[m] += row for each m; row (N,), out (M, N)."""
    backend.share(add_to_part, len(out), out.size * 0.2, row, out)


def take_rows(backend, table, places, out):
    """out[i] = table[places[i]]; table (K, N), places (M,) int64 from 0 to K - 1, out (M, N)."""
    backend.share(take_places, len(out), out.size * 0.4, table, places, out)


def add_rows(backend, rows, places, out):
    """out[places[i]] += rows[i] for each i in turn; rows (M, N), places (M,) int64 from 0 to K - 1, out (K, N).

    Each thread takes some columns of all rows, so that the order of the sums is always the same.
    """
    backend.share(add_to_places, out.shape[1], rows.size * 0.5, rows, places, out)


@shared
def add_to_part(part, start, stop, row, out):
    add_to_rows(row, out[start:stop])


@compiled
def add_to_rows(row, out):
    for m in range(len(out)):
        for n in range(len(row)):
            out[m, n] += row[n]


@shared
def take_places(part, start, stop, table, places, out):
    for m in range(start, stop):
        place = unsigned(places[m])
        for n in range(unsigned(out.shape[1])):
            out[m, n] = table[place, n]


@shared
def add_to_places(part, start, stop, rows, places, out):
    for i in range(unsigned(len(rows))):
        place = unsigned(places[i])
        for n in range(unsigned(start), unsigned(stop)):
            out[place, n] += rows[i, n]
