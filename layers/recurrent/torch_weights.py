"""PyTorch's recurrent weights in the order of ours.

nn.LSTM keeps its gates in the order i, f, g, o (ours: i, f, o, g), nn.GRU in the order r, z, n (ours: z, r, h~), and
its update gate is one minus ours, so those rows change their sign.  Of its two biases one is enough, but for the GRU's
candidate, where the second stands inside the reset gate's product (``reset_after``).
"""

from collections.abc import Mapping

import numpy as np

from .recurrent_layer import RecurrentLayer
from .run import Run


def load_torch_weights(layer: RecurrentLayer, weights: Mapping[str, np.ndarray]) -> None:
    """Fill ``layer`` from the state dict of an nn.RNN, nn.LSTM or nn.GRU, as NumPy arrays.

    An RNN must have ``output_hidden``, a GRU ``reset_after``; num_layers and direction must be the module's.
    """
    param = layer.param.recurrent_param
    if layer.type == "RNN" and not param.output_hidden:
        layer.fail("PyTorch's RNN has h as its output: set output_hidden: true")
    if layer.type == "GRU" and not param.reset_after:
        layer.fail("PyTorch's GRU resets after the product: set reset_after: true")
    used: set[str] = set()
    for number, level in enumerate(layer.levels):
        for run in level.runs:
            suffix = f"_l{number}" + ("_reverse" if len(level.runs) == 2 and run.reverse else "")
            used |= load_run(layer, run, weights, suffix)
    unused = sorted(set(weights) - used)
    if unused:
        layer.fail(f"PyTorch's weights have {unused[0]!r}, for which this layer has no place (num_layers? direction?)")


def load_run(layer: RecurrentLayer, run: Run, weights: Mapping[str, np.ndarray], suffix: str) -> set[str]:
    """Fill one level and direction; gives the names that were used."""
    names = [name + suffix for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    arrays = []
    for name in names:
        if name not in weights:
            layer.fail(f"PyTorch's weights have no {name!r} (they have: {', '.join(sorted(weights))})")
        arrays.append(in_our_order(layer.type, np.asarray(weights[name])))
    W_x, W_h, b_x, b_h = arrays
    values = [W_x, b_x + b_h, W_h]
    if layer.type == "GRU":
        candidate = slice(2 * run.H, None)
        values[1][candidate] = b_x[candidate]
        values.append(b_h[candidate])
    for blob, array in zip((run.W_x, run.b, *run.weights), values, strict=True):
        if array.shape != blob.shape:
            layer.fail(f"parameter {blob.name} has shape {blob.shape}, but PyTorch's {suffix[1:]} gives {array.shape}")
        blob.data[...] = layer.backend.to_device(array.astype(layer.dtype))
    return set(names)


def in_our_order(layer_type: str, rows: np.ndarray) -> np.ndarray:
    """PyTorch's rows (gates H x ...) as ours."""
    if layer_type == "LSTM":
        i, f, g, o = np.split(rows, 4)
        return np.concatenate([i, f, o, g])
    if layer_type == "GRU":
        r, z, n = np.split(rows, 3)
        return np.concatenate([-z, r, n])
    return rows
