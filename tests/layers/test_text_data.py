"""TextData: streams that go on from batch to batch, with the right marks and targets."""

import numpy as np
import pytest
import recaffe
from recaffe.framework.saved_state import pack, unpack
from recaffe.layers.data import sequences
from recaffe.layers.data import texts as text_files
from recaffe.layers.data.vocabulary import Unit, Vocabulary

from tests.layers.data_files import batches, same_batches
from tests.support import make_net

FILES = {"a.txt": "abcdefghij", "b.txt": "KLMNOP", "c.txt": "xyz", "empty.txt": ""}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)


def text_net(options: str, phase: int = recaffe.TRAIN) -> recaffe.Net:
    """A net of one TextData layer."""
    tops = "top: 'data' top: 'cont' top: 'target'"
    return make_net(f"layer {{ name: 'd' type: 'TextData' {tops} text_data_param {{ {options} }} }}", phase)


def streams(net: recaffe.Net, count: int, vocabulary: Vocabulary | None = None) -> list[tuple[str, str, str]]:
    """What each stream read in ``count`` batches: the text, its marks, the targets."""
    vocabulary = vocabulary or Vocabulary()
    read = batches(net, count)
    data, cont, target = (np.concatenate([one[top] for one in read]).astype(int) for top in ("data", "cont", "target"))
    return [
        (vocabulary.decode(data[:, n]), "".join(map(str, cont[:, n])), vocabulary.decode(target[:, n]))
        for n in range(data.shape[1])
    ]


def test_streams_go_on_from_batch_to_batch_and_epoch_to_epoch():
    net = text_net("source: 'a.txt' steps: 2 streams: 2")
    assert streams(net, 3) == [
        ("abcdab", "011101", "bcdebc"),
        ("efghef", "011101", "fghifg"),
    ]


def test_files_are_one_text():
    net = text_net("source: 'a.txt' source: 'empty.txt' source: 'b.txt' source: 'c.txt' steps: 18 streams: 1")
    assert streams(net, 1) == [("abcdefghijKLMNOPxy", "0" + 17 * "1", "bcdefghijKLMNOPxyz")]


def test_documents_keep_to_themselves():
    net = text_net("source: '*.txt' documents: true steps: 8 streams: 2")
    assert streams(net, 1) == [
        ("abcdefgh", "01111111", "bcdefghi"),
        ("iKLMNOxy", "00111101", "jLMNOPyz"),
    ]
    assert net.blobs["cont"].data.dtype == np.float32


def test_patterns_and_lists_of_files(tmp_path):
    (tmp_path / "files.txt").write_text("b.txt\n\nc.txt\n")
    assert streams(text_net("source: '[ab].txt' steps: 15 streams: 1"), 1)[0][0] == "abcdefghijKLMNO"
    assert streams(text_net("source_list: 'files.txt' steps: 8 streams: 1"), 1)[0][0] == "KLMNOPxy"


def test_shuffled_files_come_in_a_new_order_each_epoch():
    net = text_net("source: '[abc].txt' documents: true shuffle: true steps: 16 streams: 1")
    seen = {streams(net, 1)[0][0] for _ in range(30)}
    parts = ("abcdefghi", "KLMNO", "xy")
    assert {"".join(sorted(text)) for text in seen} == {"".join(sorted("".join(parts)))}
    assert all(part in text for text in seen for part in parts)
    assert len(seen) == 6


def test_the_test_phase_does_not_shuffle():
    net = text_net("source: '[abc].txt' shuffle: true steps: 18 streams: 1", recaffe.TEST)
    assert [streams(net, 1)[0][0] for _ in range(2)] == ["abcdefghijKLMNOPxy"] * 2


@pytest.mark.parametrize("size", [4, text_files.BLOCK])
def test_characters_and_words(tmp_path, monkeypatch, size):
    monkeypatch.setattr(text_files, "BLOCK", size)
    text = "the \u00e9 cat\nthe dog \u20ac\n"
    (tmp_path / "words").write_text(text, encoding="utf-8")
    characters = Vocabulary.build(Unit.CHAR, [text])
    characters.save("chars.json")
    net = text_net(f"source: 'words' vocabulary: 'chars.json' steps: {len(text) - 1} streams: 1")
    assert streams(net, 1, characters) == [(text[:-1], "0" + "1" * (len(text) - 2), text[1:])]
    words = Vocabulary.build(Unit.WORD, [text], ["</s>"])
    words.save("words.json")
    net = text_net("source: 'words' vocabulary: 'words.json' steps: 7 streams: 1")
    assert streams(net, 1, words)[0][0] == "the \u00e9 cat\nthe dog \u20ac"


def test_a_text_without_blanks_is_read_in_pieces(tmp_path, monkeypatch):
    text = "a\u00e9\u20ac\U0001f600" * 9
    (tmp_path / "long").write_text(text, encoding="utf-8")
    for size in range(1, 12):
        monkeypatch.setattr(text_files, "BLOCK", size)
        pieces = [piece for _, piece in text_files.text_blocks("long", whole_words=False)]
        assert "".join(pieces) == text
        assert max(len(piece.encode()) for piece in pieces) < size + 4
        assert [piece for _, piece in text_files.text_blocks("long", whole_words=True) if piece] == [text]


def test_many_tokens_lie_in_a_file(monkeypatch):
    Vocabulary.build(Unit.CHAR, FILES.values()).save("v.json")
    expected = batches(text_net("source: '[abc].txt' vocabulary: 'v.json' steps: 5 streams: 2"), 5)
    monkeypatch.setattr(sequences, "IN_MEMORY", 3)
    same_batches(batches(text_net("source: '[abc].txt' vocabulary: 'v.json' steps: 5 streams: 2"), 5), expected)


RESUMED = {
    "bytes": "source: '[abc].txt' steps: 3 streams: 2",
    "documents": "source: '[abc].txt' steps: 4 streams: 3 documents: true",
    "shuffled": "source: '[abc].txt' steps: 4 streams: 2 documents: true shuffle: true",
    "characters": "source: '[abc].txt' vocabulary: 'v.json' steps: 3 streams: 2 shuffle: true",
}


@pytest.mark.parametrize("used", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("name", RESUMED)
def test_a_resumed_net_goes_on_with_the_same_bits(name, used):
    Vocabulary.build(Unit.CHAR, FILES.values()).save("v.json")
    net = text_net(RESUMED[name])
    batches(net, used)
    state = unpack(*pack(net.get_state()))
    expected = batches(net, 9)
    resumed = text_net(RESUMED[name])
    batches(resumed, 2)
    resumed.set_state(state)
    same_batches(batches(resumed, 9), expected)


def test_a_state_of_another_text_is_refused():
    state = text_net("source: 'a.txt' streams: 1").get_state()
    with pytest.raises(recaffe.RecaffeError, match=r"layer 'd'.*streams of 9 steps, but they have 5 now"):
        text_net("source: 'b.txt' streams: 1").set_state(state)


def test_a_net_learns_what_follows(tmp_path):
    """A table of pairs of characters, trained on the layer's batches, comes to the shares in the text."""
    (tmp_path / "ab").write_text("abac" * 20)
    net = make_net("""
        layer { name: "d" type: "TextData" top: "data" top: "cont" top: "target"
                text_data_param { source: "ab" steps: 8 streams: 2 } }
        layer { name: "e" type: "Embed" bottom: "data" top: "s"
                embed_param { input_dim: 256 num_output: 256 bias_term: false } }
        layer { name: "l" type: "SoftmaxWithLoss" bottom: "s" bottom: "target" top: "loss" softmax_param { axis: 2 } }
    """)
    for _ in range(200):
        net.clear_param_diffs()
        net.forward_backward()
        net.params["e"][0].data[...] -= 2 * net.params["e"][0].diff
    p = np.exp(net.params["e"][0].data[ord("a")])
    np.testing.assert_allclose(p[[ord("b"), ord("c")]] / p.sum(), 0.5, atol=0.1)


SOLVER = """
net_param {
  layer { name: "d" type: "TextData" top: "data" top: "cont" top: "target"
          text_data_param { source: "[abc].txt" documents: true shuffle: true steps: 3 streams: 2 } }
  layer { name: "e" type: "Embed" bottom: "data" top: "e"
          embed_param { input_dim: 256 num_output: 4 weight_filler { type: "gaussian" std: 1 } } }
  layer { name: "r" type: "LSTM" bottom: "e" bottom: "cont" top: "r"
          recurrent_param { num_output: 5 weight_filler { type: "gaussian" std: 0.5 } } }
  layer { name: "s" type: "InnerProduct" bottom: "r" top: "s"
          inner_product_param { axis: 2 num_output: 256 weight_filler { type: "xavier" } } }
  layer { name: "l" type: "SoftmaxWithLoss" bottom: "s" bottom: "target" top: "loss" softmax_param { axis: 2 } }
}
type: "Adam" base_lr: 0.01 momentum: 0.9 lr_policy: "fixed" max_iter: 12 snapshot: 7 snapshot_prefix: "s" random_seed: 1
display: 0 solver_mode: CPU
"""


def test_a_training_that_was_stopped_gives_the_same_bits(tmp_path):
    (tmp_path / "solver.prototxt").write_text(SOLVER)
    whole = recaffe.get_solver("solver.prototxt")
    whole.solve()
    resumed = recaffe.get_solver("solver.prototxt")
    resumed.restore("s_iter_7.solverstate")
    resumed.solve()
    for name, expected in whole.net.params.items():
        for i, blob in enumerate(expected):
            np.testing.assert_array_equal(resumed.net.params[name][i].data, blob.data, err_msg=f"{name} {i}")


FAULTS = {
    "no source": ("steps: 2", "text_data_param gives no source"),
    "no such file": ("source: 'd.txt'", "d.txt: there is no such file"),
    "empty": ("source: 'empty.txt'", "empty.txt: the text has 0 tokens: too few for 32 stream"),
    "too short": ("source: 'c.txt' streams: 3", "c.txt: the text has 3 tokens: too few for 3 stream"),
    "all too short": ("source: '[ce]*.txt' streams: 3", "c.txt and 1 more: the text has 3 tokens: too few for 3"),
    "no steps": ("source: 'a.txt' steps: 0", "steps is 0, expected 1 or more"),
    "no streams": ("source: 'a.txt' streams: 0", "streams is 0, expected 1 or more"),
    "one file": ("source: 'a.txt' shuffle: true streams: 1", "shuffle gives the files a new order each epoch, but"),
    "no vocabulary": ("source: 'a.txt' vocabulary: 'v.json'", "v.json: the vocabulary cannot be read"),
    "unknown": ("source: 'ab.txt' vocabulary: 'ab.json'", "ab.txt:2: the character 'c' is not in the vocabulary"),
    "not utf-8": ("source: 'latin.txt' vocabulary: 'ab.json'", "latin.txt:2: byte 0xe9 is not UTF-8"),
    "misspelt": ("sourec: 'a.txt'", 'has no field "sourec"; did you mean "source"?'),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_told_in_one_message(fault, tmp_path):
    (tmp_path / "ab.txt").write_text("ab\nac")
    (tmp_path / "latin.txt").write_bytes(b"ab\n\xe9")
    Vocabulary(Unit.CHAR, ["a", "b", "\n"]).save("ab.json")
    options, message = FAULTS[fault]
    with pytest.raises(recaffe.RecaffeError) as raised:
        text_net(options)
    assert "layer 'd' (type 'TextData'): " in str(raised.value)
    assert message in str(raised.value)
