"""Fused kernels for the GPU: CUDA C that CuPy compiles on first use, for the steps of recurrent layers."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

FUSED = {
    "gru": ("gru_backward", "gru_forward"),
    "gru_reset_after": ("gru_reset_after_backward", "gru_reset_after_forward"),
    "lstm": ("lstm_backward", "lstm_forward"),
    "rnn": ("rnn_backward", "rnn_forward"),
}


def fused_functions() -> Mapping[str, Callable[..., Any]]:
    """All fused functions for the GPU, by name."""
    return {
        name: getattr(import_module(f".{module}", __name__), name) for module, names in FUSED.items() for name in names
    }
