"""Vocabulary: text as numbers of tokens, and back."""

import codecs
import enum
import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ...framework.errors import RecaffeError
from ...proto import atomic_write, nearest

PAD, START, END, UNKNOWN = SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")
BYTES = 256


class Unit(enum.Enum):
    """What one token of a text is."""

    BYTE = "byte"
    CHAR = "character"
    WORD = "word"


class UnknownTokenError(RecaffeError):
    """A token that the vocabulary lacks; ``line`` counts the lines of the text before it."""

    def __init__(self, token: str, unit: Unit, line: int):
        super().__init__(f"the {unit.value} {token!r} is not in the vocabulary, which has no {UNKNOWN} either")
        self.line = line


class Vocabulary:
    """Tokens by number.

    - BYTE: each byte of the text in UTF-8 is its own number; ``tokens`` come after, from 256 on
    - CHAR: each character is looked up in ``tokens``
    - WORD: each word between blanks is looked up in ``tokens``; where ``</s>`` is one, so is each end of a line

    Some tokens have a meaning: ``<pad>``, ``<s>`` and ``</s>`` (start and end), ``<unk>`` (whatever is no token).
    ``lower_case``: text is read in lower case.
    """

    def __init__(self, unit: Unit = Unit.BYTE, tokens: Iterable[str] = (), lower_case: bool = False):
        self.unit, self.tokens, self.lower_case = unit, list(tokens), lower_case
        self._first = BYTES if unit is Unit.BYTE else 0
        self._numbers = {token: number for number, token in enumerate(self.tokens, start=self._first)}
        self._check()
        self._of_code = self._code_table() if unit is Unit.CHAR else None

    @classmethod
    def build(
        cls,
        unit: Unit,
        texts: Iterable[str],
        specials: Iterable[str] = (),
        most: int | None = None,
        lower_case: bool = False,
    ) -> "Vocabulary":
        """The vocabulary of ``texts``: the specials, then words from the commonest on, or characters in their order.

        With ``most``, only so many of the commonest words or characters are kept.
        """
        counts: Counter[str] = Counter()
        if unit is not Unit.BYTE:
            for text in texts:
                text = text.lower() if lower_case else text
                counts.update(text.split() if unit is Unit.WORD else text)
        specials = list(specials)
        found = [token for token, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
        found = [token for token in found if token not in specials][:most]
        return cls(unit, [*specials, *(found if unit is Unit.WORD else sorted(found))], lower_case)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Vocabulary":
        """Read what ``save`` wrote, or a list of words, one a line, in a file that does not end in .json."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise RecaffeError(f"{path}: the vocabulary cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise RecaffeError(f"{path}: the vocabulary is not a text in UTF-8") from None
        try:
            if Path(path).suffix == ".json":
                return cls._from_json(text)
            return cls(Unit.WORD, text.removesuffix("\n").split("\n"))
        except RecaffeError as error:
            raise RecaffeError(f"{path}: {error}") from None

    @classmethod
    def _from_json(cls, text: str) -> "Vocabulary":
        try:
            stored = json.loads(text)
        except ValueError as error:
            raise RecaffeError(f"not a vocabulary in JSON: {error}") from None
        form = '{"unit": "CHAR", "lower_case": false, "tokens": ["<unk>", "a", "b"]}'
        if not isinstance(stored, dict) or not {"unit", "tokens"} <= stored.keys() <= {"unit", "tokens", "lower_case"}:
            raise RecaffeError(f"expected a vocabulary like {form}")
        unit, tokens = stored["unit"], stored["tokens"]
        if unit not in list(Unit.__members__):
            raise RecaffeError(f"unit is {unit!r}, expected one of {', '.join(Unit.__members__)}")
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise RecaffeError(f"tokens is not a list of strings; expected a vocabulary like {form}")
        return cls(Unit[unit], tokens, bool(stored.get("lower_case", False)))

    def save(self, path: str | os.PathLike) -> None:
        """Write the vocabulary as JSON; the name must end in .json for ``load``."""
        stored = {"unit": self.unit.name, "lower_case": self.lower_case, "tokens": self.tokens}
        with atomic_write(path) as file:
            file.write(json.dumps(stored, ensure_ascii=False, indent=0).encode() + b"\n")

    def __len__(self) -> int:
        return self._first + len(self.tokens)

    def number(self, token: str) -> int | None:
        """The number of the token of that name, or None."""
        return self._numbers.get(token)

    def need(self, token: str) -> int:
        """The number of the token of that name; RecaffeError without one."""
        number = self.number(token)
        if number is None:
            close = nearest(token, self.tokens)
            hint = f" (nearest: {', '.join(map(repr, close))})" if close else ""
            raise RecaffeError(f"the vocabulary has no token {token!r}{hint}")
        return number

    @property
    def dtype(self) -> np.dtype:
        """The smallest type of integers that holds every number."""
        return np.min_scalar_type(max(len(self) - 1, 0))

    def encode(self, text: str) -> np.ndarray:
        """The numbers of the tokens of ``text``.  Raises UnknownTokenError without ``<unk>``."""
        if self.lower_case:
            text = text.lower()
        if self.unit is Unit.BYTE:
            return np.frombuffer(text.encode("utf-8", "surrogateescape"), np.uint8).astype(self.dtype)
        if self.unit is Unit.WORD:
            return self._encode_words(text)
        assert self._of_code is not None
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        numbers = self._of_code[np.minimum(codes, len(self._of_code) - 1)]
        if numbers.size and numbers.min() < 0:
            place = int(numbers.argmin())
            raise UnknownTokenError(text[place], self.unit, text.count("\n", 0, place))
        return numbers.astype(self.dtype)

    def _encode_words(self, text: str) -> np.ndarray:
        unknown, end = self._numbers.get(UNKNOWN, -1), self._numbers.get(END)
        numbers: list[int] = []
        for line, words in enumerate(text.split("\n")):
            if line and end is not None:
                numbers.append(end)
            for word in words.split():
                number = self._numbers.get(word, unknown)
                if number < 0:
                    raise UnknownTokenError(word, self.unit, line)
                numbers.append(number)
        return np.array(numbers, self.dtype)

    def decode(self, numbers: Iterable[int]) -> str:
        """The text of the tokens."""
        decoder = Decoder(self)
        return "".join([decoder.add(number) for number in numbers]) + decoder.finish()

    def token(self, number: int) -> str:
        """The name of the token ``number`` (not of a byte)."""
        return self.tokens[number - self._first]

    def _check(self) -> None:
        if len(self._numbers) < len(self.tokens):
            twice = next(token for token, count in Counter(self.tokens).items() if count > 1)
            raise RecaffeError(f"the token {twice!r} stands twice in the vocabulary")
        if self.unit is not Unit.BYTE and not self.tokens:
            raise RecaffeError("the vocabulary has no tokens")
        for number, token in enumerate(self.tokens):
            if token in SPECIALS:
                continue
            if self.unit is Unit.BYTE:
                raise RecaffeError(f"token {number} is {token!r}; beside bytes there may be {', '.join(SPECIALS)}")
            if self.unit is Unit.CHAR and len(token) != 1:
                raise RecaffeError(f"token {number} is {token!r}, expected a character or {', '.join(SPECIALS)}")
            if self.unit is Unit.WORD and token.split() != [token]:
                raise RecaffeError(f"token {number} is {token!r}, expected a word without blanks in it")

    def _code_table(self) -> np.ndarray:
        """The number of each character by its code; the last entry is for all codes from there on."""
        codes = {ord(token): number for token, number in self._numbers.items() if len(token) == 1}
        table = np.full(max(codes, default=0) + 2, self._numbers.get(UNKNOWN, -1), np.int64)
        for code, number in codes.items():
            table[code] = number
        return table


class Decoder:
    """Text from tokens that come one by one; a character of several bytes comes out once it is whole."""

    def __init__(self, vocabulary: Vocabulary):
        self._vocabulary = vocabulary
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._inside_line = False

    def add(self, number: int) -> str:
        """The text that ``number`` adds."""
        vocabulary = self._vocabulary
        if vocabulary.unit is Unit.BYTE:
            if number < BYTES:
                return self._bytes.decode(bytes((number,)))
            return self.finish() + vocabulary.token(number)
        token = vocabulary.token(number)
        if vocabulary.unit is Unit.CHAR:
            return token
        blank = " " if self._inside_line and token != END else ""
        self._inside_line = token != END
        return "\n" if token == END else blank + token

    def finish(self) -> str:
        """What is left of bytes that are no whole character."""
        rest = self._bytes.decode(b"", final=True)
        self._bytes.reset()
        return rest


def open_vocabulary(path: str) -> Vocabulary:
    """The vocabulary in the file ``path``, and bytes where no file is named."""
    return Vocabulary.load(path) if path else Vocabulary()
