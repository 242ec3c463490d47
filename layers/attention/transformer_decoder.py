"""TransformerDecoder."""

from ...framework.layer import register
from ...proto import LayerParameter
from .transformer_layer import PartMaker, TransformerLayer


@register
class TransformerDecoder(TransformerLayer):
    """Each layer: z = norm1(x + A(x)), u = norm2(z + C(z, memory)), y = norm3(u + F(u)).

    A is self-attention, in which no step sees those behind it; C attention to the memory; F feed-forward.  With
    ``norm_first``: z = x + A(norm1(x)), u = z + C(norm2(z), memory), y = u + F(norm3(u)).  Vaswani et al.,
    "Attention is all you need", NIPS 2017.

    Shapes
        bottoms, those that the options ask for: x T x N x E; memory S x N x D_m; cont T x N, 0 where a sequence
        starts (``cont_bottom``); mask T x N or lengths N of x (``padding``); mask S x N or lengths N of the memory
        (``memory_padding``)
        top y: T x N x E

    Pieces (layers of the net, named <this layer>/<piece>), for layer i from 0
        i/self_attention, i/cross_attention: MultiHeadAttention; i/feed_forward/hidden, /activation, /dropout, /output:
        see FeedForward; behind each i/dropout1, i/sum1, i/norm1, then 2, then 3; norm, the last one, with
        ``final_norm``.  Dropout is left out where its ratio is 0.

    Options (transformer_param)
        Those of TransformerEncoder, with causal true where it is not given, and memory_padding: NO_PADDING, MASK or
        LENGTHS.  window, rotary and cont_bottom are for A alone.  With carry_state C keeps to the memory of the first
        pass.
    """

    type = "TransformerDecoder"
    bottoms, tops = (2, 5), (1, 1)
    has_memory = causal = True

    def parts(self) -> dict[str, PartMaker]:
        return {
            "self_attention": self.self_attention,
            "cross_attention": self.cross_attention,
            "feed_forward": self.feed_forward,
        }

    def cross_attention(self, name: str, x: str, y: str) -> LayerParameter:
        """The attention of x to the memory."""
        bottoms = [x, *(self.named[kind] for kind in ("memory", "memory_padding") if kind in self.named)]
        piece = self.attention(name, bottoms, y, products=3)
        piece.attention_param.cross = True
        piece.attention_param.padding = self.param.transformer_param.memory_padding
        return piece
