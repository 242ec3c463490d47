"""Losses and measures; importing registers them."""

from . import (
    accuracy,
    contrastive_loss,
    ctc_greedy_decoder,
    ctc_loss,
    ctc_spellings,
    euclidean_loss,
    hinge_loss,
    infogain_loss,
    multinomial_logistic_loss,
    sigmoid_cross_entropy_loss,
    softmax_with_loss,
)

__all__ = [
    "accuracy",
    "contrastive_loss",
    "ctc_greedy_decoder",
    "ctc_loss",
    "ctc_spellings",
    "euclidean_loss",
    "hinge_loss",
    "infogain_loss",
    "multinomial_logistic_loss",
    "sigmoid_cross_entropy_loss",
    "softmax_with_loss",
]
