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

    With ``last_output`` a run's output is that of the true step which it runs last, zeros for a stream without one.
    Every level but the first drops out of what it reads from the level below while training.
    """

    def __init__(
        self, layer: SequenceLayer, runs: Sequence[Run], sums: bool, last_output: bool, dropout_ratio: float
    ):  # fmt: skip
        self.layer, self.runs, self.sums, self.last_output = layer, runs, sums, last_output
        self.dropout_ratio = dropout_ratio if layer.phase == TRAIN else 0.0
        self.dropped = Blob((), layer.dtype, layer.backend)
        self.width = runs[0].H * (1 if sums else len(runs))

    def forward(
        self, x: Blob, static: Blob | None, keeps: Sequence[Any], mask: Any, firsts: Sequence[Any], y: Blob
    ) -> None:
        """y (``output_shape``) from ``x``, which is dropped out of in place; the lists hold one item for each run."""
        if self.dropout_ratio:
            self.dropped.reshape(*x.shape)
            self.layer.backend.uniform(self.dropped.data)
            dropout_forward(self.layer.backend, x.data, self.dropped.data, x.data, self.dropout_ratio)
        for k, (run, keep, first) in enumerate(zip(self.runs, keeps, firsts, strict=True)):
            h = run.forward(x, static, keep, mask, first)
            if self.last_output:
                h = self.at_last_step(h, run, mask)
            if self.sums and k:
                y.data[...] += h
            else:
                self.part(y.data, k)[...] = h
        if mask is not None and not self.last_output:
            y.data[...] *= mask[:, :, None]

    def backward(
        self, x: Blob, static: Blob | None, mask: Any, dy: Any, d_states: Sequence[Any],
        wants_x: bool, wants_static: bool,
    ) -> None:  # fmt: skip
        """Overwrite the gradient of ``x``, add to that of ``static``; ``d_states`` as in ``Run.backward``."""
        if mask is not None and not self.last_output:
            dy = dy * mask[:, :, None]
        if wants_x:
            x.clear_diff()
        for k, run in enumerate(self.runs):
            d_output = self.part(dy, k)
            if self.last_output:
                d_output = self.from_last_step(d_output, run, mask, x.shape[0])
            run.backward(x, static, d_output, d_states[k], wants_x, wants_static)
        if self.dropout_ratio and wants_x:
            x.diff[...] *= self.dropped.data

    def part(self, y: Any, k: int) -> Any:
        """Run k's part of an output or its gradient."""
        H = self.runs[k].H
        return y if self.sums else y[..., k * H : (k + 1) * H]

    def output_shape(self, T: int, N: int) -> tuple[int, ...]:
        """The shape of y."""
        return (N, self.width) if self.last_output else (T, N, self.width)

    def at_last_step(self, h: Any, run: Run, mask: Any) -> Any:
        """N x H of ``h`` (T x N x H)."""
        if mask is None:
            return h[0 if run.reverse else -1]
        place = self.last_true_steps(run, mask)
        return h[place] * mask[place][:, None]

    def from_last_step(self, d_last: Any, run: Run, mask: Any, T: int) -> Any:
        """The transpose of ``at_last_step``: T x N x H, zeros but there."""
        d_h = self.layer.backend.scratch("recurrent.d_output", (T, *d_last.shape), self.layer.dtype)
        d_h.fill(0)
        if mask is None:
            d_h[0 if run.reverse else -1] = d_last
        else:
            place = self.last_true_steps(run, mask)
            d_h[place] = d_last * mask[place][:, None]
        return d_h

    def last_true_steps(self, run: Run, mask: Any) -> tuple[Any, Any]:
        """Where in T x N the true steps stand that ``run`` runs last; a padded one in a stream without a true one."""
        xp, (T, N) = self.layer.xp, mask.shape
        t = xp.argmax(mask, axis=0) if run.reverse else T - 1 - xp.argmax(mask[::-1], axis=0)
        return t, xp.arange(N)
