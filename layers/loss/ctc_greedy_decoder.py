"""CTCGreedyDecoder: the labels along the best path."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...framework.blob import Blob
from ...framework.layer import Layer, register
from .ctc_targets import check_scores, check_targets, read_targets, steps_from


@register
class CTCGreedyDecoder(Layer):
    """The class with the largest score at each step; repeated classes become one, then blanks are left out.

    Graves et al., "Connectionist temporal classification", ICML 2006 (best path decoding).

    Shapes
        bottom 0 x: scores or probabilities T x N x C
        then none; or indicators T x N; or what CTCLoss reads behind its scores
        without labels, top sequences: T x N, -1 behind the end; top scores (optional): N
        with labels, top accuracy, alone, or behind sequences, or behind sequences and scores: two numbers, the mean of
        1 - edit distance / the longer length, and the part of the streams that are spelt exactly.
        The score of a stream is minus the sum of its largest scores.

    Two bottoms: the second is indicators if it is T x N, labels if it is N x L; where that may be both, it is what it
    was in the pass before.

    Options (ctc_decoder_param)
        blank_index: the class of the blank (0), -1 is the last; ctc_merge_repeated (true): whether repeated classes
        become one.

    Raises LayerError for a label or a length out of range.
    """

    type = "CTCGreedyDecoder"
    bottoms, tops = (1, 4), (1, 3)

    has_labels: bool | None = None  # not known before the first reshape

    def allow_force_backward(self, bottom_index: int) -> bool:
        return False

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        T, N, C = check_scores(self, bottom[0])
        self.has_labels = len(bottom) > 2 or (len(bottom) == 2 and not self.is_indicator(bottom[1], T, N))
        if self.has_labels:
            check_targets(self, bottom)
        elif len(top) > 2:
            self.fail(f"got {len(top)} tops, expected sequences and scores; an accuracy needs labels")
        param = self.param.ctc_decoder_param
        self.blank = C - 1 if param.blank_index == -1 else param.blank_index
        if not 0 <= self.blank < C:
            self.fail(f"blank_index is {self.blank}, expected a class from 0 to {C - 1}, or -1")
        shapes = {"sequences": (T, N), "scores": (N,), "accuracy": (2,)}
        self.given = dict(zip(self.kinds(len(top)), top, strict=True))
        for kind, blob in self.given.items():
            blob.reshape(*shapes[kind])

    def kinds(self, tops: int) -> list[str]:
        """What each top is."""
        if not self.has_labels:
            return ["sequences", "scores"][:tops]
        return {1: ["accuracy"], 2: ["sequences", "accuracy"], 3: ["sequences", "scores", "accuracy"]}[tops]

    def is_indicator(self, blob: Blob, T: int, N: int) -> bool:
        """Whether the only bottom behind the scores is T x N, not N x L; LayerError if nothing tells."""
        if blob.shape[:2] == (T, N) and T == N:
            if self.has_labels is not None:
                return not self.has_labels
            self.fail(
                f"bottom {blob.name!r} of shape {blob.shape} may be T x N indicators or N x L labels;"
                " give three bottoms: scores, indicators and labels"
            )
        return blob.shape[:2] == (T, N)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        T, N, C = check_scores(self, bottom[0])
        x = bottom[0].data.reshape(T, N, C)
        best = self.backend.to_host(x.argmax(axis=2))
        targets = read_targets(self, bottom, self.blank) if self.has_labels else None
        if targets is not None:
            steps = targets.steps
        else:
            steps = np.full(N, T) if len(bottom) == 1 else steps_from(self, bottom[1], T, N)
        true = np.arange(T)[:, None] < steps
        sequences = self.decode(best, true)
        if "sequences" in self.given:
            self.given["sequences"].data[...] = self.backend.to_device(sequences.astype(self.dtype))
        if "scores" in self.given:
            largest = x.max(axis=2) * self.backend.to_device(true.astype(self.dtype))
            self.given["scores"].data[...] = -largest.sum(axis=0)
        if targets is not None:
            accuracy = self.accuracy(sequences, targets)
            self.given["accuracy"].data[...] = self.backend.to_device(accuracy.astype(self.dtype))

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if any(propagate_down):
            self.fail("decoded labels have no gradient; put propagate_down: false here")

    def decode(self, best: np.ndarray, true: np.ndarray) -> np.ndarray:
        """The labels of the paths ``best`` (T x N), -1 behind the end."""
        kept = (best != self.blank) & true
        if self.param.ctc_decoder_param.ctc_merge_repeated:
            kept[1:] &= best[1:] != best[:-1]
        order = np.argsort(~kept, axis=0, kind="stable")
        return np.take_along_axis(np.where(kept, best, -1), order, axis=0)

    def accuracy(self, sequences: np.ndarray, targets: Any) -> np.ndarray:
        """The mean of 1 - edit distance / longer length, and the part that is exact."""
        likeness = []
        for found, wanted, length in zip(sequences.T, targets.labels, targets.lengths, strict=True):
            found = found[found >= 0]
            longer = max(len(found), length, 1)
            likeness.append(1 - edit_distance(found, wanted[:length]) / longer)
        return np.array([np.mean(likeness), np.mean(np.equal(likeness, 1))])


def edit_distance(a: np.ndarray, b: np.ndarray) -> int:
    """How many labels are to be put in, left out or changed to make ``b`` of ``a``."""
    row = np.arange(len(b) + 1)
    for i, label in enumerate(a):
        changed = np.minimum(row[:-1] + (b != label), row[1:] + 1)
        row = np.concatenate([[i + 1], changed])
        # to put in a label costs 1 for each place: the least of row[k] + (j - k)
        row = np.minimum.accumulate(row - np.arange(len(row))) + np.arange(len(row))
    return int(row[-1])
