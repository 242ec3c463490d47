"""What the bottoms of CTC layers say: how long each stream is, and the labels it is to spell."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...framework.blob import Blob
from ...framework.layer import Layer


@dataclass
class Targets:
    """On the host: labels N x L, -1 behind the end of each stream; their number; and the steps of each stream."""

    labels: np.ndarray
    lengths: np.ndarray
    steps: np.ndarray


def check_scores(layer: Layer, scores: Blob) -> tuple[int, int, int]:
    """T, N, C of the scores; LayerError for another shape."""
    shape = scores.shape
    if len(shape) < 3 or shape[3:] != (1,) * len(shape[3:]) or 0 in shape:
        layer.fail(f"bottom {scores.name!r} has shape {shape}, expected T x N x C, each 1 or more")
    return shape[0], shape[1], shape[2]


def check_targets(layer: Layer, bottom: Sequence[Blob]) -> None:
    """Raise LayerError unless the bottoms behind the scores fit them."""
    T, N, _ = check_scores(layer, bottom[0])
    stream_axis = 0 if len(bottom) == 2 else 1
    labels = bottom[-1]
    if labels.ndim < 2 or labels.shape[stream_axis] != N or labels.count != labels.shape[0] * labels.shape[1]:
        expected = f"N x L with N = {N}" if stream_axis == 0 else f"L x N with N = {N}"
        layer.fail(f"bottom {labels.name!r} (labels) has shape {labels.shape}, expected {expected}")
    if len(bottom) == 3 and bottom[1].count != T * N:
        layer.fail(f"bottom {bottom[1].name!r} (indicators) has shape {bottom[1].shape}, expected T x N = {(T, N)}")
    for blob, what in zip(bottom[1:-1] if len(bottom) == 4 else (), ("steps", "lengths"), strict=False):
        if blob.count != N:
            layer.fail(f"bottom {blob.name!r} ({what}) has shape {blob.shape}, expected N = {(N,)}")


def read_targets(layer: Layer, bottom: Sequence[Blob], blank: int) -> Targets:
    """The targets of a pass.

    Two bottoms: every stream has T steps.  Three: a stream ends before the first indicator, after step 0, that is 0.
    In both a negative label ends the labels, and blanks among them are left out.  Four: steps and lengths say it.
    Raises LayerError for a label or a length out of range.
    """
    T, N, C = check_scores(layer, bottom[0])
    labels = whole_numbers(layer, bottom[-1]).reshape(bottom[-1].shape[:2])
    labels = labels if len(bottom) == 2 else labels.T
    steps = np.full(N, T)
    counts = np.ones(labels.shape, bool)
    if len(bottom) == 4:
        steps = lengths_from(layer, bottom[1], T)
        counts = np.arange(labels.shape[1]) < lengths_from(layer, bottom[2], labels.shape[1])[:, None]
    else:
        if len(bottom) == 3:
            steps = steps_from(layer, bottom[1], T, N)
        counts &= ~np.logical_or.accumulate(labels < 0, axis=1) & (labels != blank)
    wrong = counts & ((labels < 0) | (labels >= C) | (labels == blank))
    if wrong.any():
        n, place = (int(index) for index in np.argwhere(wrong)[0])
        layer.fail(
            f"bottom {bottom[-1].name!r}: label {place} of stream {n} is {labels[n, place]},"
            f" expected a class from 0 to {C - 1} other than the blank, {blank}"
        )
    order = np.argsort(~counts, axis=1, kind="stable")
    labels = np.take_along_axis(np.where(counts, labels, -1), order, axis=1)
    return Targets(labels, counts.sum(axis=1), steps)


def whole_numbers(layer: Layer, blob: Blob) -> np.ndarray:
    """The values of ``blob`` on the host; LayerError if one is not a whole number."""
    values = layer.backend.to_host(blob.data)
    numbers = np.where(np.isfinite(values), np.rint(values), 0).astype(np.int64)
    if (numbers != values).any():
        wrong = values[numbers != values].flat[0]
        layer.fail(f"bottom {blob.name!r} holds {wrong:g}, expected whole numbers")
    return numbers


def lengths_from(layer: Layer, blob: Blob, most: int) -> np.ndarray:
    """One length a stream, from 0 to ``most``."""
    lengths = whole_numbers(layer, blob).reshape(-1)
    if ((lengths < 0) | (lengths > most)).any():
        wrong = lengths[(lengths < 0) | (lengths > most)][0]
        layer.fail(f"bottom {blob.name!r} holds the length {wrong}, expected 0 to {most}")
    return lengths


def steps_from(layer: Layer, blob: Blob, T: int, N: int) -> np.ndarray:
    """The steps of each stream up to where the next sequence starts (an indicator of 0)."""
    starts = layer.backend.to_host(blob.data).reshape(T, N) == 0
    starts[0] = False
    return np.where(starts.any(axis=0), starts.argmax(axis=0), T)
