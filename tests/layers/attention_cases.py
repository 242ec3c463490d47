"""Cases of Attention and MultiHeadAttention for the conformance suite: each mask with each option."""

import itertools

import numpy as np
from recaffe.framework.layer_case import LayerCase
from recaffe.proto import TEST

# Five steps or memories of two streams; a sequence starts in the middle of each; one stream has no key at all.
x, memory = (5, 2, 6), (4, 2, 3)
cont = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
x_mask = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
x_lengths, memory_lengths = np.array([3.0, 0.0]), np.array([0.0, 2.0])
memory_mask = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])

# The same with three streams and another length.
other_x, other_memory = (3, 3, 6), (6, 3, 3)
other_cont = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
other_masks = {"LENGTHS": np.array([1.0, 3.0, 2.0]), "MASK": np.ones((3, 3))}
other_memory_masks = {"LENGTHS": np.array([6.0, 0.0, 1.0]), "MASK": np.ones((6, 3))}

no_gradient = ("check_numeric_gradient",)  # of what is carried


def multi_head(options: str, *bottoms: object, weights: bool = False, **more: object) -> LayerCase:
    """A case of MultiHeadAttention with two heads of two numbers each."""
    tops = "top: 'y' top: 'weights'" if weights else ""
    text = f"type: 'MultiHeadAttention' {tops} attention_param {{ num_output: 4 num_heads: 2 {options} }}"
    return LayerCase(text, bottoms, **more)


def attention(options: str, *bottoms: object, weights: bool = False, **more: object) -> LayerCase:
    """A case of Attention."""
    tops = "top: 'c' top: 'alpha'" if weights else ""
    return LayerCase(f"type: 'Attention' {tops} attention_param {{ {options} }}", bottoms, **more)


def self_attention_cases() -> list[LayerCase]:
    """Which keys are seen, in every combination, without the weights and with them; the other options."""
    cases = []
    masks = {"NO_PADDING": [], "LENGTHS": [x_lengths], "MASK": [x_mask]}
    for (padding, mask), with_cont, order in itertools.product(
        masks.items(), (False, True), ("", "causal: true", "window: 2")
    ):
        number = len(cases)
        options = f"{order} padding: {padding} cont_bottom: {str(with_cont).lower()}"
        options += (" dropout_ratio: 0.4", "", " rotary: true")[number // 2 % 3]
        bottoms = [x, *([cont] * with_cont), *mask]
        others = [other_x, *([other_cont] * with_cont), *([other_masks[padding]] if mask else [])]
        cases.append(multi_head(options, *bottoms, weights=number % 2 == 0, other_bottoms=others))
    for order in ("", "causal: true"):
        for weights in (False, True):
            cases.append(multi_head(f"{order} dropout_ratio: 0.4", x, weights=weights))
    cases.append(multi_head("rotary: true bias_term: false", (5, 2, 2, 3)))
    carried = [x, cont, x_lengths]
    options = "carry_state: true causal: true rotary: true cont_bottom: true padding: LENGTHS"
    others = [other_x, other_cont, other_masks["LENGTHS"]]
    cases.append(multi_head(options, *carried, weights=True, phase=TEST, other_bottoms=others, skip=no_gradient))
    return cases


def cross_attention_cases() -> list[LayerCase]:
    """Paddings of the memory, without the weights and with them."""
    cases = []
    masks = {"NO_PADDING": [], "LENGTHS": [memory_lengths], "MASK": [memory_mask]}
    for number, ((padding, mask), order) in enumerate(
        itertools.product(masks.items(), ("", "causal: true", "window: 3", "dropout_ratio: 0.4"))
    ):
        options = f"cross: true {order} padding: {padding} bias_term: {'false' if number == 3 else 'true'}"
        others = [other_x, other_memory, *([other_memory_masks[padding]] if mask else [])]
        cases.append(multi_head(options, x, memory, *mask, weights=number % 2 == 1, other_bottoms=others))
    options = "cross: true carry_state: true padding: LENGTHS"
    others = [other_x, other_memory, other_memory_masks["LENGTHS"]]
    cases.append(multi_head(options, x, memory, memory_lengths, phase=TEST, other_bottoms=others, skip=no_gradient))
    return cases


def attention_cases() -> list[LayerCase]:
    """Both scores, each with each padding, without the weights and with them; the projections left out."""
    cases = []
    masks = {"NO_PADDING": [], "LENGTHS": [memory_lengths], "MASK": [memory_mask]}
    scores = ("", "scaled: true value_output: 2", "score: ADDITIVE", "score: ADDITIVE value_output: 2")
    for (padding, mask), score, queries in itertools.product(masks.items(), scores, (x, (2, 6))):
        number = len(cases)
        orders = ["dropout_ratio: 0.4", *(["causal: true", "window: 2"] if len(queries) == 3 else []), ""]
        options = f"num_output: 5 {score} {orders[number // 2 % len(orders)]} padding: {padding}"
        others = [other_x if len(queries) == 3 else (3, 6), other_memory]
        others += [other_memory_masks[padding]] if mask else []
        cases.append(attention(options, queries, memory, *mask, weights=number % 3 == 0, other_bottoms=others))
    for score in ("DOT", "ADDITIVE"):
        text = f"score: {score} query_projection: false key_projection: false"
        cases.append(attention(text, (5, 2, 3), memory, weights=True, other_bottoms=[(1, 3, 3), other_memory]))
        others = [other_x, other_memory]
        cases.append(attention(f"score: {score} key_projection: false", x, memory, other_bottoms=others))
    return cases


CASES = {
    "Attention": attention_cases(),
    "MultiHeadAttention": self_attention_cases() + cross_attention_cases(),
}
