"""Lstm: the LSTM of junhyukoh's fork of Caffe."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import Layer, register
from ...proto import LayerParameter, RecurrentParameter
from .cell import Arrays, Cell
from .lstm import LSTM, LSTMCell


class ClippedLSTMCell(LSTMCell):
    """LSTMCell whose gradients at the gates, before their nonlinearities, are held between -bound and bound."""

    def __init__(self, bound: float):
        self.bound = bound

    def step_backward(
        self, xp: Any, weights: Arrays, gates: Any, extra: Any, before: Any, after: Any,
        d_after: Any, d_gates: Any, d_extra: Any, d_before: Any,
    ) -> None:  # fmt: skip
        super().step_backward(xp, weights, gates, extra, before, after, d_after, d_gates, d_extra, d_before)
        xp.clip(d_gates, -self.bound, self.bound, out=d_gates)
        xp.matmul(d_gates, weights[0], out=d_before[0])

    def run_backward(self, backend: Any, *arrays: Any) -> None:
        Cell.run_backward(self, backend, *arrays)  # the fused loop does not clip


class ClippedLSTM(LSTM):
    """LSTM with a bound on the gradients at its gates."""

    bound = 0.0

    def make_cell(self) -> Cell:
        return ClippedLSTMCell(self.bound) if self.bound > 0 else LSTMCell()


@register
class Lstm(Layer):
    """The LSTM with lstm_param, as junhyukoh's fork of Caffe has it: the same equations as LSTM's.

    In backward the gradients at the gates, before their nonlinearities, are held between -``clipping_threshold`` and
    ``clipping_threshold``, at every step, so that they cannot explode over time.

    Shapes
        bottom x: (T N) x D..., with N the ``batch_size``; or T x N x D, where there are three axes, no ``batch_size``
        and no clip of another size than T N
        bottom clip (optional): T N values, 0 where a sequence starts, else 1
        top h: (T N) x H, or T x N x H
        parameters: W_x (4H x D), W_h (4H x H), b (4H); rows in the order i, f, o, g.

    With clip, h and c after a batch are where the next one starts; without, every stream holds one sequence a batch.

    Options (lstm_param)
        num_output: H; batch_size: N (1); clipping_threshold (0: none); weight_filler, bias_filler.
    """

    type = "Lstm"
    bottoms, tops = (1, 2), (1, 1)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.lstm_param
        if param.num_output < 1:
            self.fail("lstm_param needs num_output, 1 or more")
        if param.batch_size < 1:
            self.fail("batch_size is 0, expected 1 or more")
        inner = LayerParameter(name=self.name, type="LSTM", blobs=self.param.blobs)
        inner.recurrent_param.CopyFrom(
            RecurrentParameter(
                num_output=param.num_output, weight_filler=param.weight_filler, bias_filler=param.bias_filler
            )
        )
        if len(inner.blobs) == 3:
            inner.blobs[1].CopyFrom(self.param.blobs[2])
            inner.blobs[2].CopyFrom(self.param.blobs[1])
        self.inner = ClippedLSTM(inner, self.context)
        self.inner.bound = param.clipping_threshold
        self.seen = [Blob((), self.dtype, self.backend, blob.name) for blob in bottom]
        self.h = Blob((), self.dtype, self.backend, top[0].name)
        self.take_shapes(bottom)
        self.inner.layer_setup(self.seen, [self.h])
        W_x, b, W_h = self.inner.blobs
        self.blobs = [W_x, W_h, b]
        self.param_propagate_down = [True] * 3

    def take_shapes(self, bottom: Sequence[Blob]) -> bool:
        """Give the views their shapes; says whether the bottom has an axis for T and one for N."""
        x, param = bottom[0], self.param.lstm_param
        two_axes = x.ndim == 3 and not param.HasField("batch_size")
        if two_axes and len(bottom) == 2:
            two_axes = bottom[1].count == x.shape[0] * x.shape[1]
        N = x.shape[1] if two_axes else param.batch_size
        rows = x.shape[0] * N if two_axes else x.shape[0] if x.ndim else 0
        if rows == 0 or rows % N:
            self.fail(f"bottom {x.name!r} has shape {x.shape}, expected (T N) x D... with N = batch_size = {N}")
        if len(bottom) == 2 and bottom[1].count != rows:
            clip = bottom[1]
            self.fail(f"bottom {clip.name!r} (clip) has shape {clip.shape}, expected {rows} values, one a row")
        self.seen[0].reshape(rows // N, N, x.count // rows)
        for view in self.seen[1:]:
            view.reshape(rows // N, N)
        return two_axes

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        two_axes = self.take_shapes(bottom)
        self.inner.reshape(self.seen, [self.h])
        T, N, H = self.h.shape
        top[0].reshape(*((T, N, H) if two_axes else (T * N, H)))

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        for view, blob in zip([*self.seen, self.h], [*bottom, *top], strict=True):
            view.share_data(blob)
        self.inner.forward(self.seen, [self.h])

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        for view, blob in zip([*self.seen, self.h], [*bottom, *top], strict=True):
            view.share_diff(blob)
        W_x, W_h, b = self.param_propagate_down
        self.inner.param_propagate_down = [W_x, b, W_h]
        self.inner.backward([self.h], propagate_down, self.seen)

    def allow_force_backward(self, bottom_index: int) -> bool:
        return bottom_index == 0

    def reset_states(self) -> None:
        self.inner.reset_states()

    def get_state(self) -> dict[str, Any]:
        return self.inner.get_state()

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.inner.set_state(state)

    def select_streams(self, order: Any) -> None:
        self.inner.select_streams(order)
