"""The grammar of protobuf's text format: text in, a tree of fields with their places out.

What the fields mean is not known here: text.py fills messages from the tree, options.py dataclasses.
"""

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from .errors import ParseError, RecaffeError

DEEPEST = 100  # blocks within blocks; protobuf's own limit

_TOKEN = re.compile(
    r"""
      (?P<space>   (?: [ \t\r\n\v\f]+ | \#[^\n]* )+ )
    | (?P<word>    [A-Za-z_][A-Za-z0-9_]* )
    | (?P<number>  (?: 0[xX][0-9a-fA-F]+ | (?: [0-9]+\.?[0-9]* | \.[0-9]+ ) (?: [eE][+-]?[0-9]+ )? [fF]? )
                   (?! [A-Za-z0-9_.] ) )
    | (?P<string>  "(?: [^"\\\n] | \\. )*" | '(?: [^'\\\n] | \\. )*' )
    | (?P<mark>    [{}<>\[\]:;,-] )
    """,
    re.VERBOSE,
)
_JUNK = re.compile(r"[A-Za-z0-9_.+]+|.", re.DOTALL)
_CLOSING = {"{": "}", "<": ">"}


@dataclass(slots=True)
class Token:
    kind: str  # word, number, string, mark or end
    text: str
    offset: int


@dataclass(slots=True)
class Scalar:
    """A value as written: `text` has a leading `-` joined on, and adjacent strings with a space between."""

    kind: str  # word, number or string
    text: str
    offset: int


@dataclass(slots=True)
class Field:
    """`name: value`, `name { ... }` or `name: [value, ...]`."""

    name: str
    values: "list[Scalar | Block]"
    is_list: bool
    offset: int


@dataclass(slots=True)
class Block:
    fields: list[Field]
    offset: int


class Source:
    """A text with its path: turns the offset of a token into the file, line and column of an error."""

    def __init__(self, text: str, path: str):
        self.text = text
        self.path = path
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def line(self, offset: int) -> int:
        return bisect.bisect_right(self._line_starts, offset)

    def fail(self, message: str, offset: int) -> NoReturn:
        line = self.line(offset)
        raise ParseError(message, self.path, line, offset - self._line_starts[line - 1] + 1)


class OptionSource(Source):
    """The text of an option block: errors tell where the block stands, as its lines are not the file's."""

    def inside(self, name: str) -> "OptionSource":
        """The same for the values of one of its fields."""
        return OptionSource("", f"{self.path}.{name}")

    def fail(self, message: str, offset: int) -> NoReturn:
        raise RecaffeError(f"{self.path}: {message}")


def parse_tree(source: Source) -> Block:
    """The fields of a whole text."""
    return _Parser(source).whole()


def write_tree(block: Block, indent: str = "") -> str:
    """The fields of a block, one a line, without comments: the form an option block is kept in."""
    return "".join(_written(block, indent))


def _written(block: Block, indent: str) -> Iterator[str]:
    for field in block.fields:
        texts = [value.text for value in field.values if isinstance(value, Scalar)]
        if field.is_list and len(texts) == len(field.values):
            yield f"{indent}{field.name}: [{', '.join(texts)}]\n"
            continue
        for value in field.values:
            if isinstance(value, Block):
                yield f"{indent}{field.name} {{\n{write_tree(value, indent + '  ')}{indent}}}\n"
            else:
                yield f"{indent}{field.name}: {value.text}\n"


def _tokens(source: Source) -> list[Token]:
    tokens, position, text = [], 0, source.text
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            _refuse_character(source, position)
        if match.lastgroup != "space":
            tokens.append(Token(str(match.lastgroup), match.group(), position))
        position = match.end()
    tokens.append(Token("end", "the end of the file", position))
    return tokens


def _refuse_character(source: Source, position: int) -> NoReturn:
    found = _JUNK.findall(source.text, position, position + 40)[0]
    if found in "\"'":
        source.fail("this string is not closed on its line", position)
    if found[0].isdigit() or found[0] == ".":
        source.fail(f"{found} is not a number", position)
    source.fail(f"unexpected {found!r}", position)


class _Parser:
    """One function a rule of the grammar; each starts at its first token and stops behind its last."""

    def __init__(self, source: Source):
        self.source = source
        self.tokens = _tokens(source)
        self.at = 0
        self.depth = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take_if(self, *marks: str) -> bool:
        token = self.tokens[self.at]
        if token.kind == "mark" and token.text in marks:
            self.at += 1
            return True
        return False

    def fail_at_next(self, expected: str) -> NoReturn:
        token = self.next
        found = f'"{token.text}"' if token.kind == "mark" else token.text
        self.source.fail(f"expected {expected}, found {found}", token.offset)

    def whole(self) -> Block:
        fields = self.fields()
        if self.next.kind != "end":
            self.fail_at_next("the name of a field")
        return Block(fields, 0)

    def fields(self) -> list[Field]:
        fields = []
        while self.next.kind == "word":
            fields.append(self.field())
        return fields

    def field(self) -> Field:
        name = self.next
        self.at += 1
        colon = self.take_if(":")
        is_list = self.next.kind == "mark" and self.next.text == "["
        values = self.list_of_values() if is_list else [self.value(name, colon)]
        self.take_if(",", ";")
        return Field(name.text, values, is_list, name.offset)

    def list_of_values(self) -> "list[Scalar | Block]":
        opening = self.next
        self.at += 1
        values: list[Scalar | Block] = []
        if self.take_if("]"):
            return values
        while True:
            values.append(self.value(opening, colon=True))
            if self.take_if("]"):
                return values
            if not self.take_if(","):
                self.fail_at_next('"," or "]"')

    def value(self, name: Token, colon: bool) -> "Scalar | Block":
        token = self.next
        if token.kind == "mark" and token.text in _CLOSING:
            return self.block()
        if not colon:
            self.fail_at_next(f'":" or "{{" after {name.text}')
        if token.kind == "string":
            return self.string()
        if token.kind in ("word", "number"):
            self.at += 1
            return Scalar(token.kind, token.text, token.offset)
        if self.take_if("-"):
            number = self.next
            if number.kind not in ("word", "number"):
                self.fail_at_next('a number after "-"')
            self.at += 1
            return Scalar(number.kind, "-" + number.text, token.offset)
        return self.fail_at_next("a value")

    def string(self) -> Scalar:
        first = self.next
        parts = []
        while self.next.kind == "string":
            parts.append(self.next.text)
            self.at += 1
        return Scalar("string", " ".join(parts), first.offset)

    def block(self) -> Block:
        opening = self.next
        self.at += 1
        self.depth += 1
        if self.depth > DEEPEST:
            self.source.fail(f"more than {DEEPEST} blocks within each other", opening.offset)
        fields = self.fields()
        closing = _CLOSING[opening.text]
        if not self.take_if(closing):
            if self.next.kind == "end":
                self.source.fail(f'this "{opening.text}" is never closed', opening.offset)
            self.fail_at_next(f'the name of a field or "{closing}"')
        self.depth -= 1
        return Block(fields, opening.offset)
