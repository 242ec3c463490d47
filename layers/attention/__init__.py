"""Attention and the transformer; importing registers them."""

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

__all__ = [
    "attention",
    "attention_gru",
    "attention_lstm",
    "feed_forward",
    "multi_head_attention",
    "positional_encoding",
    "transformer_decoder",
    "transformer_encoder",
]
