"""TransformerLayer: what encoder and decoder share, a stack of layers made of pieces."""

from collections.abc import Callable, Iterator, Sequence

from ...framework.composite import CompositeLayer
from ...proto import (
    AttentionParameter,
    FeedForwardParameter,
    LayerParameter,
    ParamSpec,
    RecurrentParameter,
    TransformerParameter,
)

NO_PADDING, MASK = RecurrentParameter.NO_PADDING, RecurrentParameter.MASK
RMS_NORM = TransformerParameter.RMS_NORM
PartMaker = Callable[[str, str, str], LayerParameter]  # of the part's name, its bottom, its top or ""


class TransformerLayer(CompositeLayer):
    """``num_layers`` layers of parts, each with a residual connection and a norm.

    A part f gives y = norm(x + dropout(f(x))), or with ``norm_first`` y = x + dropout(f(norm(x))).
    """

    has_memory: bool
    causal: bool  # where the text does not say

    def parts(self) -> dict[str, PartMaker]:
        """The parts of each layer by name, in order."""
        raise NotImplementedError

    def changes(self) -> Sequence[LayerParameter]:
        return self.param.transformer_param.piece

    def pieces(self) -> Iterator[LayerParameter]:
        param = self.param.transformer_param
        self.check_options()
        self.named = self.name_bottoms()
        final_norm = param.final_norm if param.HasField("final_norm") else param.norm_first
        numbered = list(enumerate(self.parts().items(), start=1))
        x, y = self.named["x"], self.param.top[0]
        for i in range(param.num_layers):
            for number, (name, make) in numbered:
                is_last = (i, number) == (param.num_layers - 1, len(numbered)) and not final_norm
                pieces = self.part(f"{i}/", number, name, make, x, y if is_last else "")
                x = pieces[-1].top[0]
                yield from pieces
        if final_norm:
            yield self.norm("norm", x, y)

    def check_options(self) -> None:
        """Raise LayerError unless the options fit each other."""
        param = self.param.transformer_param
        for field in ("num_layers", "num_output", "num_heads"):
            if getattr(param, field) < 1:
                self.fail(f"transformer_param needs {field}, 1 or more")
        if param.num_output % param.num_heads:
            self.fail(f"num_heads is {param.num_heads}, expected a number that divides num_output = {param.num_output}")
        if param.memory_padding and not self.has_memory:
            self.fail("memory_padding is an option of TransformerDecoder; here there is no memory")

    def name_bottoms(self) -> dict[str, str]:
        """The blobs by what they are: x, memory, cont, padding, memory_padding, those that the options ask for."""
        param, expected = self.param.transformer_param, {"x": "x"}
        if self.has_memory:
            expected["memory"] = "memory"
        if param.cont_bottom:
            expected["cont"] = "cont"
        for name, whose in (("padding", "x"), ("memory_padding", "memory")):
            kind = getattr(param, name)
            if kind != NO_PADDING:
                expected[name] = f"{'mask' if kind == MASK else 'lengths'} of {whose}"
        if len(self.param.bottom) != len(expected):
            wanted = ", ".join(expected.values())
            self.fail(f"got {len(self.param.bottom)} bottom(s), expected {len(expected)}: {wanted}")
        return dict(zip(expected, self.param.bottom, strict=True))

    def part(self, prefix: str, number: int, name: str, make: PartMaker, x: str, y: str) -> list[LayerParameter]:
        """The pieces of part ``number``; they read ``x``, and the last one's top is ``y`` if that is given."""
        param = self.param.transformer_param
        if param.norm_first:
            norm = self.norm(f"{prefix}norm{number}", x)
            inner = make(prefix + name, norm.top[0], y)
            return [norm, inner, *self.residual(prefix, number, inner.top[0], x)]
        inner = make(prefix + name, x, "")
        residual = self.residual(prefix, number, inner.top[0], x)
        return [inner, *residual, self.norm(f"{prefix}norm{number}", inner.top[0], y)]

    def residual(self, prefix: str, number: int, blob: str, x: str) -> Iterator[LayerParameter]:
        """blob = dropout(blob) + x, in place: no backward pass needs the values before."""
        ratio = self.param.transformer_param.dropout_ratio
        if ratio:
            dropout = self.piece(f"{prefix}dropout{number}", "Dropout", [blob], blob)
            dropout.dropout_param.dropout_ratio = ratio
            yield dropout
        yield self.piece(f"{prefix}sum{number}", "Eltwise", [blob, x], blob)

    def norm(self, name: str, x: str, y: str = "") -> LayerParameter:
        """A LayerNorm or RMSNorm."""
        param = self.param.transformer_param
        kind, parameters = ("RMSNorm", 1) if param.norm == RMS_NORM else ("LayerNorm", 2)
        piece = self.piece(name, kind, [x], y, [self.spec_without_decay()] * parameters)
        piece.layer_norm_param.eps = param.eps
        return piece

    def self_attention(self, name: str, x: str, y: str) -> LayerParameter:
        """The attention of x to itself."""
        param = self.param.transformer_param
        bottoms = [x, *(self.named[kind] for kind in ("cont", "padding") if kind in self.named)]
        piece = self.attention(name, bottoms, y, products=2)
        attention = piece.attention_param
        attention.causal = param.causal if param.HasField("causal") else self.causal
        attention.window, attention.rotary = param.window, param.rotary
        attention.cont_bottom, attention.padding = param.cont_bottom, param.padding
        return piece

    def attention(self, name: str, bottoms: Sequence[str], y: str, products: int) -> LayerParameter:
        """A MultiHeadAttention with so many products, and the options of every attention."""
        param = self.param.transformer_param
        specs = [ParamSpec(), self.spec_without_decay()] if param.bias_term else [ParamSpec()]
        piece = self.piece(name, "MultiHeadAttention", bottoms, y, specs * products)
        ratio = param.attention_dropout_ratio if param.HasField("attention_dropout_ratio") else param.dropout_ratio
        attention = piece.attention_param
        attention.num_output, attention.num_heads = param.num_output, param.num_heads
        attention.dropout_ratio, attention.bias_term = ratio, param.bias_term
        attention.carry_state = param.carry_state
        self.give_fillers(attention)
        return piece

    def feed_forward(self, name: str, x: str, y: str) -> LayerParameter:
        """The part that works on each step alone."""
        param = self.param.transformer_param
        piece = self.piece(name, "FeedForward", [x], y, [ParamSpec()])
        feed_forward = piece.feed_forward_param
        feed_forward.num_hidden, feed_forward.num_output = param.num_hidden or 4 * param.num_output, param.num_output
        feed_forward.activation, feed_forward.dropout_ratio = param.activation, param.dropout_ratio
        feed_forward.bias_term, feed_forward.decay_biases = param.bias_term, param.decay_biases
        self.give_fillers(feed_forward)
        return piece

    def give_fillers(self, options: AttentionParameter | FeedForwardParameter) -> None:
        """Let ``options`` have the fillers that the text gives."""
        param = self.param.transformer_param
        for name in ("weight_filler", "bias_filler"):
            if param.HasField(name):
                getattr(options, name).CopyFrom(getattr(param, name))

    def spec_without_decay(self) -> ParamSpec:
        """Of a bias or a norm: without weight decay if ``decay_biases`` is false."""
        return ParamSpec() if self.param.transformer_param.decay_biases else ParamSpec(decay_mult=0)
