"""Attention over the states of an encoder."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import register
from ...proto import AttentionParameter
from .additive_attention import AdditiveAttention
from .attention_layer import AttentionLayer
from .dot_attention import DotAttention
from .projection import Projection, score_vector_filler

FOREIGN = ("num_heads", "cross", "rotary", "cont_bottom", "bias_term", "bias_filler", "carry_state")


@register
class Attention(AttentionLayer):
    """c_t = sum over i of alpha_ti h_i,  alpha_t = softmax over i of k_i^T q_t,  q_t = W_Q s_t,  k_i = W_K h_i.

    With ``scaled`` the score is k_i^T q_t / sqrt(K), with score ADDITIVE v^T tanh(q_t + k_i); with ``value_output``
    c_t = sum over i of alpha_ti W_V h_i.

    Luong, Pham and Manning, "Effective Approaches to Attention-based Neural Machine Translation", EMNLP 2015; the
    additive score: Bahdanau, Cho and Bengio, "Neural Machine Translation by Jointly Learning to Align and Translate",
    ICLR 2015.

    Shapes
        bottom s: T x N x D_s, or N x D_s for one query a stream (in the step of a Recurrent layer); h: S x N x D_h;
        lengths: N, or a mask: S x N (``padding``).
        top c: T x N x D_h, or N x D_h (``value_output`` in place of D_h); weights alpha, if wanted: T x N x S, or
        N x S, before dropout.
        parameters: W_Q (K x D_s), W_K (K x D_h), v (K), W_V (value_output x D_h), those that the options ask for.

    A query that sees no h_i has weights 0 and c = 0.

    Options (attention_param)
        num_output: K; query_projection, key_projection (true): without them q = s, k = h, and K is D_s or D_h;
        score: DOT or ADDITIVE; scaled (false); value_output (0: the values are h); causal (false): c_t has nothing of
        h behind t; window (0, for all): h_t and window - 1 before it; padding of h: NO_PADDING, MASK or LENGTHS;
        dropout_ratio of the weights (0); weight_filler (xavier).
    """

    type = "Attention"
    bottoms, tops = (2, 3), (1, 2)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.attention_param
        self.check_options(FOREIGN, "MultiHeadAttention")
        self.check_bottoms(len(bottom), ["s", "h"])
        self.set_queries(bottom[0])
        S = self.check_keys(bottom[1], None, "h")
        self.D_s, self.D_h = bottom[0].count // (self.T * self.N), bottom[1].count // (S * self.N)
        self.K = self.key_size()
        self.W_Q, self.W_K = (
            Projection(self, name, self.K, size, bias=False) if wanted else None
            for name, size, wanted in (("Q", self.D_s, param.query_projection), ("K", self.D_h, param.key_projection))
        )
        self.attention: AdditiveAttention | DotAttention
        if param.score == AttentionParameter.ADDITIVE:
            self.v_index = len(self.blobs)
            v = self.add_blob("v", (self.K,), score_vector_filler(param))
            self.attention = AdditiveAttention(self.backend, v, self.dropout_ratio)
        else:
            self.attention = DotAttention(self.backend, self.K**-0.5 if param.scaled else 1.0, self.dropout_ratio)
        self.e = param.value_output or self.D_h
        self.W_V = Projection(self, "V", self.e, self.D_h, bias=False) if param.value_output else None
        self.q_rows, self.k_rows, self.v_rows = (Blob((), self.dtype, self.backend) for _ in range(3))

    def key_size(self) -> int:
        """K; LayerError where the options and shapes disagree about it."""
        param = self.param.attention_param
        given = {"num_output": param.num_output} if param.HasField("num_output") else {}
        if not param.query_projection:
            given["the size of s (query_projection: false)"] = self.D_s
        if not param.key_projection:
            given["the size of h (key_projection: false)"] = self.D_h
        sizes = set(given.values())
        if not sizes or 0 in sizes:
            self.fail("attention_param needs num_output, the size of q and k, 1 or more")
        if len(sizes) > 1:
            self.fail("q and k differ in size: " + ", ".join(f"{name} is {size}" for name, size in given.items()))
        if param.scaled and param.score == AttentionParameter.ADDITIVE:
            self.fail("scaled is for the score DOT")
        return sizes.pop()

    def set_queries(self, s: Blob) -> None:
        """Take T and N from ``s``: T x N x ..., or N x D_s."""
        param = self.param.attention_param
        self.single = s.ndim == 2
        if s.ndim < 2 or 0 in s.shape:
            self.fail(f"bottom {s.name!r} (s) has shape {s.shape}, expected T x N x D_s or N x D_s")
        if self.single and (param.causal or param.window):
            self.fail(f"bottom {s.name!r} (s) has shape {s.shape}: causal and window need queries T x N x D_s")
        self.T, self.N = (1, s.shape[0]) if self.single else s.shape[:2]

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        s = bottom[0]
        self.set_queries(s)
        T, N = self.T, self.N
        if s.count != T * N * self.D_s:
            self.fail(f"bottom {s.name!r} (s) has shape {s.shape}, expected {self.D_s} values a query")
        self.S = self.check_keys(bottom[1], self.D_h, "h")
        self.check_key_padding(bottom, self.S)
        for blob, steps, size in zip(
            (self.q_rows, self.k_rows, self.v_rows), (T, self.S, self.S), (self.K, self.K, self.e), strict=True
        ):
            blob.reshape(steps * N, size)
        for blob, size in zip(top, (self.e, self.S), strict=False):
            blob.reshape(*(() if self.single else (T,)), N, size)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.s, self.h = bottom[0].data.reshape(-1, self.D_s), bottom[1].data.reshape(-1, self.D_h)
        self.q, self.k, self.v = (
            self.one_head(self.projected(projection, x, blob))
            for projection, x, blob in (
                (self.W_Q, self.s, self.q_rows), (self.W_K, self.h, self.k_rows), (self.W_V, self.h, self.v_rows)
            )
        )  # fmt: skip
        visible = self.visible(self.S, **self.key_padding(bottom[-1], self.S))
        self.contexts = self.one_head(top[0].data)
        weights = self.one_head(top[1].data) if len(top) == 2 else None
        self.attention.forward(self.q, self.k, self.v, visible, self.contexts, weights)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        for index, wanted in enumerate(propagate_down):
            if wanted and not self.allow_force_backward(index):
                self.fail("masks and lengths have no gradient; set propagate_down: false for bottom 2")
        dq, dk, dv = (
            self.backend.scratch(f"attention.{name}", blob.shape, self.dtype)
            for name, blob in (("dq", self.q_rows), ("dk", self.k_rows), ("dv", self.v_rows))
        )
        d_weights = self.one_head(top[1].diff) if len(top) == 2 else None
        d_v = self.attention.backward(
            self.q, self.k, self.v, self.contexts, self.one_head(top[0].diff), d_weights,
            *(self.one_head(gradient) for gradient in (dq, dk, dv)),
        )  # fmt: skip
        if isinstance(self.attention, AdditiveAttention) and self.param_propagate_down[self.v_index]:
            self.attention.w.add_to_diff(lambda out: self.xp.copyto(out, d_v))
        ds, dh = (
            blob.diff.reshape(-1, size) if wanted else None
            for blob, size, wanted in zip(bottom, (self.D_s, self.D_h), propagate_down, strict=False)
        )
        self.project_back(self.W_Q, self.s, dq, ds)
        self.project_back(self.W_V, self.h, dv, dh)
        more = None if dh is None else self.backend.scratch("attention.dh", dh.shape, self.dtype)
        self.project_back(self.W_K, self.h, dk, more)
        if dh is not None:
            dh += more

    def projected(self, projection: Projection | None, x: Any, blob: Blob) -> Any:
        """W x in ``blob``, or x itself without a projection."""
        if projection is None:
            return x
        projection.forward(x, blob.data)
        return blob.data

    def project_back(self, projection: Projection | None, x: Any, dy: Any, dx: Any) -> None:
        """dx from dy and the gradient of W; dx may be None."""
        if projection is not None:
            projection.backward(x, dy, dx)
        elif dx is not None:
            dx[...] = dy

    def one_head(self, rows: Any) -> Any:
        """Rows of T or S steps as steps x N x 1 x size."""
        return rows.reshape(-1, self.N, 1, rows.shape[-1])

    def allow_force_backward(self, bottom_index: int) -> bool:
        return bottom_index < 2
