"""TransformerEncoder."""

from ...framework.layer import register
from .transformer_layer import PartMaker, TransformerLayer


@register
class TransformerEncoder(TransformerLayer):
    """Each layer: z = norm1(x + A(x)), y = norm2(z + F(z)), with A self-attention and F feed-forward.

    With ``norm_first``: z = x + A(norm1(x)), y = z + F(norm2(z)).  Vaswani et al., "Attention is all you need", NIPS
    2017; norms first: Xiong et al., "On layer normalization in the transformer architecture", ICML 2020.  With
    ``causal`` it is the decoder of a language model: no step sees those behind it.

    Shapes
        bottoms, those that the options ask for: x T x N x E; cont T x N, 0 where a sequence starts (``cont_bottom``);
        mask T x N or lengths N of x (``padding``)
        top y: T x N x E

    Pieces (layers of the net, named <this layer>/<piece>), for layer i from 0
        i/self_attention: MultiHeadAttention; i/dropout1; i/sum1: Eltwise; i/norm1: LayerNorm or RMSNorm;
        i/feed_forward/hidden, /activation, /dropout, /output: see FeedForward; i/dropout2; i/sum2; i/norm2;
        norm, the last one, with ``final_norm``.  Dropout is left out where its ratio is 0.

    Options (transformer_param)
        num_layers (1); num_output: E; num_heads (1); num_hidden of F (4 E); activation: RELU, GELU, GELU_TANH or SILU;
        norm: LAYER_NORM or RMS_NORM; norm_first (false); final_norm (as norm_first); eps of the norms (1e-5);
        dropout_ratio of what A and F give and inside F (0); attention_dropout_ratio of the weights in A (the same);
        causal (false); window: how far back a step sees (0: no limit); rotary (false); cont_bottom (false);
        padding: NO_PADDING, MASK or LENGTHS; bias_term (true); decay_biases: whether weight decay is for biases and
        norms too (true); weight_filler (xavier), bias_filler; carry_state (false, phase TEST alone): the next pass
        goes on where the last one stopped; piece { name: "0/self_attention" ... }: what to merge into that piece,
        such as param blocks, a second top for the weights, fillers.
    """

    type = "TransformerEncoder"
    bottoms, tops = (1, 3), (1, 1)
    has_memory = causal = False

    def parts(self) -> dict[str, PartMaker]:
        return {"self_attention": self.self_attention, "feed_forward": self.feed_forward}
