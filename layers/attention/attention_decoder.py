"""AttentionDecoder: what AttentionLSTM and AttentionGRU share, beside their cells."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...proto import AttentionParameter, RecurrentParameter
from ..recurrent.cell import Cell
from ..recurrent.recurrent_layer import RecurrentLayer
from ..recurrent.run import Run
from .attention_cell import AttentionCell
from .projection import score_vector_filler, weight_filler
from .scores import AdditiveScore, DotScore, Score

ORDER = "expected x, cont (T x N) if wanted, the memory, then first states and what is padding if options ask for them"
OWN_OPTIONS = {"num_output", "padding", "weight_filler", "score", "scaled"}


class AttentionDecoder(RecurrentLayer):
    """A recurrent layer whose every step first looks at a memory, such as the states of an encoder.

    q_t = W_Q h',  k_i = W_K h_i,  alpha_t = softmax over i of k_i^T q_t,  c_t = sum_i alpha_ti h_i,
    and the gates of step t get W_context c_t beside what x_t and h' give them; h' = cont_t h_{t-1}.

    Bahdanau et al., "Neural machine translation by jointly learning to align and translate", ICLR 2015.  With score
    ADDITIVE, theirs, the softmax is over v^T tanh(q_t + k_i); with ``scaled`` over k_i^T q_t / sqrt(K).

    Shapes
        bottoms, in this order: x, T x N x D...; cont, T x N (optional); the memory h_i, S x N x D_h; with
        ``expose_hidden`` the first states (optional); with padding in recurrent_param a mask T x N or lengths N of x;
        with padding in attention_param a mask S x N or lengths N of the memory.  See RecurrentLayer.
        tops: h, T x N x H; with ``expose_hidden`` the last states, 1 x N x H each; then, if wanted, the contexts c,
        T x N x D_h, and behind them the weights alpha, T x N x S.
        parameters: those of the recurrent layer, then W_context (gates H x D_h), W_Q (K x H), W_K (K x D_h) and for
        ADDITIVE v (K).

    Memory that is padding has weights 0; where all of it is, the context is 0.  Padded steps give zeros.

    Options
        recurrent_param: as RecurrentLayer, with one level in direction FORWARD.
        attention_param: num_output: K; score: DOT or ADDITIVE; scaled (false), for DOT; padding: NO_PADDING, MASK or
        LENGTHS; weight_filler of W_Q, W_K and v (xavier).
    """

    bottoms, tops = (2, None), (1, None)

    def check_options(self) -> None:
        super().check_options()
        param, attention = self.param.recurrent_param, self.param.attention_param
        if param.direction != RecurrentParameter.FORWARD or param.num_layers != 1 or param.last_output:
            self.fail("with attention there is one level in direction FORWARD, and every step is an output")
        for field, _ in attention.ListFields():
            if field.name not in OWN_OPTIONS:
                self.fail(f"attention_param: {field.name} is an option of other layers")
        if attention.num_output < 1:
            self.fail("attention_param needs num_output, the size of q and k, 1 or more")
        if attention.scaled and attention.score == AttentionParameter.ADDITIVE:
            self.fail("attention_param: scaled is for the score DOT")

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.memory = 2 if self.param.recurrent_param.cont_bottom and bottom[1].ndim == 2 else 1
        if self.memory >= len(bottom):
            self.fail(f"got {len(bottom)} bottom(s): {ORDER}")
        self.D_h = bottom[self.memory].shape[-1]
        super().layer_setup(bottom, top)

    def make_cell(self) -> Cell:
        param = self.param.attention_param
        additive = param.score == AttentionParameter.ADDITIVE
        K = param.num_output
        score: Score = AdditiveScore(K) if additive else DotScore(K, param.scaled)
        self.attention = AttentionCell(super().make_cell(), score, self.D_h)
        return self.attention

    def make_run(self, *args: Any) -> Run:
        run, param = super().make_run(*args), self.param.attention_param
        for name, shape in self.attention.attention_shapes(run.H).items():
            filler = weight_filler(param) if len(shape) == 2 else score_vector_filler(param)
            run.weights.append(self.add_blob(name, shape, filler))
        return run

    def assign_blobs(self, bottom: Sequence[Blob], tops: int) -> None:
        states = len(self.cell.states) if self.param.recurrent_param.expose_hidden else 0
        self.seen = 1 + states  # the tops from here on are c and alpha
        if tops > self.seen + 2:
            self.fail(f"got {tops} tops, expected at most {self.seen + 2}: h, {states} state(s), contexts and weights")
        self.mine = [j for j in range(len(bottom) - self.padded) if j != self.memory]
        super().assign_blobs(self.recurrent_bottoms(bottom), min(tops, self.seen))
        if self.roles.static is not None or (self.roles.cont is not None) != (self.memory == 2):
            self.fail(f"bottom {bottom[self.memory + 1].name!r} is too many: {ORDER}")

    @property
    def padded(self) -> int:
        """How many bottoms say what of the memory is padding: 0 or 1."""
        return int(self.param.attention_param.padding != RecurrentParameter.NO_PADDING)

    def recurrent_bottoms(self, bottom: Sequence[Any]) -> list[Any]:
        """Those that the recurrent layer knows: all but the memory and its padding."""
        return [bottom[j] for j in self.mine]

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        super().reshape(self.recurrent_bottoms(bottom), top[: self.seen])
        memory = bottom[self.memory]
        if memory.ndim != 3 or memory.shape[1:] != (self.N, self.D_h) or memory.count == 0:
            expected = f"S x N x D_h with N = {self.N}, D_h = {self.D_h}"
            self.fail(f"bottom {memory.name!r} (memory) has shape {memory.shape}, expected {expected}")
        self.S = memory.shape[0]
        self.check_padding(bottom, self.param.attention_param.padding, self.S, "S")
        for blob, width in zip(top[self.seen :], (self.D_h, self.S), strict=False):
            blob.reshape(self.T, self.N, width)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        mask = self.padding_mask(bottom, self.param.attention_param.padding, self.S, "S")
        visible = self.xp.ones((self.N, self.S), bool) if mask is None else mask.T != 0
        self.attention.look_at(self.xp.ascontiguousarray(bottom[self.memory].data.transpose(1, 0, 2)), visible)
        super().forward(self.recurrent_bottoms(bottom), top[: self.seen])
        _, c, alpha, _ = self.attention.parts(self.runs[0].extra.data)
        for blob, values in zip(top[self.seen :], (c, alpha), strict=False):
            blob.data[...] = self.masked(values)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        for j, wanted in enumerate(propagate_down):
            if wanted and not self.allow_force_backward(j):
                self.fail(f"cont, masks and lengths have no gradient; set propagate_down: false for bottom {j}")
        shown = [self.masked(blob.diff) for blob in top[self.seen :]]
        self.attention.show_gradients(*shown, *[0] * (2 - len(shown)))
        super().backward(top[: self.seen], self.recurrent_bottoms(propagate_down), self.recurrent_bottoms(bottom))
        if propagate_down[self.memory]:
            bottom[self.memory].diff[...] = self.attention.d_values.transpose(1, 0, 2)

    def masked(self, values: Any) -> Any:
        """``values`` (T x N x ...), zero at padded steps."""
        return values if self.mask is None else values * self.mask[:, :, None]

    def allow_force_backward(self, bottom_index: int) -> bool:
        if bottom_index == self.memory:
            return True
        return bottom_index in self.mine and super().allow_force_backward(self.mine.index(bottom_index))
