"""PyTorch's attention weights for ours: nn.MultiheadAttention of one sequence or of two."""

from collections.abc import Mapping

import numpy as np

from .multi_head_attention import MultiHeadAttention

SEPARATE = ("q_proj_weight", "k_proj_weight", "v_proj_weight")  # where kdim or vdim is not embed_dim


def load_torch_attention(layer: MultiHeadAttention, weights: Mapping[str, np.ndarray]) -> None:
    """Fill ``layer`` from the state dict of an nn.MultiheadAttention, as NumPy arrays; num_heads must be the module's.

    Raises LayerError where a weight is missing, has another shape, or finds no place.
    """
    values = in_our_order(layer, weights)
    for blob, name in zip(layer.blobs, values, strict=True):
        if values[name].shape != blob.shape:
            layer.fail(f"parameter {blob.name} has shape {blob.shape}, but PyTorch's has {values[name].shape}")
    for blob, array in zip(layer.blobs, values.values(), strict=True):
        blob.data[...] = layer.backend.to_device(array.astype(layer.dtype))


def in_our_order(layer: MultiHeadAttention, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """PyTorch's arrays (weights, or their gradients) by the names of our parameters, in the layer's order."""
    left = {name: np.asarray(array) for name, array in weights.items()}

    def take(name: str) -> np.ndarray:
        if name not in left:
            layer.fail(f"PyTorch's weights have no {name!r} (they have: {', '.join(sorted(weights))})")
        return left.pop(name)

    param, E = layer.param.attention_param, layer.E
    rows = {"q": slice(0, E), "kv": slice(E, None)} if param.cross else {"qkv": slice(None)}
    if param.cross and SEPARATE[0] in left:
        q, k, v = (take(name) for name in SEPARATE)
        if k.shape != v.shape:
            layer.fail(f"PyTorch's keys and values have different sizes: {k.shape[1]} (kdim), {v.shape[1]} (vdim)")
        matrices = {"q": q, "kv": np.concatenate([k, v])}
    else:
        matrix = take("in_proj_weight")
        matrices = {part: matrix[place] for part, place in rows.items()}
    biases = take("in_proj_bias") if param.bias_term else None
    values = {}
    for part, place in rows.items():
        values[f"W_{part}"] = matrices[part]
        if biases is not None:
            values[f"b_{part}"] = biases[place]
    values["W_o"] = take("out_proj.weight")
    if biases is not None:
        values["b_o"] = take("out_proj.bias")
    if left:
        layer.fail(f"PyTorch's weights have {min(left)!r}, for which this layer has no place (bias_term? bias_k?)")
    return values
