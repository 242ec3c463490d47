"""Which layers run backward, and which of their bottoms get a gradient.

Two sweeps over the net, as Caffe decides it.  Downwards: a blob needs a gradient if a parameter above it is
learnt (or its own top needs one); ``propagate_down`` in the prototxt overrules it for a bottom.  Upwards: a
layer runs backward only if one of its tops reaches a loss and something below wants the gradient.
``force_backward`` then asks for every gradient that exists.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from .errors import LayerError
from .layer import Layer, place


@dataclass
class BackwardNeeds:
    """What one layer's backward must do."""

    layer: bool = False
    bottoms: list[bool] = field(default_factory=list)


class BackwardPlan:
    """Collects, layer by layer, what needs a gradient; ``finish`` gives the plan of the whole net."""

    def __init__(self) -> None:
        self.needs: list[BackwardNeeds] = []
        self._blob_needs: dict[str, bool] = {}

    def add_layer(self, layer: Layer, bottoms: Sequence[str], tops: Sequence[str], learns: bool) -> None:
        """The sweep downwards over one layer; ``learns``: one of its parameters has a learning rate."""
        asked = layer.param.propagate_down
        if asked and len(asked) != len(bottoms):
            raise LayerError(
                f"{place(layer.param, layer.context.where)}: propagate_down is given {len(asked)} time(s)"
                f" for {len(bottoms)} bottom(s)"
            )
        below = [self._blob_needs[name] for name in bottoms]
        needs = learns or any(below)
        self.needs.append(BackwardNeeds(needs, list(asked) or below))
        for name in tops:
            self._blob_needs[name] = needs or (name in bottoms and self._blob_needs[name])

    def finish(
        self,
        layers: Sequence[Layer],
        bottoms: Sequence[Sequence[str]],
        tops: Sequence[Sequence[str]],
        force_backward: bool,
    ) -> list[BackwardNeeds]:
        """The sweep upwards from the losses."""
        under_loss: set[str] = set()
        skipped: set[str] = set()
        for i in reversed(range(len(layers))):
            needs = self.needs[i]
            reaches_loss = any(
                weight or name in under_loss for weight, name in zip(layers[i].loss_weights, tops[i], strict=True)
            )
            if needs.layer and all(name in skipped for name in tops[i]):
                needs.layer = False
                needs.bottoms = [False] * len(bottoms[i])
            if reaches_loss:
                under_loss.update(bottoms[i])
            else:
                needs.layer = False
                needs.bottoms = [False] * len(bottoms[i])
            skipped.update(name for name, need in zip(bottoms[i], needs.bottoms, strict=True) if not need)
        if force_backward:
            self._force(layers, bottoms, tops)
        return self.needs

    def _force(self, layers: Sequence[Layer], bottoms: Sequence[Sequence[str]], tops: Sequence[Sequence[str]]) -> None:
        """Ask for every gradient that exists: not for labels and marks, nor for what a Split makes of them."""
        without: set[str] = set()  # blobs to which their reader gives no gradient
        for layer, needs, below, above in reversed(list(zip(layers, self.needs, bottoms, tops, strict=True))):
            needs.layer = True
            needs.bottoms = [need or layer.allow_force_backward(j) for j, need in enumerate(needs.bottoms)]
            if layer.type == "Split" and without.issuperset(above):
                needs.bottoms = [False]
            without.update(name for name, need in zip(below, needs.bottoms, strict=True) if not need)
            layer.param_propagate_down = [True] * len(layer.blobs)
