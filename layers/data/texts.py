"""Reading text files: by blocks of whole words, and by pairs of lines."""

import glob
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np

from ...framework.errors import RecaffeError
from .sequences import Sequences, SequenceWriter
from .vocabulary import Unit, UnknownTokenError, Vocabulary

BLOCK = 1 << 20  # bytes that are read at once


def find_files(patterns: Sequence[str]) -> list[str]:
    """The files that ``patterns`` name, each pattern's in the order of their names.  RecaffeError for one without."""
    files = []
    for pattern in patterns:
        found = [pattern] if Path(pattern).is_file() else sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207  a pattern may be absolute
        found = [path for path in found if Path(path).is_file()]
        if not found:
            raise RecaffeError(f"{pattern}: there is no such file")
        files += found
    return files


def read_texts(paths: Sequence[str], vocabulary: Vocabulary) -> Sequences:
    """The tokens of the files, one sequence a file."""
    writer = SequenceWriter(vocabulary.dtype)
    for path in paths:
        for line, text in text_blocks(path, whole_words=vocabulary.unit is Unit.WORD):
            writer.add(encode(vocabulary, text, path, line))
        writer.end_sequence()
    return writer.finish()


def text_blocks(path: str, whole_words: bool) -> Iterator[tuple[int, str]]:
    """The text of a file in pieces, each with the number of its first line.

    They end between words; where no word ends they end between characters, unless ``whole_words``.
    """
    line, rest = 1, b""
    try:
        with Path(path).open("rb") as file:
            while block := file.read(BLOCK):
                block = rest + block
                end = max(block.rfind(b"\n"), block.rfind(b" ")) + 1
                if not end and not whole_words:
                    end = last_character(block)
                block, rest = block[:end], block[end:]
                yield line, decode(block, path, line)
                line += block.count(b"\n")
    except OSError as error:
        raise RecaffeError(f"{path}: cannot be read: {error.strerror}") from None
    if rest:
        yield line, decode(rest, path, line)


def last_character(data: bytes) -> int:
    """Where the last character of ``data``, a text in UTF-8, starts; it may be cut off."""
    start = len(data) - 1
    while start > 0 and data[start] & 0b1100_0000 == 0b1000_0000:  # inside a character of several bytes
        start -= 1
    return start


def decode(data: bytes, path: str, line: int) -> str:
    """``data`` as text; RecaffeError with its line where it is not in UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        byte = data[error.start]
        raise RecaffeError(
            f"{path}:{line}: byte {byte:#04x} is not UTF-8; convert the file, or read its bytes (no vocabulary)"
        ) from None


def encode(vocabulary: Vocabulary, text: str, path: str, line: int = 1) -> np.ndarray:
    """The tokens of ``text``, whose first line is number ``line`` of ``path``."""
    try:
        return vocabulary.encode(text)
    except UnknownTokenError as error:
        raise RecaffeError(f"{path}:{line + error.line}: {error}") from None


class PairLine:
    """The two texts of one line of one file, or of the same line of two files, and where each stands."""

    def __init__(self, line: int, paths: tuple[str, str], texts: tuple[str, str]):
        self.line, self.paths, self.texts = line, paths, texts

    def encode(self, side: int, vocabulary: Vocabulary) -> np.ndarray:
        """The tokens of the text on the left (0) or on the right (1)."""
        tokens = encode(vocabulary, self.texts[side], self.paths[side], self.line)
        if not len(tokens):
            raise RecaffeError(f"{self.where(side)}: the {('left', 'right')[side]} text of the pair is empty")
        return tokens

    def where(self, side: int) -> str:
        """The place for messages."""
        return f"{self.paths[side]}:{self.line}"


def read_pairs(source: str, target: str = "") -> Iterator[PairLine]:
    """The pairs of a file of lines ``left TAB right``, or of two files line by line."""
    if target:
        for number, (left, right) in enumerate(zip_longest(text_lines(source), text_lines(target)), start=1):
            if left is None or right is None:
                shorter, longer = (source, target) if left is None else (target, source)
                raise RecaffeError(f"{shorter} has {number - 1} lines, {longer} has more; each line is half a pair")
            yield PairLine(number, (source, target), (left, right))
        return
    for number, text in enumerate(text_lines(source), start=1):
        texts = text.split("\t")
        if len(texts) != 2:
            raise RecaffeError(f"{source}:{number}: expected two texts with one tab between them, found {text!r}")
        yield PairLine(number, (source, source), (texts[0], texts[1]))


def text_lines(path: str) -> Iterator[str]:
    """The lines of a file without their ends."""
    try:
        with Path(path).open("rb") as file:
            yield from decoded_lines(file, path)
    except OSError as error:
        raise RecaffeError(f"{path}: cannot be read: {error.strerror}") from None


def decoded_lines(lines: Iterable[bytes], path: str) -> Iterator[str]:
    """``lines`` as text without their ends; ``path`` is named in errors."""
    for number, line in enumerate(lines, start=1):
        yield decode(line, path, number).rstrip("\r\n")
