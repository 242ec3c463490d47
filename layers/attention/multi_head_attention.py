"""MultiHeadAttention: several attentions side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import register
from ...proto import TRAIN
from .attention_layer import AttentionLayer
from .cross_projections import CrossProjections
from .dot_attention import DotAttention
from .projection import Projection
from .self_projections import SelfProjections


@register
class MultiHeadAttention(AttentionLayer):
    """y = [c_1 .. c_H] W_o^T + b_o,  c_h = softmax(q_h k_h^T / sqrt(d)) v_h,  d = E / H.

    q, k, v = x W_qkv^T + b_qkv; with ``cross``, q = x W_q^T + b_q and k, v = m W_kv^T + b_kv of a memory m.  Head h
    has the columns h d to (h + 1) d of q, k and v.  The weights are not kept unless they are a top.

    Vaswani et al., "Attention Is All You Need", NeurIPS 2017.

    Shapes
        bottom x: T x N x D; memory (``cross``): S x N x D_m; cont (``cont_bottom``): T x N, 0 where a sequence starts;
        lengths: N, or a mask: S x N (``padding``).
        top y: T x N x E; weights, if wanted: T x N x H x S, before dropout.
        parameters: W_qkv (3E x D), b_qkv (3E), W_o (E x E), b_o (E); with ``cross`` W_q (E x D), b_q (E),
        W_kv (2E x D_m), b_kv (2E), W_o, b_o.

    A query that sees no key has weights 0 and context 0, and takes no part in the gradients of keys and values.

    Options (attention_param)
        num_output: E; num_heads: H (1); cross (false); causal (false): step t sees none behind it; window (0, for all):
        step t sees itself and window - 1 before it; rotary (false): q and k turned by their positions; cont_bottom
        (false): sequences of one stream do not see each other; padding of the keys: NO_PADDING, MASK or LENGTHS;
        dropout_ratio of the weights (0); bias_term (true); weight_filler (xavier), bias_filler; carry_state (false,
        phase TEST only, no gradients): x goes on where the last pass ended, whose keys and values are kept until
        ``reset_states``; of a memory those of the first pass.
    """

    type = "MultiHeadAttention"
    bottoms, tops = (1, 3), (1, 2)
    reshape_every_pass = True  # the number of keys grows with carry_state

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.attention_param
        self.check_options(("score", "scaled", "query_projection", "key_projection", "value_output"), "Attention")
        self.E, self.heads = param.num_output, param.num_heads
        if self.E < 1:
            self.fail("attention_param needs num_output, 1 or more")
        if self.heads < 1 or self.E % self.heads:
            self.fail(f"num_heads is {self.heads}, expected a number that divides num_output = {self.E}")
        if param.carry_state and self.phase == TRAIN:
            self.fail("carry_state is for phase TEST: there are no gradients through what is carried")
        self.check_sequences(bottom[0])
        kind = CrossProjections if param.cross else SelfProjections
        self.check_bottoms(len(bottom), [*kind.bottom_names, *(["cont"] * param.cont_bottom)])
        self.projections = kind(self, bottom, self.E)
        self.output = Projection(self, "o", self.E, self.E, param.bias_term)
        self.attention = DotAttention(self.backend, (self.E // self.heads) ** -0.5, self.dropout_ratio)
        self.contexts = Blob((), self.dtype, self.backend)
        if param.carry_state:
            self.param_propagate_down = [False] * len(self.blobs)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.check_sequences(bottom[0])
        S = self.projections.reshape(bottom)
        self.contexts.reshape(self.T * self.N, self.E)
        top[0].reshape(self.T, self.N, self.E)
        if len(top) == 2:
            top[1].reshape(self.T, self.N, self.heads, S)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.q, self.k, self.v, visible = self.projections.forward(bottom)
        weights = top[1].data if len(top) == 2 else None
        self.attention.forward(self.q, self.k, self.v, visible, self.in_heads(self.contexts.data), weights)
        self.output.forward(self.contexts.data, top[0].data.reshape(-1, self.E))

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if self.param.attention_param.carry_state:
            self.fail("no gradients with carry_state")
        for index, wanted in enumerate(propagate_down):
            if wanted and not self.allow_force_backward(index):
                self.fail(f"cont, masks and lengths have no gradient; set propagate_down: false for bottom {index}")
        d_context = self.backend.scratch("attention.d_context", self.contexts.shape, self.dtype)
        self.output.backward(self.contexts.data, top[0].diff.reshape(-1, self.E), d_context)
        self.attention.backward(
            self.q, self.k, self.v, self.in_heads(self.contexts.data), self.in_heads(d_context),
            top[1].diff if len(top) == 2 else None, *self.projections.gradients(),
        )  # fmt: skip
        self.projections.backward(bottom, propagate_down)

    def in_heads(self, rows: Any) -> Any:
        """Rows of E numbers as T x N x heads x d."""
        return rows.reshape(self.T, self.N, self.heads, -1)

    def allow_force_backward(self, bottom_index: int) -> bool:
        param = self.param.attention_param
        return bottom_index < 1 + param.cross and not param.carry_state

    # what is carried

    def looks_back(self) -> bool:
        return not self.param.attention_param.cross or super().looks_back()

    def reset_states(self) -> None:
        self.projections.forget()

    def select_streams(self, order: Any) -> None:
        self.projections.select_streams(order)

    def get_state(self) -> dict[str, Any]:
        return self.projections.get_state()

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.projections.set_state(state)
