"""Attention and the transformer."""

from . import (
    attention,
    attention_gru,
    attention_lstm,
    feed_forward,
    multi_head_attention,
    positional_encoding,
    transformer_decoder,
    transformer_encoder,
)
