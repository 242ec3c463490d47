"""Rotary positions."""

from .jobs import shared


def turn_pairs(backend, x, cosine, sine):
    """Turn numbers 2i and 2i + 1 of x[t] (T x N x heads x d, in place) by angle i of step t; cosine, sine T x d / 2."""
    backend.share(turn_steps, len(x), x.size * 0.5, x, cosine, sine)


@shared
def turn_steps(part, start, stop, x, cosine, sine):
    for t in range(start, stop):
        for n in range(x.shape[1]):
            for h in range(x.shape[2]):
                for i in range(cosine.shape[1]):
                    even, odd = x[t, n, h, 2 * i], x[t, n, h, 2 * i + 1]
                    x[t, n, h, 2 * i] = even * cosine[t, i] - odd * sine[t, i]
                    x[t, n, h, 2 * i + 1] = even * sine[t, i] + odd * cosine[t, i]
