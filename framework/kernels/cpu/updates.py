"""The solvers' steps, each in one pass over weights, gradient and history.

All arrays are flat; w and the histories are changed in place, g is only read.  Every step first makes the
gradient ready: slope = scale * g + l2 * w + l1 * sign(w).
"""

import numpy as np

from .rows import compiled, inlined, summing


def sum_of_squares(backend, g):
    """sum(g * g)"""
    return sum(backend.parallel(lambda start, stop: squares(g[start:stop]), g.size, g.size * 0.3))


def sgd_step(backend, w, g, h, r, mu, scale, l2, l1):
    """h = mu h + r g;  w = w - h."""
    _step(backend, sgd, (w, g, h), (r, mu, scale, l2, l1))


def nesterov_step(backend, w, g, h, r, mu, scale, l2, l1):
    """h' = mu h + r g;  w = w - (1 + mu) h' + mu h."""
    _step(backend, nesterov, (w, g, h), (r, mu, scale, l2, l1))


def adagrad_step(backend, w, g, h, r, delta, scale, l2, l1):
    """h = h + g^2;  w = w - r g / (sqrt(h) + delta)."""
    _step(backend, adagrad, (w, g, h), (r, delta, scale, l2, l1))


def rmsprop_step(backend, w, g, h, r, decay, delta, scale, l2, l1):
    """h = decay h + (1 - decay) g^2;  w = w - r g / (sqrt(h) + delta)."""
    _step(backend, rmsprop, (w, g, h), (r, decay, 1 - decay, delta, scale, l2, l1))


def adadelta_step(backend, w, g, h, d, r, mu, delta, scale, l2, l1):
    """h = mu h + (1 - mu) g^2;  u = g sqrt((d + delta) / (h + delta));  d = mu d + (1 - mu) u^2;  w = w - r u."""
    _step(backend, adadelta, (w, g, h, d), (r, mu, 1 - mu, delta, scale, l2, l1))


def adam_step(backend, w, g, m, v, r, beta1, beta2, delta, shrink, scale, l2, l1):
    """m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  w = w - shrink w - r m / (sqrt(v) + delta)."""
    _step(backend, adam, (w, g, m, v), (r, beta1, 1 - beta1, beta2, 1 - beta2, delta, 1 - shrink, scale, l2, l1))


def _step(backend, loop, arrays, numbers):
    """Run ``loop`` over parts of the arrays, with the numbers in the arrays' precision."""
    w = arrays[0]
    numbers = [w.dtype.type(number) for number in numbers]
    backend.parallel(
        lambda start, stop: loop(*(array[start:stop] for array in arrays), *numbers),
        w.size,
        w.size * 0.25 * len(arrays),
    )


@summing
def squares(g):
    total = g.dtype.type(0)
    for i in range(len(g)):
        total += g[i] * g[i]
    return total


@inlined
def ready(w, g, scale, l2, l1):
    """scale * g + l2 * w + l1 * sign(w) of one weight."""
    slope = scale * g + l2 * w
    if l1 != 0:
        slope += l1 * np.sign(w)
    return slope


@compiled
def sgd(w, g, h, r, mu, scale, l2, l1):
    for i in range(len(w)):
        h[i] = mu * h[i] + r * ready(w[i], g[i], scale, l2, l1)
        w[i] -= h[i]


@compiled
def nesterov(w, g, h, r, mu, scale, l2, l1):
    for i in range(len(w)):
        old = h[i]
        new = mu * old + r * ready(w[i], g[i], scale, l2, l1)
        h[i] = new
        w[i] = w[i] + mu * old - (1 + mu) * new


@compiled
def adagrad(w, g, h, r, delta, scale, l2, l1):
    for i in range(len(w)):
        slope = ready(w[i], g[i], scale, l2, l1)
        h[i] += slope * slope
        w[i] -= r * slope / (np.sqrt(h[i]) + delta)


@compiled
def rmsprop(w, g, h, r, decay, rest, delta, scale, l2, l1):
    for i in range(len(w)):
        slope = ready(w[i], g[i], scale, l2, l1)
        h[i] = decay * h[i] + rest * slope * slope
        w[i] -= r * slope / (np.sqrt(h[i]) + delta)


@compiled
def adadelta(w, g, h, d, r, mu, rest, delta, scale, l2, l1):
    for i in range(len(w)):
        slope = ready(w[i], g[i], scale, l2, l1)
        h[i] = mu * h[i] + rest * slope * slope
        step = slope * np.sqrt((d[i] + delta) / (h[i] + delta))
        d[i] = mu * d[i] + rest * step * step
        w[i] -= r * step


@compiled
def adam(w, g, m, v, r, beta1, rest1, beta2, rest2, delta, kept, scale, l2, l1):
    for i in range(len(w)):
        slope = ready(w[i], g[i], scale, l2, l1)
        m[i] = beta1 * m[i] + rest1 * slope
        v[i] = beta2 * v[i] + rest2 * slope * slope
        w[i] = kept * w[i] - r * m[i] / (np.sqrt(v[i]) + delta)
