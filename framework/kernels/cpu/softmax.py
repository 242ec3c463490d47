"""Softmax and its loss over axis 1 of (O, C, I) arrays; where I is 1, a row at a time in the first-level cache."""

import numpy as np

from .rows import compiled, summing
from .softmax_rows import loss_row_slopes, softmax_row_slopes, softmax_rows

SMALLEST = float(np.finfo(np.float32).tiny)  # smaller probabilities count as this: their logarithm stays finite


def softmax_forward(backend, x, y):
    """y = softmax(x) over axis 1; x, y (O, C, I); y may be x."""
    backend.parallel(lambda start, stop: _softmax(x[start:stop], y[start:stop]), len(x), x.size * 1.5)


def softmax_backward(backend, y, dy, dx):
    """dx = y * (dy - sum over axis 1 of dy * y); y, dy, dx (O, C, I); dx may be dy."""
    arrays, loop = (y, dy, dx), softmax_slopes
    if y.shape[2] == 1:
        arrays, loop = [array.reshape(array.shape[:2]) for array in arrays], softmax_row_slopes
    backend.parallel(lambda start, stop: loop(*(array[start:stop] for array in arrays)), len(y), y.size * 0.8)


def softmax_loss_forward(backend, x, labels, smoothing, p):
    """p = softmax(x) over axis 1; gives -sum of q log p, with q = (1 - smoothing) onehot(label) + smoothing / C.

    x, p (O, C, I); labels (O, I) int64, -1 where nothing counts.
    """

    def forward(start, stop):
        _softmax(x[start:stop], p[start:stop])
        return label_losses(x[start:stop], labels[start:stop], smoothing, p[start:stop])

    return sum(backend.parallel(forward, len(x), x.size * 1.5))


def softmax_loss_backward(backend, p, labels, smoothing, scale, dx):
    """dx = scale * (p - q), 0 where the label is -1; p, dx (O, C, I), labels (O, I) int64, q as in the loss."""
    scale, rest, most = (p.dtype.type(scale * share) for share in (1, smoothing / p.shape[1], 1 - smoothing))
    arrays, loop = (p, labels, dx), loss_slopes
    if p.shape[2] == 1:
        arrays, loop = (p.reshape(p.shape[:2]), labels.reshape(-1), dx.reshape(p.shape[:2])), loss_row_slopes

    def backward(start, stop):
        loop(*(array[start:stop] for array in arrays), scale, rest, most)

    backend.parallel(backward, len(p), p.size * 0.5)


def _softmax(x, y):
    if x.shape[2] == 1:
        softmax_rows(x.reshape(x.shape[:2]), y.reshape(x.shape[:2]))
        return
    np.subtract(x, x.max(axis=1, keepdims=True), out=y)  # the largest becomes 0: exp cannot overflow
    np.exp(y, out=y)
    y /= y.sum(axis=1, keepdims=True)


@compiled
def label_losses(x, labels, smoothing, p):
    total = 0.0
    for o in range(len(labels)):
        for i in range(labels.shape[1]):
            value = p[o, labels[o, i], i]
            loss = -(1 - smoothing) * np.log(SMALLEST if value < SMALLEST else value)
            if smoothing > 0:
                loss -= smoothing / p.shape[1] * log_softmax_sum(x, p, o, i)
            total += loss * (labels[o, i] >= 0)  # NaN stays NaN
    return total


@summing
def log_softmax_sum(x, p, o, i):
    """The sum over c of log p = x - x_b + log p_b, for any b; here the first whose p is not a small one."""
    classes, total = x.shape[1], x.dtype.type(0)
    for c in range(classes):
        total += x[o, c, i]
    b = 0
    while b < classes - 1 and 2 * classes * p[o, b, i] < 1:
        b += 1
    return total + classes * (np.log(p[o, b, i]) - x[o, b, i])


@compiled
def loss_slopes(p, labels, dx, scale, rest, most):
    for o in range(p.shape[0]):
        for c in range(p.shape[1]):
            for i in range(p.shape[2]):
                slope = scale * p[o, c, i] - rest
                if labels[o, i] == c:
                    slope -= most
                dx[o, c, i] = slope * (labels[o, i] >= 0)


@compiled
def softmax_slopes(y, dy, dx):
    totals = np.zeros(y.shape[2], y.dtype)
    for o in range(y.shape[0]):
        totals[:] = 0
        for c in range(y.shape[1]):
            for i in range(y.shape[2]):
                totals[i] += dy[o, c, i] * y[o, c, i]
        for c in range(y.shape[1]):
            for i in range(y.shape[2]):
                dx[o, c, i] = y[o, c, i] * (dy[o, c, i] - totals[i])
