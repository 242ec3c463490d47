"""Softmax and its loss over axis 1 of (O, C, I) arrays."""

import numpy as np

from .rows import compiled


def softmax_loss_forward(backend, x, labels, p):
    """p = softmax(x) over axis 1; gives -sum of log p at the labels that are not -1.

    x, p (O, C, I), labels (O, I) int64.
    """
    return sum(
        backend.parallel(
            lambda start, stop: _losses(x[start:stop], labels[start:stop], p[start:stop]), len(x), x.size * 5
        )
    )


def softmax_loss_backward(backend, p, labels, scale, dx):
    """dx = scale * (p - onehot(labels)), 0 where the label is -1; p, dx (O, C, I), labels (O, I) int64."""
    scale = p.dtype.type(scale)
    backend.parallel(
        lambda start, stop: loss_slopes(p[start:stop], labels[start:stop], scale, dx[start:stop]), len(p), p.size * 0.5
    )


def softmax_forward(backend, x, y):
    """y = softmax(x) over axis 1; x, y (O, C, I); y may be x."""
    backend.parallel(lambda start, stop: _softmax(x[start:stop], y[start:stop]), len(x), x.size * 5)


def softmax_backward(backend, y, dy, dx):
    """dx = y * (dy - sum over axis 1 of dy * y); y, dy, dx (O, C, I); dx may be dy."""
    backend.parallel(
        lambda start, stop: softmax_slopes(y[start:stop], dy[start:stop], dx[start:stop]), len(y), y.size * 1.0
    )


def _softmax(x, y):
    np.subtract(x, x.max(axis=1, keepdims=True), out=y)  # the largest becomes 0: exp cannot overflow
    np.exp(y, out=y)
    y /= y.sum(axis=1, keepdims=True)


def _losses(x, labels, p):
    _softmax(x, p)
    return label_losses(p, labels, np.finfo(np.float32).tiny)


@compiled
def label_losses(p, labels, smallest):
    total = 0.0
    for o in range(len(labels)):
        for i in range(labels.shape[1]):
            value = p[o, labels[o, i], i]
            total -= np.log(smallest if value < smallest else value) * (labels[o, i] >= 0)
    return total


@compiled
def loss_slopes(p, labels, scale, dx):
    for o in range(p.shape[0]):
        for c in range(p.shape[1]):
            for i in range(p.shape[2]):
                slope = scale * p[o, c, i]
                if labels[o, i] == c:
                    slope -= scale
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
