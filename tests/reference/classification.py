"""Softmax, its loss and the accuracy, one position at a time in float64."""

import numpy as np


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    """exp(x) / sum exp(x) along ``axis``."""
    powers = np.exp(np.asarray(x, np.float64))
    return powers / powers.sum(axis=axis, keepdims=True)


def positions(x: np.ndarray, labels: np.ndarray, axis: int, ignore: int | None):
    """(index of the class axis's place, class scores, label) for every label that counts."""
    scores = np.moveaxis(np.asarray(x, np.float64), axis, -1)
    flat_labels = labels.reshape(scores.shape[:-1])
    for place in np.ndindex(scores.shape[:-1]):
        label = int(flat_labels[place])
        if label != ignore:
            yield place, scores[place], label


def softmax_loss(
    x: np.ndarray,
    labels: np.ndarray,
    axis: int = 1,
    ignore: int | None = None,
    divisor: float | None = None,
    smoothing: float = 0.0,
) -> tuple[float, np.ndarray]:
    """The loss and its gradient in x; divided by the number of labels that count, or by ``divisor``.

    A share ``smoothing`` of each label is spread evenly over all classes.
    """
    loss, gradient = 0.0, np.zeros(np.moveaxis(x, axis, -1).shape)
    counted = list(positions(x, labels, axis, ignore))
    for place, scores, label in counted:
        p = softmax(scores, 0)
        target = (1 - smoothing) * np.eye(len(p))[label] + smoothing / len(p)
        loss -= (target * np.log(p)).sum()
        gradient[place] = p - target
    divisor = divisor or max(len(counted), 1)
    return loss / divisor, np.moveaxis(gradient, -1, axis) / divisor


def accuracy(
    x: np.ndarray, labels: np.ndarray, top_k: int = 1, axis: int = 1, ignore: int | None = None
) -> tuple[float, np.ndarray]:
    """The share of labels among the ``top_k`` best scores, over all labels and for each class; ties count against."""
    classes = x.shape[axis]
    right, labelled = np.zeros(classes), np.zeros(classes)
    for _, scores, label in positions(x, labels, axis, ignore):
        others = np.delete(scores, label)
        right[label] += (others >= scores[label]).sum() < top_k
        labelled[label] += 1
    return right.sum() / max(labelled.sum(), 1), right / np.maximum(labelled, 1)
