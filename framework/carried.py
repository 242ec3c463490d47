"""Whether the layers of a net that runs step by step go on where the last pass stopped."""

from collections.abc import Sequence

from .errors import RecaffeError
from .layer import Layer
from .net import Net


def check_carried(net: Net, layers: Sequence[Layer], which: str = "") -> None:
    """Raise RecaffeError unless ``layers`` of ``net``, which have run, keep what the next pass needs of this one.

    ``which``: what the message says about the layers.
    """
    keeps = [bool(layer.get_state()) for layer in layers]
    if not any(keeps):
        raise RecaffeError(
            f"no layer of net {net.name!r}{which} carries a state from pass to pass; give its recurrent, attention and"
            " positional layers carry_state: true (a bottom cont will do for recurrent layers)"
        )
    for layer, kept in zip(layers, keeps, strict=True):
        if layer.looks_back() and not kept:
            layer.fail("it depends on the steps before, but carries nothing from pass to pass; set carry_state: true")
