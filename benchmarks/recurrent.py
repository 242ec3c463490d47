"""Recurrent layers alone: forward and backward of one layer on noise, in recaffe and in PyTorch.

A net is named ``KIND-TxNxDxH``: ``lstm-50x32x128x256``.  GRU is PyTorch's form (``reset_after``), RNN gives h itself.
"""

from collections.abc import Callable

import numpy as np

SIZES = ("20x16x64x64", "50x32x128x256", "50x32x256x512", "100x64x256x256", "128x1x128x128", "35x20x650x650")
OPTIONS = {"lstm": "", "gru": "reset_after: true", "rnn": "output_hidden: true"}
NET = """force_backward: true
layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ dim: {T} dim: {N} dim: {D} }} }} }}
layer {{ name: "layer" type: "{type}" bottom: "x" top: "y"
  recurrent_param {{ num_output: {H} weight_filler {{ type: "xavier" }} {options} }} }}
"""


def names() -> list[str]:
    """Every layer in every size."""
    return [f"{kind}-{size}" for kind in OPTIONS for size in SIZES]


def is_recurrent(name: str) -> bool:
    """Whether ``name`` is that of a recurrent layer."""
    return name in names()


def recaffe_passes(name: str) -> Callable[[], object]:
    """One forward and one backward pass in recaffe."""
    import recaffe
    from recaffe.proto import parse_net

    kind, sizes, x = example(name)
    T, N, D, H = sizes
    text = NET.format(T=T, N=N, D=D, H=H, type=kind.upper(), options=OPTIONS[kind])
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
    layer = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[kind](D, H)
    bottom = torch.from_numpy(x).requires_grad_(True)

    def passes() -> None:
        layer.zero_grad()
        bottom.grad = None
        top, _ = layer(bottom)
        top.backward(torch.ones_like(top))

    return passes


def example(name: str) -> tuple[str, tuple[int, int, int, int], np.ndarray]:
    """Kind, sizes and input of the layer ``name``."""
    kind, text = name.split("-")
    T, N, D, H = (int(size) for size in text.split("x"))
    return kind, (T, N, D, H), np.random.default_rng(0).standard_normal((T, N, D)).astype(np.float32)
