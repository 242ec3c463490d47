"""Where the weights of attention layers are: which top has them, and which of two texts they look from and at."""

from collections.abc import Container
from dataclasses import dataclass

import numpy as np

from ..proto import NetParameter
from .errors import RecaffeError, nearest
from .layer import Layer
from .net import Net


@dataclass(frozen=True)
class Kind:
    """An attention type: the number of its top with the weights, and that of states it can expose before it."""

    top: int
    states: int = 0


KINDS = {
    "Attention": Kind(1),
    "MultiHeadAttention": Kind(1),
    "AttentionLSTM": Kind(2, states=2),
    "AttentionGRU": Kind(2, states=1),
}


def weights_top(layer: Layer) -> int | None:
    """The number of the top that has, or would have, the weights of ``layer``; None without attention."""
    kind = KINDS.get(layer.type)
    if kind is None:
        return None
    return kind.top + kind.states * layer.param.recurrent_param.expose_hidden


def attention_layers(net: Net) -> list[Layer]:
    """The attention layers of ``net`` in their order."""
    return [layer for layer in net.layers if layer.type in KINDS]


def weights_blob(net: Net, layer: Layer) -> str | None:
    """The blob with the weights of ``layer``; None where it has no such top."""
    tops, number = net.top_names[layer.name], weights_top(layer)
    return tops[number] if number is not None and number < len(tops) else None


def is_weights(net: Net, blob: str) -> bool:
    """Whether ``blob`` has the weights of an attention layer."""
    return any(weights_blob(net, layer) == blob for layer in net.layers)


def with_weights(net: Net, layer: Layer) -> NetParameter:
    """The text of ``net`` in which ``layer`` has the top for its weights."""
    param = NetParameter()
    param.CopyFrom(net.param)
    (text,) = (text for text in param.layer if text.name == layer.name)
    number = weights_top(layer)
    assert number is not None
    text.top.extend(f"{layer.name}/top{j}" for j in range(len(text.top), number + 1))
    return param


def find_attention(net: Net, name: str, target_blobs: Container[str] = ()) -> Layer:
    """The attention layer ``name``; without a name the last of those that look from target to source, or of all."""
    layers = attention_layers(net)
    if not layers:
        raise RecaffeError(f"net {net.name!r} has no attention layer ({', '.join(KINDS)})")
    names = [layer.name for layer in layers]
    if name and name not in names:
        close = nearest(name, names)
        hint = f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(names)}"
        raise RecaffeError(f"net {net.name!r} has no attention layer {name!r}; {hint}")
    if name:
        return net.layer_dict[name]
    across = [layer for layer in layers if looks_at_source(net, layer, target_blobs)]
    return (across or layers)[-1]


def looks_from_target(net: Net, layer: Layer, target_blobs: Container[str]) -> bool:
    """Whether the queries are of the target: ``target_blobs`` are those that depend on it."""
    return net.bottom_names[layer.name][0] in target_blobs


def looks_at_source(net: Net, layer: Layer, target_blobs: Container[str]) -> bool:
    """Whether the queries are of the target and what they look at is not: a bottom of states is the encoder's."""
    return looks_from_target(net, layer, target_blobs) and any(
        name not in target_blobs and net.blobs[name].ndim > 2 for name in net.bottom_names[layer.name]
    )


def read_weights(net: Net, layer: Layer) -> np.ndarray:
    """The weights of the first stream in the last pass: heads x T x S."""
    name = weights_blob(net, layer)
    assert name is not None
    weights = net.backend.to_host(net.blobs[name].data)[:, 0]
    return weights[None] if weights.ndim == 2 else weights.transpose(1, 0, 2)
