"""Level: one of the stacked levels of a recurrent layer."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...proto import TRAIN
from ..activation.dropout import dropout_forward
from .run import Run
from .sequence_layer import SequenceLayer


class Level:
    """A run in each direction over the same input; their outputs stand side by side, or are summed.

    Every level but the first drops out of what it reads from the level below while training.
    """

    def __init__(self, layer: SequenceLayer, runs: Sequence[Run], sums: bool, dropout_ratio: float):
        self.layer, self.runs, self.sums = layer, runs, sums
        self.dropout_ratio = dropout_ratio if layer.phase == TRAIN else 0.0
        self.dropped = Blob((), layer.dtype, layer.backend)
        self.width = runs[0].H * (1 if sums else len(runs))

    def forward(
        self, x: Blob, static: Blob | None, keeps: Sequence[Any], mask: Any, firsts: Sequence[Any], y: Blob
    ) -> None:
        """y (T x N x width) from ``x``, which is dropped out of in place; the lists hold one item for each run."""
        if self.dropout_ratio:
            self.dropped.reshape(*x.shape)
            self.layer.backend.uniform(self.dropped.data)
            dropout_forward(self.layer.backend, x.data, self.dropped.data, x.data, self.dropout_ratio)
        for k, (run, keep, first) in enumerate(zip(self.runs, keeps, firsts, strict=True)):
            h = run.forward(x, static, keep, mask, first)
            if self.sums and k:
                y.data[...] += h
            else:
                self.part(y.data, k)[...] = h
        if mask is not None:
            y.data[...] *= mask[:, :, None]

    def backward(
        self, x: Blob, static: Blob | None, mask: Any, dy: Any, d_states: Sequence[Any],
        wants_x: bool, wants_static: bool,
    ) -> None:  # fmt: skip
        """Overwrite the gradient of ``x``, add to that of ``static``; ``d_states`` as in ``Run.backward``."""
        if mask is not None:
            dy = dy * mask[:, :, None]
        if wants_x:
            x.clear_diff()
        for k, run in enumerate(self.runs):
            run.backward(x, static, self.part(dy, k), d_states[k], wants_x, wants_static)
        if self.dropout_ratio and wants_x:
            x.diff[...] *= self.dropped.data

    def part(self, y: Any, k: int) -> Any:
        """Run k's part of an output or its gradient."""
        H = self.runs[k].H
        return y if self.sums else y[..., k * H : (k + 1) * H]
