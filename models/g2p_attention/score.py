"""Phoneme and word error rates of pronunciations, one a line for each word of test_words.txt.

    python models/g2p_attention/score.py models/g2p_attention/test_phonemes.txt

A word is compared with the nearest of the pronunciations that the dictionary lists for it.  The phoneme error rate is
the sum of the edit distances over the sum of the lengths of those nearest ones; a word is right at distance zero.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).parent


def edit_distance(a: Sequence[str], b: Sequence[str]) -> int:
    """The fewest insertions, deletions and substitutions that make ``b`` of ``a`` (Levenshtein, 1966)."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def error_rates(guesses: Iterable[str], listed: Iterable[Sequence[str]]) -> tuple[float, float]:
    """The phoneme and the word error rate of each guess against what is listed for its word."""
    errors = phonemes = wrong = words = 0
    for guess, spoken in zip(guesses, listed, strict=True):
        found = [(edit_distance(guess.split(), right.split()), len(right.split())) for right in spoken]
        distance, length = min(found)
        errors, phonemes = errors + distance, phonemes + length
        wrong, words = wrong + (distance > 0), words + 1
    return errors / phonemes, wrong / words


def read_listed(path: Path) -> Mapping[str, list[str]]:
    """The pronunciations of each word of a file of pairs."""
    listed: dict[str, list[str]] = {}
    for line in path.read_text(encoding="ascii").splitlines():
        word, phonemes = line.split("\t")
        listed.setdefault(word, []).append(phonemes)
    return listed


def main(path: str) -> None:
    """Print the error rates of the pronunciations in ``path``."""
    guesses, listed = Path(path).read_text(encoding="ascii").splitlines(), read_listed(FOLDER / "test.tsv")
    if len(guesses) != len(listed):
        sys.exit(f"{path} has {len(guesses)} lines, expected {len(listed)}: one for each word of test_words.txt")
    phoneme_rate, word_rate = error_rates(guesses, listed.values())
    print(f"phoneme error rate {phoneme_rate:.2%}, word error rate {word_rate:.2%}, {len(listed)} words")


if __name__ == "__main__":
    main(sys.argv[1])
