"""Softmax."""

import math
from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import Layer, register
from ..fork_options import refuse_fork_options
from .neuron_layer import NeuronLayer

FORK_OPTIONS = (
    "class_weight",
    "cutting_point",
    "hard_mining_label",
    "hard_ratio",
    "label_smooth_factor",
    "normalize_type",
)


@register
class Softmax(NeuronLayer):
    """y_c = exp(x_c) / sum_k exp(x_k), over the classes c along one axis.

    dx_c = y_c (dy_c - sum_k dy_k y_k).

    Shapes
        bottom x: any with the axis; top y: as x, in place if wanted.

    Options (softmax_param)
        axis: the axis of the classes (1); negative ones count from the end.
    """

    type = "Softmax"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        refuse_softmax_forks(self)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        super().reshape(bottom, top)
        self.rows = around_axis(bottom[0].shape, self.axis(self.param.softmax_param.axis, bottom[0]))

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        softmax_forward(self.backend, bottom[0].data.reshape(self.rows), top[0].data.reshape(self.rows))
        self.y = self.keep(top[0])

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[0]:
            y, dy, dx = (array.reshape(self.rows) for array in (self.y.data, top[0].diff, bottom[0].diff))
            softmax_backward(self.backend, y, dy, dx)


def refuse_softmax_forks(layer: Layer) -> None:
    """Raise LayerError for options that forks added to softmax_param."""
    refuse_fork_options(layer, layer.param.softmax_param, FORK_OPTIONS)


def around_axis(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """``shape`` with the axes before ``axis`` as one, and those after it as one: (outer, classes, inner)."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


@fusable
def softmax_forward(backend: Any, x: Any, y: Any) -> None:
    """y = softmax(x) over axis 1; x, y (O, C, I); y may be x."""
    xp = backend.xp
    xp.subtract(x, x.max(axis=1, keepdims=True), out=y)  # the largest becomes 0: exp cannot overflow
    xp.exp(y, out=y)
    y /= y.sum(axis=1, keepdims=True)


@fusable
def softmax_backward(backend: Any, y: Any, dy: Any, dx: Any) -> None:
    """dx = y * (dy - sum over axis 1 of dy * y); y, dy, dx (O, C, I); dx may be dy."""
    xp = backend.xp
    total = (dy * y).sum(axis=1, keepdims=True)
    xp.subtract(dy, total, out=dx)
    dx *= y
