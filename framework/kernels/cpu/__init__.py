"""Fused kernels for the CPU: loops compiled by Numba, split over threads by the backend."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .stale_code import forget_stale_code

FUSED = {
    "attention": ("attention_backward", "attention_forward"),
    "channels": (
        "batch_norm_backward",
        "batch_norm_forward",
        "batch_norm_statistics",
        "channel_dots",
        "channel_sums",
        "scale_channels",
    ),
    "convolution": ("conv2d_backward_data", "conv2d_backward_weights", "conv2d_forward"),
    "elementwise": (
        "dropout_forward",
        "relu_backward",
        "relu_forward",
        "slope_backward",
        "uniform_numbers",
        "weighted_sum",
    ),
    "gru": ("gru_backward", "gru_forward"),
    "gru_reset_after": ("gru_reset_after_backward", "gru_reset_after_forward"),
    "lrn": ("lrn_backward", "lrn_forward"),
    "lstm": ("lstm_backward", "lstm_forward"),
    "neurons": ("gelu_forward", "gelu_tanh_forward", "swish_forward"),
    "norms": ("layer_norm_backward", "layer_norm_forward", "rms_norm_backward", "rms_norm_forward"),
    "pooling": ("ave_pool2d_backward", "ave_pool2d_forward", "max_pool2d_backward", "max_pool2d_forward"),
    "products": ("affine", "matmul"),
    "rnn": ("rnn_backward", "rnn_forward"),
    "rotary": ("turn_pairs",),
    "softmax": ("softmax_backward", "softmax_forward", "softmax_loss_backward", "softmax_loss_forward"),
    "tables": ("add_row", "add_rows", "take_rows"),
    "updates": (
        "adadelta_step",
        "adagrad_step",
        "adam_step",
        "nesterov_step",
        "rmsprop_step",
        "sgd_step",
        "sum_of_squares",
    ),
}


FOLDER = Path(__file__).parent
SOURCES = [*FOLDER.glob("*.py"), FOLDER.parent.parent / "crew.py"]  # of all that compiled kernels hold
forget_stale_code(FOLDER, SOURCES)


def fused_functions() -> Mapping[str, Callable[..., Any]]:
    """All fused functions for the CPU, by name; none without Numba."""
    if find_spec("numba") is None:
        return {}
    return {
        name: getattr(import_module(f".{module}", __name__), name) for module, names in FUSED.items() for name in names
    }
