"""Written values as Python values, each with the check its type asks for."""

import re
from typing import NoReturn

from .grammar import Block, Scalar, Source

_TRUE = {"true", "True", "t", "1"}
_FALSE = {"false", "False", "f", "0"}
_NAMED_FLOATS = {"inf", "infinity", "nan", "-inf", "-infinity", "-nan"}
_LITERAL = re.compile(r""""((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'""", re.DOTALL)
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_SIMPLE_ESCAPES = dict(zip(b"abfnrtv\\'\"?", b"\a\b\f\n\r\t\v\\'\"?", strict=True))


def expected(what: str, value: Scalar | Block, source: Source) -> NoReturn:
    """Fail: this value is not what its field holds."""
    found = "a block" if isinstance(value, Block) else value.text
    source.fail(f"expected {what}, found {found}", value.offset)


def to_int(value: Scalar | Block, source: Source, low: int, high: int) -> int:
    """A decimal, hexadecimal (0x1f) or octal (017) integer from low to high."""
    what = f"an integer from {low} to {high}"
    if isinstance(value, Block) or value.kind != "number":
        expected(what, value, source)
    digits = value.text.lower().lstrip("-")
    base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") and digits != "0" else 10
    try:
        number = int(value.text, base)
    except ValueError:
        expected(what, value, source)
    if not low <= number <= high:
        expected(what, value, source)
    return number


def to_float(value: Scalar | Block, source: Source) -> float:
    """A decimal number, with an `f` behind it or not; inf, infinity and nan in any case."""
    if not isinstance(value, Block) and value.kind != "string":
        text = value.text.lower()
        if value.kind == "number" and "x" not in text:
            return float(text.rstrip("f"))
        if text in _NAMED_FLOATS:
            return float(text)
    expected("a number", value, source)


def to_bool(value: Scalar | Block, source: Source) -> bool:
    """true, t, 1, false, f or 0."""
    if not isinstance(value, Block) and value.kind != "string":
        if value.text in _TRUE:
            return True
        if value.text in _FALSE:
            return False
    expected("true or false", value, source)


def to_bytes(value: Scalar | Block, source: Source) -> bytes:
    """A string in quotes with its escapes resolved; adjacent strings are one."""
    if isinstance(value, Block) or value.kind != "string":
        expected("a string in quotes", value, source)
    literals = [double or single for double, single in _LITERAL.findall(value.text)]
    raw = "".join(literals).encode()
    return _ESCAPE.sub(lambda match: _unescaped(match, value, source), raw) if b"\\" in raw else raw


def to_str(value: Scalar | Block, source: Source) -> str:
    """As to_bytes, in UTF-8."""
    try:
        return to_bytes(value, source).decode()
    except UnicodeDecodeError:
        expected("a string in UTF-8", value, source)


def _unescaped(match: re.Match, value: Scalar, source: Source) -> bytes:
    octal, hexadecimal, short, long, simple = match.groups()
    byte = int(octal, 8) if octal else int(hexadecimal, 16) if hexadecimal else None
    code = int(short or long, 16) if short or long else None
    if byte is not None and byte < 256:
        return bytes([byte])
    if code is not None and code < 0x110000 and not 0xD800 <= code < 0xE000:
        return chr(code).encode()
    if simple and simple[0] in _SIMPLE_ESCAPES:
        return bytes([_SIMPLE_ESCAPES[simple[0]]])
    return source.fail(f"{match.group().decode(errors='replace')} is not an escape", value.offset)
