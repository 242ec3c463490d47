"""Recurrent layers alone: forward and backward of one layer on noise, in recaffe and in PyTorch.

A net is named ``KIND-TxNxDxH``: ``lstm-50x32x128x256``.  ``gru`` is the form that PyTorch has (``reset_after``);
``gru_default`` is recaffe's default, whose reset gate acts before the product: it is set beside PyTorch's GRU too,
which has as many multiplications.  ``rnn`` gives h itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MIDDLE = "50x32x128x256"
SIZES = ("20x16x64x64", MIDDLE, "50x32x256x512", "100x64x256x256", "128x1x128x128", "35x20x650x650")
NET = """force_backward: true
layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ dim: {T} dim: {N} dim: {D} }} }} }}
layer {{ name: "layer" type: "{type}" bottom: "x" top: "y"
  recurrent_param {{ num_output: {H} weight_filler {{ type: "xavier" }} {options} }} }}
"""


@dataclass
class Kind:
    """A layer type with options, in recaffe and in PyTorch."""

    type: str
    options: str = ""
    torch_options: Mapping[str, Any] = field(default_factory=dict)
    sizes: tuple[str, ...] = SIZES

    def torch_layer(self, D: int, H: int) -> Any:
        """PyTorch's layer."""
        import torch

        return getattr(torch.nn, self.type)(D, H, **self.torch_options)


KINDS = {
    "lstm": Kind("LSTM"),
    "gru": Kind("GRU", "reset_after: true"),
    "gru_default": Kind("GRU"),
    "rnn": Kind("RNN", "output_hidden: true"),
    "lstm_both_directions": Kind("LSTM", "direction: BIDIRECTIONAL", {"bidirectional": True}, (MIDDLE,)),
    "lstm_two_levels": Kind("LSTM", "num_layers: 2", {"num_layers": 2}, (MIDDLE,)),
}


def names() -> list[str]:
    """Every layer in every size."""
    return [f"{name}-{size}" for name, kind in KINDS.items() for size in kind.sizes]


def recaffe_passes(name: str) -> Callable[[], object]:
    """One forward and one backward pass in recaffe."""
    import recaffe
    from recaffe.proto import parse_net

    kind, (T, N, D, H), x = example(name)
    text = NET.format(T=T, N=N, D=D, H=H, type=kind.type, options=kind.options)
    net = recaffe.Net(parse_net(text, name), recaffe.TRAIN)
    net.blobs["x"].data[...] = x
    net.blobs["y"].diff[...] = 1

    def passes() -> None:
        net.clear_param_diffs()
        net.forward_backward()

    return passes


def torch_passes(name: str) -> Callable[[], object]:
    """The same in PyTorch."""
    import torch

    kind, (_, _, D, H), x = example(name)
    layer = kind.torch_layer(D, H)
    bottom = torch.from_numpy(x).requires_grad_(True)

    def passes() -> None:
        layer.zero_grad()
        bottom.grad = None
        top, _ = layer(bottom)
        top.backward(torch.ones_like(top))

    return passes


def example(name: str) -> tuple[Kind, tuple[int, int, int, int], np.ndarray]:
    """Kind, sizes and input of the layer ``name``."""
    kind, text = name.split("-")
    T, N, D, H = (int(size) for size in text.split("x"))
    return KINDS[kind], (T, N, D, H), np.random.default_rng(0).standard_normal((T, N, D)).astype(np.float32)
