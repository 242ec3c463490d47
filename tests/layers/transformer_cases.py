"""What FeedForward, PositionalEncoding, TransformerEncoder and TransformerDecoder are checked with: every option."""

import numpy as np
from recaffe.framework.layer_case import LayerCase
from recaffe.proto import TEST

rng = np.random.default_rng(12)

# Three steps of two streams; a sequence starts in the middle of each.
x, other_x = (3, 2, 4), (4, 1, 4)
cont, other_cont = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), np.ones((4, 1))
lengths, other_lengths = np.array([3.0, 1.0]), np.array([2.0])
mask, other_mask = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.ones((4, 1))
memory, other_memory = (5, 2, 3), (2, 1, 3)
memory_lengths, other_memory_lengths = np.array([2.0, 5.0]), np.array([1.0])
memory_mask, other_memory_mask = (rng.random((5, 2)) < 0.6).astype(float), np.ones((2, 1))


def feed_forward(options: str, bottom: tuple[int, ...] = x, **more: object) -> LayerCase:
    """A case of a FeedForward with ``options``."""
    text = f"type: 'FeedForward' feed_forward_param {{ num_hidden: 5 num_output: 3 {options} }}"
    return LayerCase(text, [bottom], **more)


def positions(options: str, *bottoms: object, **more: object) -> LayerCase:
    """A case of a PositionalEncoding with ``options``; a second bottom is a cont."""
    others = [other_x, other_cont][: 1 + len(bottoms)]
    if "carry_state" in options:  # goes on with as many streams
        others = [(4, 2, 4), np.ones((4, 2))][: 1 + len(bottoms)]
    text = f"type: 'PositionalEncoding' positional_encoding_param {{ {options} }}"
    return LayerCase(text, [x, *bottoms], other_bottoms=others, **more)


def encoder(options: str, *bottoms: object, others: tuple[object, ...] = (), **more: object) -> LayerCase:
    """A case of a TransformerEncoder with ``options`` and bottoms beyond x."""
    text = f"type: 'TransformerEncoder' transformer_param {{ num_output: 4 num_heads: 2 {options} }}"
    return LayerCase(text, [x, *bottoms], other_bottoms=[other_x, *others], **more)


def decoder(options: str, *bottoms: object, others: tuple[object, ...] = (), **more: object) -> LayerCase:
    """A case of a TransformerDecoder with ``options`` and bottoms beyond x and memory."""
    text = f"type: 'TransformerDecoder' transformer_param {{ num_output: 4 num_heads: 2 num_hidden: 5 {options} }}"
    return LayerCase(text, [x, memory, *bottoms], other_bottoms=[other_x, other_memory, *others], **more)


CASES: dict[str, list[LayerCase]] = {
    "FeedForward": [
        feed_forward(""),
        feed_forward("", (3, 4)),
        feed_forward("activation: GELU bias_term: false"),
        feed_forward("activation: GELU_TANH dropout_ratio: 0.3"),
        feed_forward("activation: SILU"),
        feed_forward("dropout_ratio: 0.3 bias_filler { type: 'constant' value: 1 }"),
        feed_forward("dropout_ratio: 0.3 activation: SILU decay_biases: false", phase=TEST),
    ],
    "PositionalEncoding": [
        positions(""),
        positions("input_scale: 2 base: 100", cont),
        positions("encoding: LEARNED max_length: 5"),
        positions("encoding: LEARNED max_length: 5 input_scale: 0.5", cont),
        positions("encoding: ROTARY"),
        positions("encoding: ROTARY num_heads: 2 input_scale: 2", cont),
        positions("carry_state: true", phase=TEST),
        positions("carry_state: true encoding: LEARNED max_length: 20", cont, phase=TEST),
        positions("carry_state: true encoding: ROTARY", cont, phase=TEST),
    ],
    "TransformerEncoder": [
        encoder(""),
        encoder("norm_first: true num_layers: 2 num_hidden: 5"),
        encoder("norm: RMS_NORM activation: GELU final_norm: true"),
        encoder("norm_first: true final_norm: false activation: SILU eps: 0.1"),
        encoder("bias_term: false activation: GELU_TANH causal: true"),
        encoder("dropout_ratio: 0.2 num_hidden: 5"),
        encoder("dropout_ratio: 0.2 attention_dropout_ratio: 0 norm_first: true activation: GELU"),
        encoder("attention_dropout_ratio: 0.3 num_hidden: 5 window: 2"),
        encoder("rotary: true causal: true decay_biases: false"),
        encoder("padding: LENGTHS num_hidden: 5", lengths, others=(other_lengths,)),
        encoder("padding: MASK norm_first: true num_layers: 2", mask, others=(other_mask,)),
        encoder("cont_bottom: true causal: true rotary: true", cont, others=(other_cont,)),
        encoder("cont_bottom: true padding: LENGTHS num_hidden: 5", cont, lengths, others=(other_cont, other_lengths)),
        encoder("dropout_ratio: 0.2 num_layers: 2", phase=TEST),
    ],
    "TransformerDecoder": [
        decoder(""),
        decoder("norm_first: true num_layers: 2 activation: GELU"),
        decoder("norm: RMS_NORM causal: false bias_term: false final_norm: true", seed=1),
        decoder("dropout_ratio: 0.2"),
        decoder("rotary: true window: 2 activation: SILU norm_first: true final_norm: false"),
        decoder(
            "padding: LENGTHS memory_padding: LENGTHS",
            lengths,
            memory_lengths,
            others=(other_lengths, other_memory_lengths),
        ),
        decoder("memory_padding: MASK", memory_mask, others=(other_memory_mask,)),
        decoder(
            "cont_bottom: true padding: MASK memory_padding: MASK",
            cont,
            mask,
            memory_mask,
            others=(other_cont, other_mask, other_memory_mask),
        ),
    ],
}
