"""PositionalEncoding: what tells one position of a sequence from another."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...framework.blob import Blob
from ...framework.layer import register
from ...proto import TRAIN, PositionalEncodingParameter
from ..common.embed import add_rows
from ..recurrent.sequence_layer import SequenceLayer
from .rotary import rotate
from .visible import sequence_edges

LEARNED, ROTARY = PositionalEncodingParameter.LEARNED, PositionalEncodingParameter.ROTARY


@register
class PositionalEncoding(SequenceLayer):
    """y_t = s x_t + PE(pos), or with ROTARY y_t = R(pos) s x_t, where pos counts the steps of a sequence from 0.

    - SINUSOIDAL (the default): PE(pos)_2i = sin(pos / base^(2i / D)), PE(pos)_2i+1 = cos(pos / base^(2i / D)).
      Vaswani et al., "Attention is all you need", NIPS 2017, section 3.5.
    - LEARNED: PE(pos) is row pos of the table W; dW_pos is the sum of dy where it was added.
    - ROTARY: R(pos) turns the numbers 2i and 2i + 1 of each head by the angle pos / base^(2i / d), d = D / num_heads:
      for queries and keys.  Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.

    Shapes
        bottoms: x T x N x D; cont T x N (optional): 0 where a sequence starts, and with it its positions
        top y: T x N x D, in place if wanted
        parameter: W (max_length x D) where LEARNED

    Options (positional_encoding_param)
        encoding; max_length: rows of W; weight_filler of W; num_heads (1) where ROTARY; base (10000);
        input_scale: s (1); carry_state (false): in phase TEST, a pass goes on counting where the last one stopped.

    Raises LayerError for a position without a row in W.
    """

    type = "PositionalEncoding"
    bottoms, tops = (1, 2), (1, 1)
    in_place = True

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.positional_encoding_param
        self.scale, self.encoding = param.input_scale, param.encoding
        self.has_cont = len(bottom) == 2
        self.carries = param.carry_state
        self.carried: Any = None  # the next position of each stream
        if self.carries and self.phase == TRAIN:
            self.fail("carry_state is for phase TEST alone")
        if not 0 < param.base < math.inf:
            self.fail(f"base is {param.base:g}, expected a number above 0")
        self.D = bottom[0].shape[-1] if bottom[0].ndim else 0
        self.W = None
        if self.encoding == LEARNED:
            if param.max_length < 1:
                self.fail("positional_encoding_param needs max_length, 1 or more, for a LEARNED encoding")
            self.W = self.add_blob("W", (param.max_length, self.D), param.weight_filler)
        elif self.encoding == ROTARY and (param.num_heads < 1 or self.D % (2 * param.num_heads)):
            self.fail(f"x has {self.D} values, expected an even number for each of num_heads = {param.num_heads} heads")
        self.sinusoids = self.xp.empty((0, self.D), self.dtype)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x = bottom[0]
        self.check_sequences(x)
        if x.ndim != 3 or x.shape[2] != self.D:
            self.fail(f"bottom {x.name!r} has shape {x.shape}, expected T x N x D with D = {self.D}")
        if self.has_cont:
            self.check_marks(bottom[1], "cont")
        top[0].reshape(*x.shape)

    def allow_force_backward(self, bottom_index: int) -> bool:
        return bottom_index == 0

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        y, positions = top[0].data, self.positions(bottom)
        self.xp.multiply(bottom[0].data, self.scale, out=y)
        if self.encoding == ROTARY:
            self.rotate(y, positions, inverse=False)
        else:
            y += self.table(positions)[positions]
        self.places = positions

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        dy = top[0].diff
        if self.W is not None and self.param_propagate_down[0]:
            rows = dy.sum(axis=1) if self.places.shape[1] == 1 else dy.reshape(-1, self.D)
            add_rows(self.backend, rows, self.places.reshape(-1), self.W.diff)
        if any(propagate_down[1:]):
            self.fail(f"bottom {bottom[1].name!r} (cont) has no gradient")
        if propagate_down[0]:
            self.xp.multiply(dy, self.scale, out=bottom[0].diff)
            if self.encoding == ROTARY:
                self.rotate(bottom[0].diff, self.places, inverse=True)

    def positions(self, bottom: Sequence[Blob]) -> Any:
        """The position of every step: T x N, or T x 1 where all streams have the same."""
        xp = self.xp
        steps = xp.arange(self.T, dtype=xp.int64)[:, None]
        if self.carried is not None and len(self.carried) != self.N:
            self.fail(f"{len(self.carried)} streams are carried on, but there are {self.N}; call reset_states() first")
        begin = 0 if self.carried is None else -self.carried  # before the first step, where a sequence goes on
        if self.has_cont:
            begin, _ = sequence_edges(xp, self.marks(bottom[1], "cont"), 0, begin)
        positions = steps - begin
        if self.carries:
            self.carried = xp.zeros(self.N, xp.int64) + positions[-1] + 1
        return positions

    def table(self, positions: Any) -> Any:
        """What is added at each position, a row each."""
        may_differ = self.carries or (self.has_cont and self.W is not None)
        length = int(positions.max()) + 1 if may_differ else self.T
        if self.W is not None:
            if length > self.W.shape[0]:
                self.fail(f"a sequence has {length} positions, more than max_length = {self.W.shape[0]}")
            return self.W.data
        if length > len(self.sinusoids):
            base = self.param.positional_encoding_param.base
            rows = sinusoids(max(length, 2 * len(self.sinusoids)), self.D, base).astype(self.dtype)
            self.sinusoids = self.backend.to_device(rows)
        return self.sinusoids

    def rotate(self, values: Any, positions: Any, inverse: bool) -> None:
        """Turn T x N x D values in place."""
        param = self.param.positional_encoding_param
        whole = self.xp.broadcast_to(positions, (self.T, self.N)).reshape(-1)
        heads = values.reshape(self.T * self.N, 1, param.num_heads, -1)
        rotate(self.backend, heads, whole, param.base, inverse)

    # what is carried

    def reset_states(self) -> None:
        self.carried = None

    def looks_back(self) -> bool:
        return True

    def get_state(self) -> dict[str, Any]:
        return {} if self.carried is None else {"positions": self.backend.to_host(self.carried)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.carried = self.backend.to_device(state["positions"]) if "positions" in state else None

    def select_streams(self, order: Any) -> None:
        if self.carried is not None:
            self.carried = self.carried[self.backend.to_device(np.asarray(order))]


def sinusoids(length: int, width: int, base: float) -> np.ndarray:
    """length x width: sines of the position at even places, cosines at odd ones, slower from place to place."""
    place = np.arange(width)
    angles = np.arange(length)[:, None] / base ** ((place - place % 2) / width)
    return np.where(place % 2 == 0, np.sin(angles), np.cos(angles))
