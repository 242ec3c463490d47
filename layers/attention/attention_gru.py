"""AttentionGRU: a GRU that looks at a memory in every step."""

from ...framework.layer import register
from ..recurrent.gru import GRU
from .attention_decoder import AttentionDecoder


@register
class AttentionGRU(AttentionDecoder, GRU):
    """The gated recurrent unit with attention in the loop: the decoder of an encoder-decoder.

    q_t = W_Q h',  k_i = W_K h_i,  alpha_t = softmax over i of k_i^T q_t,  c_t = sum_i alpha_ti h_i,
    and z, r, h~ of step t are GRU's, with W_context c_t added to W_x x_t + b.

    Bahdanau et al., "Neural machine translation by jointly learning to align and translate", ICLR 2015: theirs is this
    one with the score ADDITIVE.

    Shapes
        bottoms, tops and options: see AttentionDecoder; the exposed state is h.
        parameters: W_x (3H x D), b (3H), W_h (3H x H), with ``reset_after`` b_h (H), W_context (3H x D_h), W_Q (K x H),
        W_K (K x D_h), and for the score ADDITIVE v (K); rows in the order z, r, h~.
    """

    type = "AttentionGRU"
