"""Losses and measures against the references, and what they refuse."""

import numpy as np
import pytest
import recaffe
from recaffe.framework.gradient_check import gradient_check
from recaffe.framework.single_layer import SingleLayer
from recaffe.proto import array_to_blob

from tests.reference.classification import accuracy, softmax, softmax_loss
from tests.support import assert_close, backward, make_net

rng = np.random.default_rng(5)

SCORES = 3 * rng.normal(size=(3, 4, 5))
LABELS = {axis: rng.integers(0, 3, size=np.delete(SCORES.shape, axis)).astype(float) for axis in (1, 2, -1)}


def run(text: str, *bottoms: np.ndarray) -> list[np.ndarray]:
    """The tops of the layer ``text``."""
    return SingleLayer(text, bottoms).forward()


def loss_and_gradient(text: str, *bottoms: np.ndarray, weight: float = 1.0) -> tuple[float, np.ndarray]:
    """The first top, and the gradient of the first bottom for the loss weight ``weight``."""
    single = SingleLayer(text, bottoms)
    loss, *others = single.forward()
    backward(single, [np.array(weight), *[np.zeros(top.shape) for top in others]], [True, False])
    return float(loss), single.bottom_diffs()[0]


@pytest.mark.parametrize("axis", LABELS)
@pytest.mark.parametrize("ignore", [None, 0, 255])
def test_softmax_loss_and_gradient(axis: int, ignore: int | None) -> None:
    labels = LABELS[axis].copy()
    if ignore == 255:
        labels.flat[[1, 3]] = 255
    rule = "" if ignore is None else f"loss_param {{ ignore_label: {ignore} }}"
    text = f"type: 'SoftmaxWithLoss' softmax_param {{ axis: {axis} }} {rule}"
    loss, gradient = loss_and_gradient(text, SCORES, labels, weight=2.0)
    expected_loss, expected_gradient = softmax_loss(SCORES, labels, axis, ignore)
    assert loss == pytest.approx(expected_loss, rel=1e-12)
    assert_close(gradient, 2 * expected_gradient, 1e-12)


@pytest.mark.parametrize(
    ("rule", "divisor"),
    [
        ("normalization: FULL", 15),
        ("normalization: BATCH_SIZE", 3),
        ("normalization: NONE", 1),
        ("normalize: false", 3),
        ("normalize: true", None),
        ("normalize: false normalization: VALID", None),
    ],
)
def test_softmax_loss_normalisation(rule: str, divisor: float | None) -> None:
    text = f"type: 'SoftmaxWithLoss' loss_param {{ ignore_label: 1 {rule} }}"
    loss, gradient = loss_and_gradient(text, SCORES, LABELS[1])
    expected_loss, expected_gradient = softmax_loss(SCORES, LABELS[1], 1, 1, divisor)
    assert loss == pytest.approx(expected_loss, rel=1e-12)
    assert_close(gradient, expected_gradient, 1e-12)


@pytest.mark.parametrize("axis", LABELS)
@pytest.mark.parametrize("ignore", [None, 0])
def test_softmax_loss_with_smoothed_labels(axis: int, ignore: int | None) -> None:
    rule = "" if ignore is None else f"ignore_label: {ignore}"
    text = f"type: 'SoftmaxWithLoss' softmax_param {{ axis: {axis} }} loss_param {{ label_smoothing: 0.25 {rule} }}"
    loss, gradient = loss_and_gradient(text, SCORES, LABELS[axis], weight=2.0)
    expected_loss, expected_gradient = softmax_loss(SCORES, LABELS[axis], axis, ignore, smoothing=0.25)
    assert loss == pytest.approx(expected_loss, rel=1e-12)
    assert_close(gradient, 2 * expected_gradient, 1e-12)


def test_smoothed_loss_of_an_unlikely_class_is_exact() -> None:
    text = "type: 'SoftmaxWithLoss' loss_param { label_smoothing: 0.5 }"
    loss, gradient = loss_and_gradient(text, np.array([[0.0, 2000.0]]), np.array([1.0]))
    assert loss == pytest.approx(0.25 * 2000)
    assert_close(gradient, np.array([[-0.25, 0.25]]), 1e-12)


@pytest.mark.parametrize("smoothing", [-0.1, 1, 1.5])
def test_label_smoothing_out_of_range_is_told(smoothing: float) -> None:
    with pytest.raises(recaffe.RecaffeError, match=f"label_smoothing is {smoothing:g}, expected 0 or more and less"):
        run(f"type: 'SoftmaxWithLoss' loss_param {{ label_smoothing: {smoothing} }}", SCORES, LABELS[1])


@pytest.mark.parametrize("type_name", ["InfogainLoss", "SigmoidCrossEntropyLoss", "HingeLoss", "EuclideanLoss"])
def test_label_smoothing_of_other_losses_is_refused(type_name: str) -> None:
    with pytest.raises(recaffe.RecaffeError, match="label_smoothing is an option of type 'SoftmaxWithLoss' alone"):
        run(f"type: '{type_name}' loss_param {{ label_smoothing: 0.1 }}", SCORES, SCORES)


def test_softmax_loss_without_labels_that_count_is_zero() -> None:
    text = "type: 'SoftmaxWithLoss' loss_param { ignore_label: 2 }"
    loss, gradient = loss_and_gradient(text, rng.normal(size=(3, 4)), np.full(3, 2.0))
    assert loss == 0
    assert (gradient == 0).all()


def test_softmax_loss_stays_finite_for_an_impossible_label() -> None:
    scores = np.array([[0.0, 2000.0, 0.0]])
    loss, gradient = loss_and_gradient("type: 'SoftmaxWithLoss'", scores, np.array([0.0]))
    assert loss == pytest.approx(-np.log(np.finfo(np.float32).tiny))
    assert_close(gradient, np.array([[-1.0, 1.0, 0.0]]), 1e-12)


def test_softmax_loss_second_top_is_the_probabilities() -> None:
    text = "type: 'SoftmaxWithLoss' top: 'loss' top: 'p'"
    loss, p = run(text, SCORES, LABELS[1])
    assert_close(p, softmax(SCORES, 1), 1e-12)
    assert float(loss) == pytest.approx(softmax_loss(SCORES, LABELS[1])[0], rel=1e-12)
    gradient_check(text, [SCORES, LABELS[1]], check_tops=(0, 1))


def test_softmax_loss_with_two_tops_in_a_net() -> None:
    net = make_net("""
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 3 } } }
        layer { name: "t" type: "Input" top: "t" input_param { shape { dim: 4 } } }
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param {
                num_output: 3 weight_filler { type: "gaussian" } } }
        layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "t" top: "loss" top: "p" }
        layer { name: "accuracy" type: "Accuracy" bottom: "p" bottom: "t" top: "accuracy" }
    """)
    x, labels = rng.normal(size=(4, 3)), np.array([0, 1, 2, 2])
    out = net.forward(x=x, t=labels)
    net.clear_param_diffs()
    net.backward()
    W = net.params["ip"][0]
    loss, dy = softmax_loss(x @ W.data.T, labels)
    assert out["loss"] == pytest.approx(loss, rel=1e-5)
    assert_close(W.diff, dy.T @ x, 1e-5)


@pytest.mark.parametrize("type_name", ["SoftmaxWithLoss", "Accuracy"])
@pytest.mark.parametrize("bad", [-1.0, 4.0, 1e9, float("nan")])
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_label_out_of_range_is_told(type_name: str, bad: float) -> None:
    labels = np.array([[0.0, 1.0], [bad, 2.0]])
    with pytest.raises(recaffe.RecaffeError) as error:
        run(f"name: 'here' type: '{type_name}'", rng.normal(size=(2, 4, 2)), labels)
    for part in ("'here'", "bottom 'bottom 1'", f"{bad:g}", "(1, 0)", "a label from 0 to 3"):
        assert part in str(error.value)


def test_ignored_label_may_be_out_of_range_but_no_other() -> None:
    text = "type: 'SoftmaxWithLoss' loss_param { ignore_label: -1 }"
    run(text, rng.normal(size=(3, 4)), np.array([0.0, -1.0, 3.0]))
    with pytest.raises(recaffe.RecaffeError, match=r"value -2 at \(1,\); expected a label from 0 to 3, or -1"):
        run(text, rng.normal(size=(3, 4)), np.array([-1.0, -2.0, 3.0]))


def test_label_count_is_checked() -> None:
    for type_name in ("SoftmaxWithLoss", "Accuracy"):
        with pytest.raises(recaffe.RecaffeError, match="12 labels, expected 3"):
            run(f"type: '{type_name}'", rng.normal(size=(3, 4)), np.zeros((3, 4)))


def test_gradient_for_labels_is_refused() -> None:
    single = SingleLayer("type: 'SoftmaxWithLoss'", [rng.normal(size=(3, 4)), np.zeros(3)])
    single.forward()
    with pytest.raises(recaffe.RecaffeError, match="'bottom 1' has no gradient"):
        backward(single, [np.array(1.0)], [True, True])


def test_euclidean_loss() -> None:
    a, b = rng.normal(size=(4, 3, 2)), rng.normal(size=(4, 6))
    single = SingleLayer("type: 'EuclideanLoss'", [a, b])
    (loss,) = single.forward()
    difference = a - b.reshape(a.shape)
    assert float(loss) == pytest.approx((difference**2).sum() / 8, rel=1e-12)
    backward(single, [np.array(0.5)], [True, True])
    da, db = single.bottom_diffs()
    assert_close(da, 0.5 * difference / 4, 1e-12)
    assert_close(db, -da.reshape(b.shape), 1e-12)


def test_euclidean_loss_refuses_other_sizes() -> None:
    with pytest.raises(recaffe.RecaffeError, match=r"\(4, 3\).*\(4, 2\).*as many values"):
        run("type: 'EuclideanLoss'", np.zeros((4, 3)), np.zeros((4, 2)))
    with pytest.raises(recaffe.RecaffeError, match="the same first size"):
        run("type: 'EuclideanLoss'", np.zeros((4, 3)), np.zeros((3, 4)))


@pytest.mark.parametrize("top_k", [1, 2, 4])
@pytest.mark.parametrize("axis", LABELS)
@pytest.mark.parametrize("ignore", [None, 2])
def test_accuracy(top_k: int, axis: int, ignore: int | None) -> None:
    scores = np.round(SCORES / 2)  # with ties
    rule = "" if ignore is None else f"ignore_label: {ignore}"
    text = f"type: 'Accuracy' top: 'a' top: 'c' accuracy_param {{ top_k: {top_k} axis: {axis} {rule} }}"
    share, of_class = run(text, scores, LABELS[axis])
    expected, expected_of_class = accuracy(scores, LABELS[axis], top_k, axis, ignore)
    assert float(share) == pytest.approx(expected)
    assert_close(of_class, expected_of_class, 1e-12)


def test_accuracy_counts_no_prediction_that_is_no_number() -> None:
    scores = np.array([[np.nan, np.nan], [0.0, 1.0]])
    (share,) = run("type: 'Accuracy'", scores, np.array([0.0, 1.0]))
    assert float(share) == 0.5


def test_accuracy_refuses_more_best_than_classes() -> None:
    with pytest.raises(recaffe.RecaffeError, match="top_k is 5, expected from 1 to the number of classes, 4"):
        run("type: 'Accuracy' accuracy_param { top_k: 5 }", np.zeros((2, 4)), np.zeros(2))


def test_accuracy_is_no_loss() -> None:
    net = make_net("""
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 3 } } }
        layer { name: "t" type: "Input" top: "t" input_param { shape { dim: 4 } } }
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 3 } }
        layer { name: "accuracy" type: "Accuracy" bottom: "y" bottom: "t" top: "accuracy" loss_weight: 1 }
    """)
    net.forward()
    with pytest.raises(recaffe.RecaffeError, match="no gradient"):
        net.backward()


def test_sigmoid_cross_entropy_loss() -> None:
    x, t = 3 * rng.normal(size=(3, 4)), rng.uniform(0, 1, size=(3, 4))
    p = 1 / (1 + np.exp(-x))
    loss, gradient = loss_and_gradient("type: 'SigmoidCrossEntropyLoss'", x, t, weight=2.0)
    assert loss == pytest.approx(-(t * np.log(p) + (1 - t) * np.log(1 - p)).sum() / 3, rel=1e-12)
    assert_close(gradient, 2 * (p - t) / 3, 1e-12)


def test_sigmoid_cross_entropy_loss_ignores() -> None:
    x, t = rng.normal(size=(2, 3)), np.array([[0.0, 1.0, -1.0], [-1.0, 1.0, 1.0]])
    p, counts = 1 / (1 + np.exp(-x)), t >= 0
    losses = np.where(t == 1, -np.log(p), -np.log(1 - p)) * counts
    for rule, divisor in (("", 2), ("normalization: VALID", 4), ("normalization: FULL", 6), ("normalize: true", 4)):
        text = f"type: 'SigmoidCrossEntropyLoss' loss_param {{ ignore_label: -1 {rule} }}"
        loss, gradient = loss_and_gradient(text, x, t)
        assert loss == pytest.approx(losses.sum() / divisor, rel=1e-12)
        assert_close(gradient, (p - t) * counts / divisor, 1e-12)


def test_sigmoid_cross_entropy_loss_of_large_scores() -> None:
    x, t = np.array([[-1e3, 1e3, 1e3]]), np.array([[1.0, 1.0, 0.0]])
    loss, gradient = loss_and_gradient("type: 'SigmoidCrossEntropyLoss'", x, t)
    assert loss == pytest.approx(2000)
    assert gradient.tolist() == [[-1, 0, 1]]


def test_hinge_loss() -> None:
    x = np.array([[0.5, 2.0, -3.0], [0.0, 0.25, 0.0]])
    labels = np.array([1.0, 0.0])
    margins = np.array([[1.5, 0.0, 0.0], [1.0, 1.25, 1.0]])
    signs = np.array([[-1, 1, -1], [1, -1, -1]])
    loss, gradient = loss_and_gradient("type: 'HingeLoss'", x, labels)
    assert loss == pytest.approx(margins.sum() / 2)
    assert_close(gradient, -signs * (margins > 0) / 2, 1e-12)
    loss, gradient = loss_and_gradient("type: 'HingeLoss' hinge_loss_param { norm: L2 }", x, labels)
    assert loss == pytest.approx((margins**2).sum() / 2)
    assert_close(gradient, -signs * margins, 1e-12)


def test_multinomial_logistic_loss() -> None:
    p = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    loss, gradient = loss_and_gradient("type: 'MultinomialLogisticLoss'", p, np.array([1.0, 2.0]))
    assert loss == pytest.approx(-(np.log(0.5) + np.log(1e-20)) / 2)
    assert_close(gradient, np.array([[0, -1, 0], [0, 0, -1e20 / 2]]), 1e-12)


@pytest.mark.parametrize("ignore", [None, 2])
def test_infogain_loss(ignore: int | None) -> None:
    H = rng.uniform(size=(4, 4))
    rule = "" if ignore is None else f"loss_param {{ ignore_label: {ignore} }}"
    text = f"type: 'InfogainLoss' {rule}"
    loss, gradient = _with_matrix(text, H)
    p = softmax(SCORES, 1)
    expected_loss, expected, counted = 0.0, np.zeros(p.shape), 0
    for n, i in np.ndindex(3, 5):
        label = int(LABELS[1][n, i])
        if label != ignore:
            counted += 1
            expected_loss -= (H[label] * np.log(p[n, :, i])).sum()
            expected[n, :, i] = p[n, :, i] * H[label].sum() - H[label]
    assert loss == pytest.approx(expected_loss / counted, rel=1e-12)
    assert_close(gradient, expected / counted, 1e-12)


def test_infogain_loss_of_the_unit_matrix_is_the_softmax_loss() -> None:
    loss, gradient = _with_matrix("type: 'InfogainLoss'", np.eye(4))
    expected_loss, expected_gradient = softmax_loss(SCORES, LABELS[1])
    assert loss == pytest.approx(expected_loss, rel=1e-12)
    assert_close(gradient, expected_gradient, 1e-12)


def test_infogain_matrix_from_a_file(tmp_path) -> None:
    H = rng.uniform(size=(4, 4)).astype(np.float32)
    path = tmp_path / "H.binaryproto"
    path.write_bytes(array_to_blob(H.reshape(1, 1, 4, 4)).SerializeToString())
    from_file = loss_and_gradient(f"type: 'InfogainLoss' infogain_loss_param {{ source: '{path}' }}", SCORES, LABELS[1])
    from_bottom = _with_matrix("type: 'InfogainLoss'", H.astype(np.float64))
    assert from_file[0] == from_bottom[0]
    assert (from_file[1] == from_bottom[1]).all()


def test_infogain_loss_refuses() -> None:
    with pytest.raises(recaffe.RecaffeError, match="H is missing"):
        run("type: 'InfogainLoss'", SCORES, LABELS[1])
    with pytest.raises(recaffe.RecaffeError, match=r"H has shape \(3, 3\), expected \(4, 4\)"):
        run("type: 'InfogainLoss'", SCORES, LABELS[1], np.eye(3))


def _with_matrix(text: str, H: np.ndarray) -> tuple[float, np.ndarray]:
    """Loss and gradient of an InfogainLoss for SCORES and LABELS[1]."""
    single = SingleLayer(text, [SCORES, LABELS[1], H])
    (loss,) = single.forward()
    return float(loss), backward(single, [np.array(1.0)], [True, False, False])[0]


@pytest.mark.parametrize("legacy", [False, True])
def test_contrastive_loss(legacy: bool) -> None:
    a, b, like = rng.normal(size=(6, 3)), rng.normal(size=(6, 3)), np.array([1.0, 0, 1, 0, 0, 0])
    b[3], b[4] = a[3] + 9, a[4] + 0.1  # beyond the margin, and near
    text = f"type: 'ContrastiveLoss' contrastive_loss_param {{ margin: 2 legacy_version: {str(legacy).lower()} }}"
    single = SingleLayer(text, [a, b, like])
    expected, da = 0.0, np.zeros(a.shape)
    for n in range(6):
        difference, d = a[n] - b[n], np.linalg.norm(a[n] - b[n])
        if like[n]:
            expected += d**2
            da[n] = difference
        elif legacy:
            expected += max(2 - d**2, 0)
            da[n] = -difference if d**2 < 2 else 0
        else:
            expected += max(2 - d, 0) ** 2
            da[n] = -max(2 - d, 0) / (d + 1e-4) * difference
    assert float(single.forward()[0]) == pytest.approx(expected / 12, rel=1e-12)
    diffs = backward(single, [np.array(3.0)], [True, True, False])
    assert_close(diffs[0], 3 * da / 6, 1e-12)
    assert_close(diffs[1], -3 * da / 6, 1e-12)


@pytest.mark.parametrize("type_name", ["HingeLoss", "MultinomialLogisticLoss", "InfogainLoss"])
def test_other_labels_out_of_range_are_told(type_name: str) -> None:
    H = [np.eye(4)] if type_name == "InfogainLoss" else []
    with pytest.raises(recaffe.RecaffeError, match=r"the value 4 at \(1,\); expected a label from 0 to 3"):
        run(f"type: '{type_name}'", np.full((3, 4), 0.25), np.array([0.0, 4.0, 1.0]), *H)
