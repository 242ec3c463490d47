"""Options of a layer as a dataclass: filled from the option block its prototxt has, typed and checked."""

import dataclasses
import enum
import types
import typing
from typing import Any, TypeVar

from . import recaffe_pb2 as pb
from .errors import suggestion
from .grammar import Block, Field, OptionSource, Scalar, parse_tree
from .scalars import expected, to_bool, to_float, to_int, to_str

T = TypeVar("T")


def option_text(layer: pb.LayerParameter, name: str) -> str | None:
    """The text of the layer's option block `name`, such as "my_layer_param"; None if it has none."""
    return next((block.text for block in layer.option_block if block.name == name), None)


def parse_options(block_text: str, dataclass_type: type[T], where: str) -> T:
    """An instance of a dataclass from the text of an option block.

    Fields may be int, float, bool, str, an enum.Enum, another dataclass (a block within the block),
    list[...] of these, and `... | None`. A field without a default must be given. `where`, such as
    `net.prototxt:12: layer "x": my_layer_param`, opens the message of every RecaffeError.
    """
    source = OptionSource(block_text, where)
    return _build(parse_tree(source), dataclass_type, source)


def _build(block: Block, dataclass_type: Any, source: OptionSource) -> Any:
    hints = typing.get_type_hints(dataclass_type)
    declared = {field.name: field for field in dataclasses.fields(dataclass_type) if field.init}
    values: dict[str, Any] = {}
    for written in block.fields:
        if written.name not in declared:
            hint = suggestion(written.name, declared)
            source.fail(f'{dataclass_type.__name__} has no field "{written.name}"{hint}', written.offset)
        kind = _without_none(hints[written.name])
        if typing.get_origin(kind) is list:
            (item_kind,) = typing.get_args(kind)
            items = [_value(value, item_kind, written, source) for value in written.values]
            values.setdefault(written.name, []).extend(items)
        elif written.name in values or written.is_list:
            source.fail(f'"{written.name}" is a single value, found several', written.offset)
        else:
            values[written.name] = _value(written.values[0], kind, written, source)
    for name, field in declared.items():
        has_default = (field.default, field.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)
        if name not in values and not has_default:
            source.fail(f'{dataclass_type.__name__} needs the field "{name}"', block.offset)
    return dataclass_type(**values)


def _without_none(kind: Any) -> Any:
    """`int` of `int | None`."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        (kind,) = (argument for argument in typing.get_args(kind) if argument is not type(None))
    return kind


def _value(value: Scalar | Block, kind: Any, written: Field, source: OptionSource) -> Any:
    named = source.inside(written.name)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        if not isinstance(value, Block):
            expected(f'"{{" and the fields of {kind.__name__}', value, named)
        return _build(value, kind, named)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _enum_value(value, kind, named)
    if kind is bool:
        return to_bool(value, named)
    if kind is int:
        return to_int(value, named, -(2**63), 2**63 - 1)
    if kind is float:
        return to_float(value, named)
    if kind is str:
        return to_str(value, named)
    raise TypeError(f'"{written.name}": an option cannot be a {kind}')


def _enum_value(value: Scalar | Block, kind: type[enum.Enum], source: OptionSource) -> enum.Enum:
    if isinstance(value, Scalar) and value.kind == "word":
        if value.text in kind.__members__:
            return kind[value.text]
        hint = suggestion(value.text, kind.__members__)
        source.fail(f"expected a {kind.__name__}, found {value.text}{hint}", value.offset)
    if isinstance(value, Scalar) and value.kind == "number":
        for member in kind:
            if str(member.value) == value.text:
                return member
    return expected(f"one of {', '.join(kind.__members__)}", value, source)
