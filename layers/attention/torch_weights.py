"""PyTorch's transformer weights for the pieces of ours.

nn.MultiheadAttention has the rows of q, k and v in one matrix; our attention to a memory has two, q and [k, v].
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...framework.blob import Blob
from ...framework.errors import RecaffeError

KEY = re.compile(r"(?:layers\.(\d+)\.)?(\w+)\.(.+)")  # layer, module, parameter
PIECES = {
    "self_attn": "self_attention",
    "multihead_attn": "cross_attention",
    "linear1": "feed_forward/hidden",
    "linear2": "feed_forward/output",
    "norm1": "norm1",
    "norm2": "norm2",
    "norm3": "norm3",
}
PARAMETERS = {
    "in_proj_weight": "W_qkv",
    "in_proj_bias": "b_qkv",
    "out_proj.weight": "W_o",
    "out_proj.bias": "b_o",
    "weight": "W",
    "bias": "b",
}
NORM_PARAMETERS = {"weight": "gamma", "bias": "beta"}


def load_torch_transformer(net: Any, name: str, weights: Mapping[str, np.ndarray]) -> None:
    """Fill the pieces of the TransformerEncoder or TransformerDecoder ``name`` of ``net``.

    ``weights``: the state dict, as NumPy arrays, of an nn.TransformerEncoder, an nn.TransformerDecoder or one layer of
    them; of an nn.Transformer, what its names have behind ``encoder.`` or ``decoder.``.  What the state dict does not
    tell (activation, norm_first, the number of heads) must be the module's.  Norms without a bias there get a beta
    of 0.

    Raises RecaffeError where a weight finds no place or has another shape, and where a parameter gets none.
    """
    pairs = list(matched(net, name, weights))
    for blob, values in pairs:
        if blob.shape != values.shape:
            raise RecaffeError(f"parameter {blob.name} has shape {blob.shape}, but PyTorch's has {values.shape}")
    found = {blob.name for blob, _ in pairs}
    for layer, blobs in net.params.items():
        for blob in blobs if layer.startswith(f"{name}/") else ():
            if blob.name.endswith(".beta") and blob.name not in found:
                pairs.append((blob, np.zeros(blob.shape)))
            elif blob.name not in found:
                raise RecaffeError(f"PyTorch's weights have nothing for {blob.name} (num_layers? bias_term?)")
    for blob, values in pairs:
        blob.data[...] = net.backend.to_device(values.astype(net.dtype))


def matched(net: Any, name: str, weights: Mapping[str, np.ndarray]) -> Iterator[tuple[Blob, np.ndarray]]:
    """Each parameter that a name in ``weights`` stands for, with its values."""
    for key, values in weights.items():
        found = KEY.fullmatch(key)
        layer, module, parameter = found.groups() if found else (None, "", "")
        piece = "norm" if module == "norm" else f"{layer or 0}/{PIECES.get(module, module)}"
        blobs = {blob.name.rpartition(".")[2]: blob for blob in net.params.get(f"{name}/{piece}", ())}
        for ours, part in _in_our_parts(module, parameter, np.asarray(values)):
            if ours not in blobs:
                raise RecaffeError(f"{name!r} has no place for PyTorch's {key!r} (num_layers? bias_term? final_norm?)")
            yield blobs[ours], part


def _in_our_parts(module: str, parameter: str, values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Our names of a parameter, or of its parts, with their values."""
    names = NORM_PARAMETERS if module.startswith("norm") else PARAMETERS
    ours = names.get(parameter, parameter)
    if module == "multihead_attn" and ours.endswith("_qkv"):
        width = len(values) // 3
        yield f"{ours[0]}_q", values[:width]
        yield f"{ours[0]}_kv", values[width:]
    else:
        yield ours, values
