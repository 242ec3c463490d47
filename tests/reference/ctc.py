"""CTC by its definition: a sum over every path; and edit distance by its recursion."""

from functools import cache
from itertools import groupby, product

import numpy as np


def spelling(path, blank=0, merge=True):
    """The labels that a path gives."""
    classes = [key for key, _ in groupby(path)] if merge else path
    return [c for c in classes if c != blank]


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def ctc_probability(x, labels, blank=0):
    """p(labels | scores x, T x C)."""
    y = softmax(x)
    paths = [path for path in product(range(x.shape[1]), repeat=len(x)) if spelling(path, blank) == list(labels)]
    return sum(np.prod([y[t, c] for t, c in enumerate(path)]) for path in paths)


def edit_distance(a, b):
    @cache
    def distance(i, j):
        if i == 0 or j == 0:
            return i + j
        return min(distance(i - 1, j) + 1, distance(i, j - 1) + 1, distance(i - 1, j - 1) + (a[i - 1] != b[j - 1]))

    return distance(len(a), len(b))
