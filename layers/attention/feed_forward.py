"""FeedForward."""

from collections.abc import Iterator

from ...framework.composite import CompositeLayer
from ...framework.layer import register
from ...proto import FeedForwardParameter, FillerParameter, InnerProductParameter, LayerParameter, ParamSpec


@register
class FeedForward(CompositeLayer):
    """y = f(x W_1^T + b_1) W_2^T + b_2, for each vector of x (its last axis) alone, with f(z) = max(0, z) by default.

    Vaswani et al., "Attention is all you need", NIPS 2017, section 3.3.

    Shapes
        bottom x: ... x D
        top y: ... x num_output

    Pieces (layers of the net, named <this layer>/<piece>)
        hidden: InnerProduct, W_1 (F x D), b_1 (F); activation: ReLU, GELU or SiLU; dropout, left out where its ratio is
        0, behind the activation (before max(0, z), which gives the same and needs less memory); output: InnerProduct,
        W_2 (num_output x F), b_2 (num_output).

    Options (feed_forward_param)
        num_hidden: F; num_output; activation: RELU, GELU, GELU_TANH or SILU; dropout_ratio of the hidden values (0);
        bias_term (true); decay_biases: whether weight decay is for biases too (true); weight_filler (xavier);
        bias_filler.
    """

    type = "FeedForward"
    bottoms, tops = (1, 1), (1, 1)

    def pieces(self) -> Iterator[LayerParameter]:
        param = self.param.feed_forward_param
        for field in ("num_hidden", "num_output"):
            if getattr(param, field) < 1:
                self.fail(f"feed_forward_param needs {field}, 1 or more")
        hidden = self.inner_product("hidden", self.param.bottom[0], param.num_hidden)
        yield hidden
        blob = hidden.top[0]  # the pieces between work on it in place
        inside = [self.activation(blob)]
        if param.dropout_ratio:
            before = param.activation == FeedForwardParameter.RELU
            inside.insert(0 if before else 1, self.dropout(blob))
        yield from inside
        yield self.inner_product("output", blob, param.num_output, self.param.top[0])

    def activation(self, blob: str) -> LayerParameter:
        """ReLU, SiLU or GELU in place."""
        activation = self.param.feed_forward_param.activation
        kind = {FeedForwardParameter.RELU: "ReLU", FeedForwardParameter.SILU: "SiLU"}.get(activation, "GELU")
        piece = self.piece("activation", kind, [blob], blob)
        if activation == FeedForwardParameter.GELU_TANH:
            piece.gelu_param.approximate = True
        return piece

    def inner_product(self, name: str, bottom: str, num_output: int, top: str = "") -> LayerParameter:
        """A product over the last axis."""
        param = self.param.feed_forward_param
        specs = [ParamSpec()]
        if param.bias_term:
            specs.append(ParamSpec() if param.decay_biases else ParamSpec(decay_mult=0))
        piece = self.piece(name, "InnerProduct", [bottom], top, specs)
        filler = param.weight_filler if param.HasField("weight_filler") else FillerParameter(type="xavier")
        piece.inner_product_param.MergeFrom(
            InnerProductParameter(num_output=num_output, axis=-1, bias_term=param.bias_term, weight_filler=filler)
        )
        if param.HasField("bias_filler"):
            piece.inner_product_param.bias_filler.CopyFrom(param.bias_filler)
        return piece

    def dropout(self, blob: str) -> LayerParameter:
        """Dropout in place."""
        piece = self.piece("dropout", "Dropout", [blob], blob)
        piece.dropout_param.dropout_ratio = self.param.feed_forward_param.dropout_ratio
        return piece
