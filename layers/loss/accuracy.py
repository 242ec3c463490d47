"""Accuracy."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import Layer, register
from ..activation.softmax import around_axis
from ..common.indices import index_values
from ..fork_options import refuse_fork_options


@register
class Accuracy(Layer):
    """The share of labels whose score is among the k best.  Scores as good as the label's count as better.

    It has no gradient.

    Shapes
        bottom 0: scores, N... x C x ..., the classes along ``axis``
        bottom 1: labels from 0 to C - 1, as many as the scores have values without the axis
        top 0: a scalar; top 1 (optional): the share for each class, C (0 for a class without labels)

    Options (accuracy_param)
        top_k: k (1); axis: of the classes (1); ignore_label: labels of this value do not count.

    Raises LayerError for a label out of range.
    """

    type = "Accuracy"
    bottoms, tops = (2, 2), (1, 2)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.accuracy_param
        refuse_fork_options(self, param, ("denominator", "min_is_better"))
        self.top_k = param.top_k
        self.ignore = param.ignore_label if param.HasField("ignore_label") else None

    def allow_force_backward(self, bottom_index: int) -> bool:
        return False

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        scores, labels = bottom
        axis = self.axis(self.param.accuracy_param.axis, scores)
        self.rows = outer, classes, inner = around_axis(scores.shape, axis)
        if labels.count != outer * inner:
            self.fail(
                f"bottom {labels.name!r} has shape {labels.shape}: {labels.count} labels, expected {outer * inner}"
                f" for the scores {scores.name!r} of shape {scores.shape}"
            )
        if not 1 <= self.top_k <= classes:
            self.fail(f"top_k is {self.top_k}, expected from 1 to the number of classes, {classes}")
        top[0].reshape()
        if len(top) == 2:
            top[1].reshape(classes)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        outer, classes, inner = self.rows
        labels = index_values(self, bottom[1], classes, "label", self.ignore).reshape(outer, inner)
        is_label = labels[:, None] == self.xp.arange(classes)[:, None]  # (outer, classes, inner)
        scores = bottom[0].data.reshape(self.rows)
        label_score = self.xp.where(is_label, scores, 0).sum(axis=1, keepdims=True)
        rank = (scores >= label_score).sum(axis=1)  # the label itself counts; 0 for a score that is no number
        right = (rank >= 1) & (rank <= self.top_k) & (labels >= 0)
        top[0].data[...] = _share(self.xp, right.sum(), (labels >= 0).sum())
        if len(top) == 2:
            right_of_class = (is_label & right[:, None]).sum(axis=(0, 2))
            top[1].data[...] = _share(self.xp, right_of_class, is_label.sum(axis=(0, 2)))

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if any(propagate_down):
            self.fail("an accuracy has no gradient: it cannot be a loss")


def _share(xp: Any, part: Any, whole: Any) -> Any:
    """part / whole, and 0 where there is nothing."""
    return part / xp.maximum(whole, 1)
