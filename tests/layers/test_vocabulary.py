"""Vocabulary: numbers of tokens and back, and the files it is kept in."""

import numpy as np
import pytest
import recaffe
from recaffe.layers.data.vocabulary import Decoder, Unit, Vocabulary


def test_bytes_are_their_own_numbers():
    vocabulary = Vocabulary()
    text = "h\u00e9\n\u20ac"
    numbers = vocabulary.encode(text)
    assert bytes(numbers.tolist()) == text.encode()
    assert numbers.dtype == np.uint8
    assert len(vocabulary) == 256
    assert vocabulary.decode(numbers) == text


def test_bytes_with_special_tokens_behind_them():
    vocabulary = Vocabulary(Unit.BYTE, ["<pad>", "</s>"])
    assert (vocabulary.number("<pad>"), vocabulary.need("</s>"), len(vocabulary)) == (256, 257, 258)
    assert vocabulary.encode("ab").dtype == np.uint16
    assert vocabulary.decode([97, 257, 98]) == "a</s>b"


def test_characters():
    vocabulary = Vocabulary(Unit.CHAR, ["<unk>", "a", "\u00e9", "\n", "\U0001f600"])
    assert vocabulary.encode("a\u00e9z\n\U0001f600\U0001f601").tolist() == [1, 2, 0, 3, 4, 0]
    assert vocabulary.decode([1, 2, 3, 4]) == "a\u00e9\n\U0001f600"


def test_words_and_the_ends_of_lines():
    vocabulary = Vocabulary(Unit.WORD, ["<unk>", "</s>", "the", "cat"], lower_case=True)
    numbers = vocabulary.encode("The  cat\nTHE dog\n")
    assert numbers.tolist() == [2, 3, 1, 2, 0, 1]
    assert vocabulary.decode(numbers) == "the cat\nthe <unk>\n"
    without_end = Vocabulary(Unit.WORD, ["the", "cat"])
    assert without_end.encode("the\ncat\n").tolist() == [0, 1]
    assert without_end.decode([0, 1]) == "the cat"


def test_a_vocabulary_is_built_from_texts():
    words = Vocabulary.build(Unit.WORD, ["b a b", "c A"], ["<unk>"], lower_case=True)
    assert words.tokens == ["<unk>", "a", "b", "c"]
    assert Vocabulary.build(Unit.WORD, ["b a b", "c"], most=2).tokens == ["b", "a"]
    assert Vocabulary.build(Unit.CHAR, ["cab", "a\n"], ["<pad>"]).tokens == ["<pad>", "\n", "a", "b", "c"]


@pytest.mark.parametrize(
    "vocabulary",
    [
        Vocabulary(Unit.BYTE, ["<s>"]),
        Vocabulary(Unit.CHAR, ["<unk>", "\n", '"', "\u00e9"], lower_case=True),
        Vocabulary(Unit.WORD, ["a", "b"]),
    ],
    ids=lambda vocabulary: vocabulary.unit.name,
)
def test_a_saved_vocabulary_is_the_same(vocabulary, tmp_path):
    vocabulary.save(tmp_path / "v.json")
    read = Vocabulary.load(tmp_path / "v.json")
    assert (read.unit, read.tokens, read.lower_case) == (vocabulary.unit, vocabulary.tokens, vocabulary.lower_case)


def test_a_list_of_words(tmp_path):
    (tmp_path / "words.txt").write_text("<unk>\nthe\ncat\n")
    vocabulary = Vocabulary.load(tmp_path / "words.txt")
    assert (vocabulary.unit, vocabulary.tokens) == (Unit.WORD, ["<unk>", "the", "cat"])


def test_bytes_come_out_as_whole_characters():
    decoder = Decoder(Vocabulary())
    assert [decoder.add(byte) for byte in "a\u20acb".encode()] == ["a", "", "", "\u20ac", "b"]
    assert decoder.add(0xE2) == ""
    assert decoder.add(0x41) == "\ufffdA"
    assert decoder.add(0xE2) == ""
    assert decoder.finish() == "\ufffd"


FAULTS = {
    "no file": (None, "cannot be read: No such file"),
    "not json": ("{", "not a vocabulary in JSON"),
    "other json": ("[1]", 'expected a vocabulary like {"unit": "CHAR"'),
    "other unit": ('{"unit": "LETTER", "tokens": ["a"]}', "unit is 'LETTER', expected one of BYTE, CHAR, WORD"),
    "numbers": ('{"unit": "CHAR", "tokens": [1]}', "tokens is not a list of strings"),
    "none": ('{"unit": "CHAR", "tokens": []}', "the vocabulary has no tokens"),
    "twice": ('{"unit": "CHAR", "tokens": ["a", "b", "a"]}', "the token 'a' stands twice"),
    "two characters": ('{"unit": "CHAR", "tokens": ["ab"]}', "token 0 is 'ab', expected a character"),
    "two words": ('{"unit": "WORD", "tokens": ["x", "a b"]}', "token 1 is 'a b', expected a word without blanks"),
    "bytes": ('{"unit": "BYTE", "tokens": ["x"]}', "token 0 is 'x'; beside bytes there may be <pad>"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_file_is_named(fault, tmp_path):
    text, message = FAULTS[fault]
    if text is not None:
        (tmp_path / "v.json").write_text(text)
    with pytest.raises(recaffe.RecaffeError) as raised:
        Vocabulary.load(tmp_path / "v.json")
    assert str(raised.value).startswith(f"{tmp_path / 'v.json'}: ")
    assert message in str(raised.value)


def test_an_unknown_token_says_its_line():
    with pytest.raises(recaffe.RecaffeError, match="the character 'x' is not in the vocabulary") as raised:
        Vocabulary(Unit.CHAR, ["a", "\n"]).encode("a\na\nax")
    assert raised.value.line == 2
    with pytest.raises(recaffe.RecaffeError, match="the word 'dog' is not in the vocabulary") as raised:
        Vocabulary(Unit.WORD, ["cat"]).encode("cat\ndog")
    assert raised.value.line == 1


def test_a_token_that_is_needed():
    with pytest.raises(recaffe.RecaffeError, match=r"no token '</s>' \(nearest: '<s>'"):
        Vocabulary(Unit.WORD, ["<s>", "cat"]).need("</s>")
