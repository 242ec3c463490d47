"""Activations: layers that keep their bottom's shape; importing registers them."""

from . import (
    abs_val,
    bnll,
    clip,
    dropout,
    elu,
    exp,
    log,
    power,
    prelu,
    relu,
    sigmoid,
    softmax,
    swish,
    tanh,
    threshold,
)

__all__ = [
    "abs_val",
    "bnll",
    "clip",
    "dropout",
    "elu",
    "exp",
    "log",
    "power",
    "prelu",
    "relu",
    "sigmoid",
    "softmax",
    "swish",
    "tanh",
    "threshold",
]
