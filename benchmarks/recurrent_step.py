"""Steps of one stream through a recurrent layer that goes on from its last state: what writing 100 tokens costs.

A net is named ``step_KIND-H``: ``step_lstm-128``, with D = H.
"""

from collections.abc import Callable

import numpy as np

from .recurrent import KINDS, NET, Kind

STEPPED = ("lstm", "gru", "gru_default", "rnn")
SIZES = (64, 128, 256, 512, 650)
STEPS = 100  # in one loop, as a program that writes has it


def names() -> list[str]:
    """Every layer in every size."""
    return [f"step_{kind}-{H}" for kind in STEPPED for H in SIZES]


def recaffe_passes(name: str) -> Callable[[], object]:
    """``STEPS`` forward passes in recaffe."""
    import recaffe
    from recaffe.proto import parse_net

    kind, H, x = example(name)
    text = NET.format(T=1, N=1, D=H, H=H, type=kind.type, options=f"carry_state: true {kind.options}")
    net = recaffe.Net(parse_net(text, name), recaffe.TEST)
    net.blobs["x"].data[...] = x

    def steps() -> None:
        with net.backend.computing():
            for _ in range(STEPS):
                net.forward()

    return steps


def torch_passes(name: str) -> Callable[[], object]:
    """The same in PyTorch."""
    import torch

    kind, H, x = example(name)
    layer, bottom, state = kind.torch_layer(H, H), torch.from_numpy(x), None

    def steps() -> None:
        nonlocal state
        with torch.inference_mode():
            for _ in range(STEPS):
                _, state = layer(bottom, state)

    return steps


def example(name: str) -> tuple[Kind, int, np.ndarray]:
    """Kind, size and input of the layer ``name``."""
    kind, H = name.removeprefix("step_").split("-")
    return KINDS[kind], int(H), np.random.default_rng(0).standard_normal((1, 1, int(H))).astype(np.float32)
