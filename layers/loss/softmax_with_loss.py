"""SoftmaxWithLoss: the usual loss of classification."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import register
from ..activation.softmax import around_axis, refuse_softmax_forks, softmax_backward, softmax_forward
from ..common.indices import index_values
from .loss_layer import LossLayer, Normaliser


@register
class SoftmaxWithLoss(LossLayer):
    """loss = -1/Z sum_n log p_n(l_n), with p = softmax(x) over the classes along one axis, l the labels.

    dx = w/Z (p - onehot(l)), 0 for ignored labels, w the loss weight.  With label smoothing e, a share of e is spread
    evenly over the C classes: q = (1 - e) onehot(l) + e/C, loss = -1/Z sum_n sum_c q_c log p_c, dx = w/Z (p - q).

    Label smoothing: Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", CVPR 2016.

    Shapes
        bottom 0 x: scores, N... x C x ..., the classes along ``axis``
        bottom 1 l: labels from 0 to C - 1, as many as x has values without the axis
        top 0 loss: a scalar; top 1 p (optional): probabilities, as x

    Options
        softmax_param.axis: the axis of the classes (1)
        loss_param.ignore_label: labels of this value do not count
        loss_param.normalization: Z, the labels that count (VALID), all (FULL), the first size (BATCH_SIZE), 1 (NONE)
        loss_param.label_smoothing: e, from 0 to below 1 (0).

    Raises LayerError for a label out of range.
    """

    type = "SoftmaxWithLoss"
    tops = (1, 2)
    smooths_labels = True

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        refuse_softmax_forks(self)
        param = self.param.loss_param
        self.ignore = param.ignore_label if param.HasField("ignore_label") else None
        self.smoothing = param.label_smoothing
        if not 0 <= self.smoothing < 1:
            self.fail(f"label_smoothing is {self.smoothing:g}, expected 0 or more and less than 1")
        self.normaliser = Normaliser(self)
        self.probability = top[1] if len(top) == 2 else Blob((), self.dtype, self.backend, f"{self.name}.probability")

    def class_axis(self) -> int:
        """The axis of the classes, as the prototxt gives it."""
        return self.param.softmax_param.axis

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        super().reshape(bottom, top)
        x, labels = bottom[:2]
        self.rows = outer, _, inner = around_axis(x.shape, self.axis(self.class_axis(), x))
        if labels.count != outer * inner:
            self.fail(
                f"bottom {labels.name!r} has shape {labels.shape}: {labels.count} labels, expected {outer * inner}"
                f" for the scores {x.name!r} of shape {x.shape}"
            )
        self.probability.reshape(*x.shape)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.read_labels(bottom[1])
        x, p = bottom[0].data.reshape(self.rows), self.probability.data.reshape(self.rows)
        loss = softmax_loss_forward(self.backend, x, self.labels, self.smoothing, p)
        top[0].data[...] = loss / self.divisor

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        self.no_gradient_for(propagate_down, bottom, 1)
        if not propagate_down[0]:
            return
        p, dx = self.probability.data.reshape(self.rows), bottom[0].diff.reshape(self.rows)
        softmax_loss_backward(self.backend, p, self.labels, self.smoothing, top[0].diff / self.divisor, dx)
        if len(top) == 2:
            self.add_through_probability(top[1], dx)

    def read_labels(self, labels: Blob) -> None:
        """Check the labels (-1 then stands for an ignored one) and find the divisor of the loss."""
        outer, classes, inner = self.rows
        self.labels = index_values(self, labels, classes, "label", self.ignore).reshape(outer, inner)
        valid = outer * inner
        if self.ignore is not None and self.normaliser.counts_valid:
            valid = int((self.labels >= 0).sum())
        self.divisor = self.normaliser(outer, inner, valid)

    def add_through_probability(self, probability: Blob, dx: Any) -> None:
        """Add to dx what comes from the layers that read the probabilities."""
        p, dp = probability.data.reshape(self.rows), probability.diff.reshape(self.rows)
        through_p = self.xp.empty_like(dx)
        softmax_backward(self.backend, p, dp, through_p)
        dx += through_p


@fusable
def softmax_loss_forward(backend: Any, x: Any, labels: Any, smoothing: float, p: Any) -> Any:
    """p = softmax(x) over axis 1; gives -sum of q log p, with q = (1 - smoothing) onehot(label) + smoothing / C.

    x, p (O, C, I); labels (O, I), int64, -1 where nothing counts.
    """
    xp = backend.xp
    softmax_forward(backend, x, p)
    at_label = p[label_places(xp, labels)]
    smallest = xp.finfo(xp.float32).tiny  # the logarithm stays finite
    logarithm = xp.log(xp.maximum(at_label, smallest))
    if smoothing:
        below_largest = (x - x.max(axis=1, keepdims=True)).mean(axis=1)
        logarithm *= 1 - smoothing
        logarithm += smoothing * (below_largest + xp.log(p.max(axis=1)))
    return -(logarithm * (labels >= 0)).sum()


@fusable
def softmax_loss_backward(backend: Any, p: Any, labels: Any, smoothing: float, scale: Any, dx: Any) -> None:
    """dx = scale * (p - q), 0 where the label is -1; p, dx (O, C, I), labels (O, I), q as in the loss."""
    xp = backend.xp
    xp.subtract(p, smoothing / p.shape[1], out=dx)
    dx[label_places(xp, labels)] -= 1 - smoothing
    dx *= scale
    dx *= (labels >= 0)[:, None]


def label_places(xp: Any, labels: Any) -> tuple[Any, Any, Any]:
    """The index that takes the label's value out of an array (O, C, I), for labels (O, I)."""
    outer, inner = labels.shape
    return xp.arange(outer)[:, None], labels, xp.arange(inner)[None]
