"""Options that forks of Caffe added and that would change a layer's values: refused, not passed over."""

from collections.abc import Sequence
from typing import Any

from ..framework.layer import Layer


def refuse_fork_options(layer: Layer, param: Any, names: Sequence[str]) -> None:
    """Raise LayerError if one of the options ``names`` of ``param`` is set to other than its default."""
    for name in names:
        field = param.DESCRIPTOR.fields_by_name[name]
        value = getattr(param, name)
        if field.message_type is not None:
            given = param.HasField(name)
        elif isinstance(value, (int, float, str)):
            given = value != field.default_value
        else:
            given = len(value) > 0
        if given:
            layer.fail(f"{name} is an option of a fork of Caffe that type {layer.type!r} does not have; remove it")
