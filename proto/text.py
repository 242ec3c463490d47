"""Messages as text: prototxt in, with errors that tell the place and the nearest name, and prototxt out."""

import functools
import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from google.protobuf import text_encoding
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto
from google.protobuf.message import Message

from . import recaffe_pb2 as pb
from .errors import nearest, suggestion
from .grammar import Block, Field, OptionSource, Scalar, Source, parse_tree, write_tree
from .scalars import expected, to_bool, to_bytes, to_float, to_int, to_str

M = TypeVar("M", bound=Message)

_INTEGERS = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}
_OTHERS = {
    FieldDescriptor.TYPE_FLOAT: to_float,
    FieldDescriptor.TYPE_DOUBLE: to_float,
    FieldDescriptor.TYPE_BOOL: to_bool,
    FieldDescriptor.TYPE_STRING: to_str,
    FieldDescriptor.TYPE_BYTES: to_bytes,
}
_LAYERS = (pb.LayerParameter.DESCRIPTOR, pb.V1LayerParameter.DESCRIPTOR)


class LayerLines:
    """The lines on which the layers of a file stand, for the errors of those who use them later."""

    def __init__(self, path: str):
        self.path = path
        self._lines: dict[str, list[int]] = {}

    def add(self, layer_name: str, line: int) -> None:
        self._lines.setdefault(layer_name, []).append(line)

    def where(self, layer_name: str, index: int = 0) -> str:
        """`net.prototxt:12`, the line of the index-th layer of that name; the path alone if there is none."""
        lines = self._lines.get(layer_name, [])
        return f"{self.path}:{lines[index]}" if 0 <= index < len(lines) else self.path


def parse_text(text: str, message_class: type[M], path: str = "<text>") -> M:
    """The message that a prototxt text stands for. Raises ParseError."""
    return parse_text_with_lines(text, message_class, path)[0]


def parse_text_with_lines(text: str, message_class: type[M], path: str = "<text>") -> tuple[M, LayerLines]:
    """The message, and the lines of its layers."""
    source = Source(text, path)
    reader = _Reader(source)
    message = message_class()
    reader.fill(message, parse_tree(source))
    return message, reader.lines


def parse_option_block(message: Message, text: str, where: str) -> None:
    """Fill a message from the text of an option block: its field was not known where it was written."""
    source = OptionSource(text, where)
    _Reader(source).fill(message, parse_tree(source))


@dataclass(slots=True)
class _FieldReader:
    """What a field of a message takes: other messages, or scalars through `convert`."""

    is_repeated: bool
    is_required: bool
    convert: Callable[[Scalar | Block, Source], Any] | None


@functools.cache
def _field_readers(descriptor: Descriptor) -> dict[str, _FieldReader]:
    # Labels are read off the proto form: their names on the descriptor differ between protobuf 6 and 7.
    proto = DescriptorProto()
    descriptor.CopyToProto(proto)
    labels = {field.name: field.label for field in proto.field}
    return {
        field.name: _FieldReader(
            is_repeated=labels[field.name] == FieldDescriptorProto.LABEL_REPEATED,
            is_required=labels[field.name] == FieldDescriptorProto.LABEL_REQUIRED,
            convert=None if field.message_type else _converter(field),
        )
        for field in descriptor.fields
    }


def _converter(field: FieldDescriptor) -> Callable[[Scalar | Block, Source], Any]:
    if field.enum_type:
        return functools.partial(_to_enum, field.enum_type)
    if field.type in _INTEGERS:
        low, high = _INTEGERS[field.type]
        return lambda value, source: to_int(value, source, low, high)
    return _OTHERS[field.type]


def _to_enum(enum: EnumDescriptor, value: Scalar | Block, source: Source) -> int:
    if not isinstance(value, Block) and value.kind == "word" and value.text in enum.values_by_name:
        return enum.values_by_name[value.text].number
    if not isinstance(value, Block) and value.kind == "number":
        number = to_int(value, source, *_INTEGERS[FieldDescriptor.TYPE_INT32])
        if number in enum.values_by_number:
            return number
    found = "a block" if isinstance(value, Block) else value.text
    hint = suggestion(found, enum.values_by_name)
    return source.fail(f"expected a {enum.name}, found {found}{hint}", value.offset)


class _Reader:
    """Fills messages from trees."""

    def __init__(self, source: Source):
        self.source = source
        self.lines = LayerLines(source.path)
        self.open_layers = 0

    def fill(self, message: Message, block: Block) -> None:
        descriptor = message.DESCRIPTOR
        readers = _field_readers(descriptor)
        first_set: dict[str, Field] = {}
        for field in block.fields:
            reader = readers.get(field.name)
            if reader is None:
                self.keep_or_refuse(message, field)
                continue
            if reader.is_repeated:
                self.extend(message, field, reader)
                continue
            if field.is_list:
                self.source.fail(f'"{field.name}" is a single value, found a list', field.offset)
            if field.name in first_set:
                line = self.source.line(first_set[field.name].offset)
                self.source.fail(f'"{field.name}" is already set, on line {line}', field.offset)
            first_set[field.name] = field
            self.set(message, field, reader)
        for name, reader in readers.items():
            if reader.is_required and name not in first_set:
                self.source.fail(f'{descriptor.name} needs the field "{name}"', block.offset)

    def set(self, message: Any, field: Field, reader: _FieldReader) -> None:
        (value,) = field.values
        if reader.convert is None:
            child = getattr(message, field.name)
            child.SetInParent()
            self.fill_child(child, value, field)
        elif field.name == "type" and isinstance(value, Scalar) and _is_foreign_v1_type(message, value):
            message.type_name = value.text
        else:
            setattr(message, field.name, reader.convert(value, self.source))

    def extend(self, message: Message, field: Field, reader: _FieldReader) -> None:
        values = getattr(message, field.name)
        for value in field.values:
            if reader.convert is not None:
                values.append(reader.convert(value, self.source))
            else:
                self.fill_child(values.add(), value, field)

    def fill_child(self, child: Message, value: Scalar | Block, field: Field) -> None:
        if isinstance(value, Scalar):
            expected(f'"{{" and the fields of {child.DESCRIPTOR.name}', value, self.source)
        is_layer = child.DESCRIPTOR in _LAYERS
        self.open_layers += is_layer
        self.fill(child, value)
        self.open_layers -= is_layer
        if is_layer and not self.open_layers:  # the layers of a step are inside another
            self.lines.add(_layer_name(child), self.source.line(field.offset))

    def keep_or_refuse(self, message: Any, field: Field) -> None:
        """A `*_param { ... }` of a layer is kept for its class; any other unknown name is a mistake."""
        descriptor = message.DESCRIPTOR
        value = None if field.is_list else field.values[0]
        if descriptor not in _LAYERS or not field.name.endswith("_param") or not isinstance(value, Block):
            hint = _where_it_belongs(field.name, descriptor)
            self.source.fail(f'{descriptor.name} has no field "{field.name}"{hint}', field.offset)
        if any(kept.name == field.name for kept in message.option_block):
            self.source.fail(f'"{field.name}" is already set in this layer', field.offset)
        message.option_block.add(name=field.name, text=write_tree(value))


def _where_it_belongs(name: str, descriptor: Any) -> str:
    """The nearest names of a message; for a layer also those that belong one level down, with their blocks."""
    if descriptor not in _LAYERS:
        return suggestion(name, _field_readers(descriptor))
    own = [known for known in _field_readers(descriptor) if known not in ("option_block", "type_name")]
    blocks_of: dict[str, list[str]] = {}
    for block in descriptor.fields:
        if block.name.endswith("_param"):
            for field in block.message_type.fields:
                blocks_of.setdefault(field.name, []).append(block.name)
    below = nearest(name, blocks_of)
    if nearest(name, own) or not below:
        return suggestion(name, own)
    return f'; did you mean "{below[0]}" in {" or ".join(blocks_of[below[0]][:3])}?'


def _layer_name(layer: Any) -> str:
    is_v0 = layer.DESCRIPTOR is pb.V1LayerParameter.DESCRIPTOR and layer.HasField("layer")
    return layer.layer.name if is_v0 else layer.name


def _is_foreign_v1_type(message: Message, value: Scalar) -> bool:
    """Whether this is the type of a V1 layer that only a fork has: it is kept by name."""
    return (
        message.DESCRIPTOR is pb.V1LayerParameter.DESCRIPTOR
        and value.kind == "word"
        and value.text not in pb.V1LayerParameter.LayerType.DESCRIPTOR.values_by_name
    )


def format_text(message: Message) -> str:
    """A message as prototxt, fields in the order of their numbers, option blocks as the blocks they were."""
    return "".join(_lines(message, ""))


def _lines(message: Message, indent: str) -> Iterator[str]:
    for field, value in message.ListFields():
        for item in value if _field_readers(message.DESCRIPTOR)[field.name].is_repeated else [value]:
            if field.message_type is pb.OptionBlock.DESCRIPTOR:
                if item.name:  # a fork's binary may hold another message under this number
                    body = write_tree(parse_tree(Source(item.text, item.name)), indent + "  ")
                    yield f"{indent}{item.name} {{\n{body}{indent}}}\n"
            elif field.message_type:
                yield f"{indent}{field.name} {{\n"
                yield from _lines(item, indent + "  ")
                yield f"{indent}}}\n"
            elif field.name == "type_name":
                yield f"{indent}type: {item}\n"
            else:
                yield f"{indent}{field.name}: {_scalar(field, item)}\n"


def _scalar(field: FieldDescriptor, value: Any) -> str:
    if field.enum_type:
        return field.enum_type.values_by_number[value].name
    if field.type == FieldDescriptor.TYPE_BOOL:
        return "true" if value else "false"
    if field.type == FieldDescriptor.TYPE_STRING:
        return '"' + text_encoding.CEscape(value, as_utf8=True) + '"'
    if field.type == FieldDescriptor.TYPE_BYTES:
        return '"' + text_encoding.CEscape(value, as_utf8=False) + '"'
    if field.type == FieldDescriptor.TYPE_FLOAT:
        return _shortest_float(value)
    return f"{value:.17g}" if field.type == FieldDescriptor.TYPE_DOUBLE else str(value)


def _shortest_float(value: float) -> str:
    """The fewest digits that give the same float32 back."""
    if not math.isfinite(value):
        return str(value)
    for digits in (6, 7, 8):
        text = f"{value:.{digits}g}"
        if struct.pack("<f", float(text)) == struct.pack("<f", value):
            return text
    return f"{value:.9g}"
