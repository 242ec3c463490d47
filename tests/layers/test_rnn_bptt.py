"""Back-propagation through time as the formulas have it, against a net of RNN, InnerProduct and SoftmaxWithLoss.

    h(t) = tanh(U x(t) + W h(t-1) + b),  o(t) = V h(t) + c,  yhat(t) = softmax(o(t)),  L = -sum log yhat(t)[y(t)]

U is W_xh, W is W_hh, b is b_h; V and c are the parameters of the InnerProduct.
"""

import numpy as np

from tests.support import assert_close, make_net

T, D, H, CLASSES = 6, 4, 5, 3
FILLERS = "weight_filler { type: 'uniform' min: -0.7 max: 0.7 } bias_filler { type: 'uniform' min: -0.7 max: 0.7 }"

NET = f"""
layer {{ name: "in" type: "Input" top: "x" top: "label"
        input_param {{ shape {{ dim: {T} dim: 1 dim: {D} }} shape {{ dim: {T} dim: 1 }} }} }}
layer {{ name: "rnn" type: "RNN" bottom: "x" top: "h"
        recurrent_param {{ num_output: {H} output_hidden: true {FILLERS} }} }}
layer {{ name: "out" type: "InnerProduct" bottom: "h" top: "o"
        inner_product_param {{ num_output: {CLASSES} axis: 2 {FILLERS} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "o" bottom: "label" top: "L" softmax_param {{ axis: 2 }}
        loss_param {{ normalization: NONE }} }}
"""


def test_the_sums_over_time():
    net = make_net("force_backward: true" + NET, dtype=np.float64)
    rng = np.random.default_rng(0)
    x, label = rng.normal(size=(T, 1, D)), rng.integers(0, CLASSES, size=(T, 1))
    net.blobs["x"].data[...], net.blobs["label"].data[...] = x, label
    loss = net.forward_backward()
    (U, b, W), (V, c) = ([blob.data for blob in net.params[name]] for name in ("rnn", "out"))

    # forward: h(0) is the zero vector, h(1) to h(T) are the steps
    h, yhat, y = [np.zeros(H)], [None], [None]
    for t in range(1, T + 1):
        h.append(np.tanh(U @ x[t - 1, 0] + W @ h[t - 1] + b))
        o = V @ h[t] + c
        yhat.append(np.exp(o) / np.exp(o).sum())
        y.append(np.eye(CLASSES)[label[t - 1, 0]])
    assert_close(loss, -sum(np.log(yhat[t] @ y[t]) for t in range(1, T + 1)), 1e-12)

    # delta(t) = dL / dh(t), from the last step to the first
    delta = [None] * (T + 1)
    delta[T] = V.T @ (yhat[T] - y[T])
    for t in range(T - 1, 0, -1):
        delta[t] = V.T @ (yhat[t] - y[t]) + W.T @ np.diag(1 - h[t + 1] ** 2) @ delta[t + 1]

    steps = range(1, T + 1)
    dV = sum(np.outer(yhat[t] - y[t], h[t]) for t in steps)
    dc = sum(yhat[t] - y[t] for t in steps)
    dW = sum(np.outer(np.diag(1 - h[t] ** 2) @ delta[t], h[t - 1]) for t in steps)
    dU = sum(np.outer(np.diag(1 - h[t] ** 2) @ delta[t], x[t - 1, 0]) for t in steps)
    db = sum(np.diag(1 - h[t] ** 2) @ delta[t] for t in steps)

    for blob, expected in zip([*net.params["rnn"], *net.params["out"]], [dU, db, dW, dV, dc], strict=True):
        assert_close(blob.diff, expected, 1e-12, blob.name)
    for t in steps:
        assert_close(net.blobs["x"].diff[t - 1, 0], U.T @ np.diag(1 - h[t] ** 2) @ delta[t], 1e-12)
