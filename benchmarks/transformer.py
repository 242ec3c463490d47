"""Transformer layers alone: forward and backward of one layer on noise, in recaffe and in PyTorch, without dropout.

A net is named ``KIND-NxTxDxFxheads``: ``encoder-32x64x128x512x4``.  The decoder is causal and attends to as many steps.
PyTorch gets the order of the axes in which it is faster.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

SIZES = ("16x32x64x256x4", "32x64x128x512x4", "16x128x256x1024x8", "8x256x512x2048x8", "2x1024x256x1024x8")
TYPES = {"encoder": "TransformerEncoder", "decoder": "TransformerDecoder"}
INPUT = """layer {{ name: "{name}" type: "Input" top: "{name}"
  input_param {{ shape {{ dim: {T} dim: {N} dim: {D} }} }} }}
"""
LAYER = """layer {{ name: "layer" type: "{type}" {bottoms} top: "y"
  transformer_param {{ num_output: {D} num_heads: {heads} num_hidden: {F} }} }}
"""


@dataclass
class Example:
    """A layer's kind, its sizes and its inputs, T x N x D."""

    kind: str
    N: int
    T: int
    D: int
    F: int
    heads: int

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """The values of x, and for a decoder of the memory."""
        rng = np.random.default_rng(0)
        names = ("x",) if self.kind == "encoder" else ("x", "memory")
        return {name: rng.standard_normal((self.T, self.N, self.D)).astype(np.float32) for name in names}


def names() -> list[str]:
    """Both layers in every size."""
    return [f"{kind}-{size}" for kind in TYPES for size in SIZES]


def example(name: str) -> Example:
    """What the layer ``name`` is."""
    kind, sizes = name.split("-")
    return Example(kind, *(int(size) for size in sizes.split("x")))


def recaffe_passes(name: str) -> Callable[[], object]:
    """One forward and one backward pass in recaffe."""
    import recaffe
    from recaffe.proto import parse_net

    one = example(name)
    sizes, inputs = vars(one), one.inputs
    bottoms = " ".join(f'bottom: "{blob}"' for blob in inputs)
    text = "force_backward: true\n" + "".join(INPUT.format(name=blob, **sizes) for blob in inputs)
    text += LAYER.format(type=TYPES[one.kind], bottoms=bottoms, **sizes)
    net = recaffe.Net(parse_net(text, name), recaffe.TRAIN)
    net.keeps_diffs = False  # as the command line trains
    for blob, values in inputs.items():
        net.blobs[blob].data[...] = values
    net.blobs["y"].diff[...] = 1

    def passes() -> None:
        net.clear_param_diffs()
        net.forward_backward()

    return passes


def torch_passes(name: str) -> Callable[[], object]:
    """The same in PyTorch."""
    orders = [torch_passes_in(example(name), batch_first) for batch_first in (False, True)]
    return min(orders, key=seconds)


def torch_passes_in(one: Example, batch_first: bool) -> Callable[[], object]:
    """One forward and one backward pass in PyTorch with the batch on axis 0 or 1."""
    import torch

    kind = torch.nn.TransformerEncoderLayer if one.kind == "encoder" else torch.nn.TransformerDecoderLayer
    layer = kind(one.D, one.heads, one.F, dropout=0.0, batch_first=batch_first)
    inputs = [torch.from_numpy(values) for values in one.inputs.values()]
    if batch_first:
        inputs = [values.transpose(0, 1).contiguous() for values in inputs]
    options: dict[str, Any] = {}
    if one.kind == "decoder":
        mask = torch.nn.Transformer.generate_square_subsequent_mask(one.T)
        options = {"tgt_mask": mask, "tgt_is_causal": True}
    for values in inputs:
        values.requires_grad_(True)

    def passes() -> None:
        layer.zero_grad()
        for values in inputs:
            values.grad = None
        y = layer(*inputs, **options)
        y.backward(torch.ones_like(y))

    return passes


def seconds(passes: Callable[[], object]) -> float:
    """The quicker of three tries, after one to warm up."""
    passes()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        passes()
        times.append(time.perf_counter() - start)
    return min(times)
