"""Products of a few rows with a matrix: the matrix is read once, and each thread reads a part of its own."""

from .jobs import shared
from .rows import compiled, summing, unsigned


@shared
def add_row_dots(part, start, stop, a, W, out):
    """out += a W^T for rows start to stop of W (M, K); a (n, K), out (n, M)."""
    add_dots(a, W[start:stop], out[:, start:stop])


@shared
def row_dots(part, start, stop, a, W, row, has_row, out):
    """out = a W^T + row for rows start to stop of W."""
    begin(row, has_row, start, stop, out)
    add_dots(a, W[start:stop], out[:, start:stop])


@shared
def row_combinations(part, start, stop, a, W, row, has_row, out):
    """out = a W + row for columns start to stop of W (K, M)."""
    begin(row, has_row, start, stop, out)
    for n in range(len(a)):
        add_combination(a[n], W, unsigned(start), unsigned(stop), out[n])


@compiled
def begin(row, has_row, start, stop, out):
    for n in range(len(out)):
        if has_row:
            out[n, start:stop] = row[start:stop]
        else:
            out[n, start:stop] = 0


@summing
def add_dots(a, W, out):
    """out += a W^T; four rows of W are read at a time."""
    M, zero = len(W), out.dtype.type(0)
    whole = M - M % 4
    for m in range(0, whole, 4):
        for n in range(len(a)):
            p = q = r = s = zero
            for k in range(a.shape[1]):
                x = a[n, k]
                p += x * W[m, k]
                q += x * W[m + 1, k]
                r += x * W[m + 2, k]
                s += x * W[m + 3, k]
            out[n, m] += p
            out[n, m + 1] += q
            out[n, m + 2] += r
            out[n, m + 3] += s
    for m in range(whole, M):
        for n in range(len(a)):
            p = zero
            for k in range(a.shape[1]):
                p += a[n, k] * W[m, k]
            out[n, m] += p


@compiled
def add_combination(a, W, start, stop, out):
    """out += a W for one row a, from column start to stop; four rows of W are read at a time."""
    whole = len(a) - len(a) % 4
    for k in range(0, whole, 4):
        p, q, r, s = a[k], a[k + 1], a[k + 2], a[k + 3]
        for m in range(start, stop):
            out[m] += (p * W[k, m] + q * W[k + 1, m]) + (r * W[k + 2, m] + s * W[k + 3, m])
    for k in range(whole, len(a)):
        p = a[k]
        for m in range(start, stop):
            out[m] += p * W[k, m]
