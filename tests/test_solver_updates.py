"""Solver types, against what real Caffe computed and against their equations in float64."""

import numpy as np
import pytest
import recaffe
from recaffe.framework.backend import current_backend
from recaffe.framework.fusable import fusables
from recaffe.framework.updates import UPDATES, create_update
from recaffe.proto import SolverParameter, parse_text

from tests.support import GOLDEN

CASES = sorted(path.stem for path in (GOLDEN / "solvers").glob("*.prototxt"))


@pytest.mark.parametrize("name", CASES)
def test_trajectory_is_caffes_at_every_step(name):
    solver = recaffe.get_solver(GOLDEN / "solvers" / f"{name}.prototxt")
    golden = np.load(GOLDEN / "solvers" / f"{name}.npz")
    params = {f"{layer}:{i}": blob for layer, blobs in solver.net.params.items() for i, blob in enumerate(blobs)}
    for key, blob in params.items():
        blob.data[...] = golden[f"init:{key}"]
    for iteration, loss in enumerate(golden["loss"]):
        for name in ("a", "t"):
            solver.net.blobs[name].data[...] = golden[f"data:{name}"][iteration]
        solver.step(1)
        assert abs(solver.smoothed_loss - loss) <= 1e-5 * abs(loss) + 1e-7
        for key, blob in params.items():
            expected = golden[f"after:{key}"][iteration]
            assert np.abs(blob.data - expected).max() <= 1e-5 * np.abs(expected).max(), (key, iteration)


def reference(name, w, g, history, t, r, mu, mu2, rms, delta):
    """The new weights and history by the equations of the papers, in float64."""
    h = history[0]
    if name == "SGD":
        h = mu * h + r * g
        return w - h, [h]
    if name == "Nesterov":
        new = mu * h + r * g
        return w - (1 + mu) * new + mu * h, [new]
    if name == "AdaGrad":
        h = h + g**2
        return w - r * g / (np.sqrt(h) + delta), [h]
    if name == "RMSProp":
        h = rms * h + (1 - rms) * g**2
        return w - r * g / (np.sqrt(h) + delta), [h]
    if name == "AdaDelta":
        d = history[1]
        h = mu * h + (1 - mu) * g**2
        u = g * np.sqrt(d + delta) / np.sqrt(h + delta)
        return w - r * u, [h, mu * d + (1 - mu) * u**2]
    v = mu2 * history[1] + (1 - mu2) * g**2
    h = mu * h + (1 - mu) * g
    correction = np.sqrt(1 - mu2 ** (t + 1)) / (1 - mu ** (t + 1))
    return w - r * correction * h / (np.sqrt(v) + delta), [h, v]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [name for name in UPDATES if name != "AdamW"])
@pytest.mark.parametrize(("scale", "l2", "l1"), [(1.0, 0.0, 0.0), (0.5, 0.0, 0.0), (0.25, 0.1, 0.0), (1.0, 0.0, 0.1)])
def test_step_is_its_equation(name, scale, l2, l1, dtype):
    mu = 0.0 if name in ("AdaGrad", "RMSProp") else 0.9
    delta = 1e-6
    rule = create_update(SolverParameter(type=name, momentum=mu, momentum2=0.99, rms_decay=0.8, delta=delta))
    random = np.random.default_rng(3)
    w = random.standard_normal(101).astype(dtype)
    w[7] = 0.0
    history = [np.zeros(101, dtype) for _ in range(rule.histories)]
    expected_w, expected_history = w.astype(np.float64), [array.astype(np.float64) for array in history]
    for t in range(4):
        g = random.standard_normal(101).astype(dtype)
        ready = scale * g.astype(np.float64) + l2 * expected_w + l1 * np.sign(expected_w)
        expected_w, expected_history = reference(
            name, expected_w, ready, expected_history, t, 0.1, rule.momentum, 0.99, 0.8, delta
        )
        rule.step(current_backend(), w, g, history, t, 0.1, scale, l2, l1)
        np.testing.assert_allclose(w, expected_w, rtol=1e-4, atol=1e-5)
        for array, expected in zip(history, expected_history, strict=True):
            np.testing.assert_allclose(array, expected, rtol=1e-4, atol=1e-6)
        assert w.dtype == dtype


def test_adamw_decays_the_weights_beside_the_gradient():
    rule = create_update(SolverParameter(type="AdamW", momentum=0.9, momentum2=0.99, delta=1e-3, weight_decay=0.1))
    random = np.random.default_rng(4)
    w = random.standard_normal(50)
    expected, m, v = w.copy(), 0.0, 0.0
    history = [np.zeros(50), np.zeros(50)]
    r, decay, beta1, beta2 = 0.05, 0.1, rule.momentum, rule.momentum2
    for t in range(1, 6):
        g = random.standard_normal(50)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
        expected = expected - r * (m_hat / (np.sqrt(v_hat) + rule.delta) + decay * expected)
        rule.step(current_backend(), w, g.copy(), history, t - 1, r, 1.0, decay, 0.0)
        np.testing.assert_allclose(w, expected, rtol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "scalars"),
    [
        ("sgd_step", (0.1, 0.9)),
        ("nesterov_step", (0.1, 0.9)),
        ("adagrad_step", (0.1, 1e-7)),
        ("rmsprop_step", (0.1, 0.8, 1e-7)),
        ("adadelta_step", (0.5, 0.9, 1e-6)),
        ("adam_step", (0.1, 0.9, 0.99, 1e-8, 0.01)),
    ],
)
@pytest.mark.parametrize("ready", [(1.0, 0.0, 0.0), (0.3, 0.05, 0.0), (0.3, 0.0, 0.05)])
def test_fused_step_is_the_plain_one(name, scalars, ready, dtype):
    backend = current_backend()
    if name not in backend.fused:
        pytest.skip("this backend runs the plain version")
    count = 3 if name in ("adadelta_step", "adam_step") else 2
    random = np.random.default_rng(1)
    arrays = [random.random(100_003).astype(dtype) for _ in range(count + 1)]
    arrays[0] -= 0.5
    arrays[0][::10] = 0
    plain = [array.copy() for array in arrays]
    fusables[name].plain(backend, *plain, *scalars, *ready)
    fusables[name](backend, *arrays, *scalars, *ready)
    for i in (0, *range(2, count + 1)):  # the gradient is left undefined
        np.testing.assert_allclose(arrays[i], plain[i], rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('type: "AdaGrad" momentum: 0.9', "momentum 0.9 cannot be used with type 'AdaGrad'"),
        ('type: "RMSProp" momentum: 0.9', "momentum 0.9 cannot be used with type 'RMSProp'"),
        ('type: "RMSProp" rms_decay: 1', "rms_decay is 1"),
        ('type: "Adam" momentum: 1', "momentum is 1"),
        ('type: "Adam" momentum2: 1.5', "momentum2 is 1.5"),
        ('type: "AdamW" weight_decay: 0.1 regularization_type: "L1"', "AdamW"),
        ('type: "Adm"', "did you mean 'Adam'"),
        ('type: "xyz"', "expected one of SGD, Nesterov"),
    ],
)
def test_what_a_type_refuses(text, message):
    with pytest.raises(recaffe.RecaffeError, match=message):
        create_update(parse_text(text, SolverParameter))
