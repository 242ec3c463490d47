"""AttentionLSTM: an LSTM that looks at a memory in every step."""

from ...framework.layer import register
from ..recurrent.lstm import LSTM
from .attention_decoder import AttentionDecoder


@register
class AttentionLSTM(AttentionDecoder, LSTM):
    """Long short-term memory with attention in the loop: the decoder of an encoder-decoder.

    q_t = W_Q h',  k_i = W_K h_i,  alpha_t = softmax over i of k_i^T q_t,  c_t = sum_i alpha_ti h_i,
    and i, f, o, g of step t are LSTM's, from W_xc x_t + W_hc h' + W_context c_t + b_c.

    Bahdanau et al., "Neural machine translation by jointly learning to align and translate", ICLR 2015.

    Shapes
        bottoms, tops and options: see AttentionDecoder; the exposed states are h and c, the LSTM's cell.
        parameters: W_xc (4H x D), b_c (4H), W_hc (4H x H), W_context (4H x D_h), W_Q (K x H), W_K (K x D_h), and for
        the score ADDITIVE v (K); rows of the first four in the order i, f, o, g.
    """

    type = "AttentionLSTM"
