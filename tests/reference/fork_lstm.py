"""An LSTM stream by stream, number by number, whose gradients are bounded at the gates."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, cont, W_x, W_h, b, slopes, bound=np.inf, h_0=None, c_0=None):
    """h (T x N x H), and the gradients of x, W_x, W_h and b for the gradient ``slopes`` of h."""
    T, N, _ = x.shape
    H = W_h.shape[1]
    h, dx = np.zeros((T, N, H)), np.zeros_like(x)
    dW_x, dW_h, db = np.zeros_like(W_x), np.zeros_like(W_h), np.zeros_like(b)
    for n in range(N):
        h_before = np.zeros(H) if h_0 is None else h_0[n]
        c_before = np.zeros(H) if c_0 is None else c_0[n]
        kept = []
        for t in range(T):
            h_before, c_before = cont[t, n] * h_before, cont[t, n] * c_before
            a = W_x @ x[t, n] + W_h @ h_before + b
            i, f, o, g = sigmoid(a[:H]), sigmoid(a[H : 2 * H]), sigmoid(a[2 * H : 3 * H]), np.tanh(a[3 * H :])
            c = f * c_before + i * g
            h[t, n] = o * np.tanh(c)
            kept.append((h_before, c_before, i, f, o, g, c))
            h_before, c_before = h[t, n], c
        dh, dc = np.zeros(H), np.zeros(H)
        for t in reversed(range(T)):
            h_before, c_before, i, f, o, g, c = kept[t]
            dh = dh + slopes[t, n]
            dc = dc + dh * o * (1 - np.tanh(c) ** 2)
            da = np.concatenate([
                dc * g * i * (1 - i),
                dc * c_before * f * (1 - f),
                dh * np.tanh(c) * o * (1 - o),
                dc * i * (1 - g**2),
            ])  # fmt: skip
            da = np.clip(da, -bound, bound)
            dx[t, n] = W_x.T @ da
            dW_x += np.outer(da, x[t, n])
            dW_h += np.outer(da, h_before)
            db += da
            dh, dc = cont[t, n] * (W_h.T @ da), cont[t, n] * (dc * f)
    return h, dx, dW_x, dW_h, db
