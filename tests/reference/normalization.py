"""Local response, batch, layer and root mean square normalization, value by value, in float64."""

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


def layer_norm(x, gamma, beta, eps, dy):
    """y, and from dy: dx, dgamma and dbeta; rows are as many of the last axes of x as gamma has, one at a time."""
    rows, factors = x.reshape(-1, gamma.size), gamma.ravel()
    y, dx, dgamma, dbeta = np.zeros(rows.shape), np.zeros(rows.shape), np.zeros(gamma.size), np.zeros(gamma.size)
    for m, row in enumerate(rows):
        K, slope = row.size, dy.reshape(rows.shape)[m]
        std = np.sqrt(((row - row.mean()) ** 2).mean() + eps)
        z = (row - row.mean()) / std
        y[m] = z * factors + beta.ravel()
        jacobian = (np.eye(K) - 1 / K - np.outer(z, z) / K) / std  # dz_i / dx_j
        dx[m] = jacobian.T @ (factors * slope)
        dgamma += slope * z
        dbeta += slope
    return y.reshape(x.shape), dx.reshape(x.shape), dgamma.reshape(gamma.shape), dbeta.reshape(gamma.shape)


def rms_norm(x, gamma, eps, dy):
    """y, and from dy: dx and dgamma; rows are as many of the last axes of x as gamma has, one at a time."""
    rows, factors = x.reshape(-1, gamma.size), gamma.ravel()
    y, dx, dgamma = np.zeros(rows.shape), np.zeros(rows.shape), np.zeros(gamma.size)
    for m, row in enumerate(rows):
        K, slope = row.size, dy.reshape(rows.shape)[m]
        rms = np.sqrt((row**2).mean() + eps)
        z = row / rms
        y[m] = z * factors
        dx[m] = (np.eye(K) - np.outer(z, z) / K).T @ (factors * slope) / rms
        dgamma += slope * z
    return y.reshape(x.shape), dx.reshape(x.shape), dgamma.reshape(gamma.shape)
