"""LayerNorm and RMSNorm over the rows of arrays (M, K): a row stays in the first-level cache until it is done.

The parameters' gradients are summed for the rows of each thread, and these sums in the threads' order.
"""

import numpy as np

from .jobs import shared
from .rows import compiled, summing


def layer_norm_forward(backend, x, gamma, beta, eps, mean, inverse_std, y):
    """y = (x - mean) * inverse_std * gamma + beta, with the mean and 1 / sqrt(variance + eps) of each row."""
    eps = x.dtype.type(eps)
    backend.share(normalize_rows, len(x), x.size * 0.6, x, gamma, beta, eps, mean, inverse_std, y)


def layer_norm_backward(backend, x, mean, inverse_std, gamma, dy, dx, dgamma, dbeta):
    """dx, dgamma and dbeta, all overwritten, from dy and what forward had and found; dx may be dy."""
    sums = np.zeros((backend.pool.shares(len(x), x.size), 2, len(gamma)), x.dtype)
    backend.share(normalize_slopes, len(x), x.size, x, mean, inverse_std, gamma, dy, dx, sums)
    dgamma[:], dbeta[:] = sums.sum(axis=0)


def rms_norm_forward(backend, x, gamma, eps, inverse_rms, y):
    """y = x * inverse_rms * gamma, with 1 / sqrt(mean(x^2) + eps) of each row."""
    eps = x.dtype.type(eps)
    backend.share(scale_rows, len(x), x.size * 0.5, x, gamma, eps, inverse_rms, y)


def rms_norm_backward(backend, x, inverse_rms, gamma, dy, dx, dgamma):
    """dx and dgamma, both overwritten, from dy and what forward had and found; dx may be dy."""
    sums = np.zeros((backend.pool.shares(len(x), x.size), len(gamma)), x.dtype)
    backend.share(scale_slopes, len(x), x.size, x, inverse_rms, gamma, dy, dx, sums)
    dgamma[:] = sums.sum(axis=0)


@shared
def normalize_rows(part, start, stop, x, gamma, beta, eps, mean, inverse_std, y):
    one, K = x.dtype.type(1), x.dtype.type(x.shape[1])
    for m in range(start, stop):
        mean[m] = row_sum(x, m) / K
        inverse_std[m] = one / np.sqrt(square_sum(x, m, mean[m]) / K + eps)
        normalize_row(x, m, mean[m], inverse_std[m], gamma, beta, y)


@shared
def scale_rows(part, start, stop, x, gamma, eps, inverse_rms, y):
    zero, one, K = x.dtype.type(0), x.dtype.type(1), x.dtype.type(x.shape[1])
    for m in range(start, stop):
        inverse_rms[m] = one / np.sqrt(square_sum(x, m, zero) / K + eps)
        scale_row(x, m, inverse_rms[m], gamma, y)


@summing
def row_sum(x, m):
    total = x.dtype.type(0)
    for k in range(x.shape[1]):
        total += x[m, k]
    return total


@summing
def square_sum(x, m, middle):
    """The sum of (x[m] - middle)^2."""
    total = x.dtype.type(0)
    for k in range(x.shape[1]):
        total += (x[m, k] - middle) * (x[m, k] - middle)
    return total


@compiled
def normalize_row(x, m, mean, inverse_std, gamma, beta, y):
    for k in range(x.shape[1]):
        y[m, k] = (x[m, k] - mean) * inverse_std * gamma[k] + beta[k]


@compiled
def scale_row(x, m, inverse_rms, gamma, y):
    for k in range(x.shape[1]):
        y[m, k] = x[m, k] * inverse_rms * gamma[k]


@shared
def normalize_slopes(part, start, stop, x, mean, inverse_std, gamma, dy, dx, sums):
    K = x.dtype.type(x.shape[1])
    for m in range(start, stop):
        total, dot = slope_sums(x, m, mean[m], inverse_std[m], gamma, dy)
        add_row_gradients(x, m, mean[m], inverse_std[m], dy, sums[part])
        normalize_slope_row(x, m, mean[m], inverse_std[m], gamma, dy, total / K, dot / K, dx)


@shared
def scale_slopes(part, start, stop, x, inverse_rms, gamma, dy, dx, sums):
    zero, K = x.dtype.type(0), x.dtype.type(x.shape[1])
    for m in range(start, stop):
        _, dot = slope_sums(x, m, zero, inverse_rms[m], gamma, dy)
        add_row_products(x, m, inverse_rms[m], dy, sums[part])
        normalize_slope_row(x, m, zero, inverse_rms[m], gamma, dy, zero, dot / K, dx)


@summing
def slope_sums(x, m, mean, inverse_std, gamma, dy):
    """The sums of g and of g z."""
    total, dot = x.dtype.type(0), x.dtype.type(0)
    for k in range(x.shape[1]):
        g = gamma[k] * dy[m, k]
        total += g
        dot += g * (x[m, k] - mean)
    return total, dot * inverse_std


@compiled
def add_row_gradients(x, m, mean, inverse_std, dy, sums):
    for k in range(x.shape[1]):
        sums[0, k] += dy[m, k] * ((x[m, k] - mean) * inverse_std)
        sums[1, k] += dy[m, k]


@compiled
def add_row_products(x, m, inverse_rms, dy, sums):
    for k in range(x.shape[1]):
        sums[k] += dy[m, k] * (x[m, k] * inverse_rms)


@compiled
def normalize_slope_row(x, m, mean, inverse_std, gamma, dy, mean_slope, mean_dot, dx):
    for k in range(x.shape[1]):
        z = (x[m, k] - mean) * inverse_std
        dx[m, k] = (gamma[k] * dy[m, k] - mean_slope - z * mean_dot) * inverse_std
