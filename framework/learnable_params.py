"""LearnableParams: every parameter of a net once, with its multipliers; those with a name are shared by it."""

from ..proto import ParamSpec
from .blob import Blob
from .layer import Layer


class LearnableParams:
    """What a solver updates: parameters in the order of the layers, and their multipliers for rate and decay."""

    def __init__(self) -> None:
        self.blobs: list[Blob] = []
        self.lr_mults: list[float] = []
        self.decay_mults: list[float] = []
        self._specs: list[ParamSpec] = []
        self._owners: dict[str, tuple[int, str]] = {}  # shared name -> (index of the parameter, its layer's name)

    def add_layer(self, layer: Layer) -> bool:
        """Enter the layer's parameters, sharing those with a known name; gives whether any is learnt."""
        specs = list(layer.param.param)
        if len(specs) > len(layer.blobs):
            layer.fail(f"{len(specs)} param blocks for {len(layer.blobs)} parameter(s)")
        specs += [ParamSpec()] * (len(layer.blobs) - len(specs))
        for i, spec in enumerate(specs):
            layer.param_propagate_down[i] = spec.lr_mult != 0
            if spec.name and spec.name in self._owners:
                self._share(layer, i, spec)
                continue
            if spec.name:
                self._owners[spec.name] = (len(self.blobs), layer.name)
            self.blobs.append(layer.blobs[i])
            self._specs.append(ParamSpec.FromString(spec.SerializeToString()))
            self.lr_mults.append(spec.lr_mult)
            self.decay_mults.append(spec.decay_mult)
        return any(spec.lr_mult != 0 for spec in specs)

    def _share(self, layer: Layer, i: int, spec: ParamSpec) -> None:
        """Let parameter i look at the owner's memory; a multiplier may stand with any of those that share it."""
        index, owner_layer = self._owners[spec.name]
        owner, blob = self.blobs[index], layer.blobs[i]
        permissive = spec.share_mode == ParamSpec.PERMISSIVE
        if (owner.count != blob.count) if permissive else (owner.shape != blob.shape):
            rule = "as many values (share_mode: PERMISSIVE)" if permissive else "the same shape (share_mode: STRICT)"
            layer.fail(
                f"parameter {i} shares {spec.name!r} with layer {owner_layer!r} and needs {rule}:"
                f" {blob.shape} here, {owner.shape} there"
            )
        first = self._specs[index]
        for field, values in (("lr_mult", self.lr_mults), ("decay_mult", self.decay_mults)):
            if not spec.HasField(field):
                continue
            value = getattr(spec, field)
            if first.HasField(field) and value != values[index]:
                layer.fail(
                    f"parameter {i} shares {spec.name!r} with layer {owner_layer!r},"
                    f" but {field} is {value:g} here and {values[index]:g} there"
                )
            values[index] = value
            setattr(first, field, value)
        blob.share_data(owner)
        blob.share_diff(owner)
