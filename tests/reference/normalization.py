"""Local response and batch normalization, value by value, in float64."""

import numpy as np


def lrn(x, size, alpha, beta, k, within=False):
    """y of x (N, C, H, W); windows are ``size`` channels, or ``size`` x ``size`` places of one channel."""
    y, half = np.zeros(x.shape), size // 2
    for n, c, i, j in np.ndindex(x.shape):
        if within:
            window = x[n, c, max(0, i - half) : i + half + 1, max(0, j - half) : j + half + 1]
            scale = 1 + alpha / size**2 * (window**2).sum()
        else:
            window = x[n, max(0, c - half) : c + half + 1, i, j]
            scale = k + alpha / size * (window**2).sum()
        y[n, c, i, j] = x[n, c, i, j] / scale**beta
    return y


def batch_norm(x, eps):
    """y, mean and unbiased variance of each channel of x (N, C, ...)."""
    y, means, variances = np.zeros(x.shape), [], []
    for c in range(x.shape[1]):
        values = x[:, c].astype(np.float64)
        mean = values.sum() / values.size
        variance = ((values - mean) ** 2).sum() / values.size
        y[:, c] = (values - mean) / np.sqrt(variance + eps)
        means.append(mean)
        variances.append(variance * values.size / (values.size - 1))
    return y, np.array(means), np.array(variances)
