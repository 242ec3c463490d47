"""PairData, SequenceData and SeriesData: padded batches of pairs, labelled sequences and windows of series."""

import json
from itertools import chain

import numpy as np
import pytest
import recaffe
from recaffe.framework.saved_state import pack, unpack
from recaffe.layers.data import sequences
from recaffe.layers.data.vocabulary import Unit, Vocabulary

from tests.layers.data_files import batches, same_batches
from tests.support import make_net

SPECIALS = ["<pad>", "<s>", "</s>"]
PAIRS = [("ab", "BA"), ("c", "CCC"), ("abc", "B"), ("bb", "AB"), ("a", "A"), ("caca", "ACAC"), ("cb", "BC")]
TOPS = {
    "PairData": "source source_lengths target_input target target_lengths",
    "SequenceData": "data label lengths",
    "SeriesData": "data target",
}
BLOCKS = {"PairData": "pair_data_param", "SequenceData": "sequence_data_param", "SeriesData": "series_data_param"}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text("".join(f"{left}\t{right}\n" for left, right in PAIRS))
    (tmp_path / "left.txt").write_text("".join(f"{left}\n" for left, _ in PAIRS))
    (tmp_path / "right.txt").write_text("".join(f"{right}\n" for _, right in PAIRS))
    Vocabulary(Unit.CHAR, ["<pad>", "a", "b", "c"]).save("abc.json")
    Vocabulary(Unit.CHAR, [*SPECIALS, "A", "B", "C"]).save("ABC_special.json")
    (tmp_path / "tags.txt").write_text("".join(f"{'x' * len(left)}\n" for left, _ in PAIRS))
    (tmp_path / "classes.tsv").write_text("".join(f"{left}\t{len(left)}\n" for left, _ in PAIRS))
    (tmp_path / "table.csv").write_text("day,warm,wet\n" + "".join(f"{i},{10 * i},{i % 2}\n" for i in range(8)))


def data_net(layer_type: str, options: str, phase: int = recaffe.TRAIN, tops: str = "") -> recaffe.Net:
    """A net of one layer of sequences."""
    names = " ".join(f"top: '{name}'" for name in (tops or TOPS[layer_type]).split())
    return make_net(f"layer {{ name: 'd' type: '{layer_type}' {names} {BLOCKS[layer_type]} {{ {options} }} }}", phase)


PAIR = "source: 'pairs.tsv' source_vocabulary: 'abc.json' target_vocabulary: 'ABC_special.json' "


def blobs(net: recaffe.Net) -> dict[str, list]:
    """The next batch, as lists."""
    return {name: values.tolist() for name, values in batches(net, 1)[0].items()}


# pairs


def test_pairs_are_padded_and_the_target_is_shifted():
    net = data_net("PairData", PAIR + "batch_size: 3")
    assert blobs(net) == {
        "source": [[1, 3, 1], [2, 0, 2], [0, 0, 3]],
        "source_lengths": [2, 1, 3],
        "target_input": [[1, 1, 1], [4, 5, 4], [3, 5, 0], [0, 5, 0]],
        "target": [[4, 5, 4], [3, 5, 2], [2, 5, -1], [-1, 2, -1]],
        "target_lengths": [3, 4, 2],
    }
    assert [batch["source"].shape for batch in batches(net, 3)] == [(4, 3), (2, 3), (3, 3)]


def test_masks_of_pairs():
    tops = "source source_mask target_input target target_mask"
    batch = blobs(data_net("PairData", PAIR + "batch_size: 3 padding: MASK", tops=tops))
    assert batch["source"] == [[1, 3, 1], [2, 0, 2], [0, 0, 3]]
    assert batch["source_mask"] == [[1, 1, 1], [1, 0, 1], [0, 0, 1]]
    assert batch["target_mask"] == [[1, 1, 1], [1, 1, 1], [1, 1, 0], [0, 1, 0]]


def test_two_files_and_fixed_lengths():
    options = "source: 'left.txt' target: 'right.txt' batch_size: 2 source_length: 4 target_length: 5 ignore_label: 9 "
    net = data_net("PairData", options + "source_vocabulary: 'abc.json' target_vocabulary: 'ABC_special.json'")
    batch = blobs(net)
    assert batch["source"] == [[1, 3], [2, 0], [0, 0], [0, 0]]
    assert batch["target"] == [[4, 5], [3, 5], [2, 5], [9, 2], [9, 9]]
    assert batch["target_input"] == [[1, 1], [4, 5], [3, 5], [0, 5], [0, 0]]


def test_the_source_ends_where_its_vocabulary_has_an_end(tmp_path):
    (tmp_path / "words.tsv").write_text("the cat\tle chat\nthe\tle\n")
    words = Vocabulary(Unit.WORD, [*SPECIALS, "the", "cat", "le", "chat"])
    words.save("words.json")
    batch = blobs(data_net("PairData", "source: 'words.tsv' source_vocabulary: 'words.json' batch_size: 2"))
    assert [words.decode([int(row[n]) for row in batch["source"]]) for n in (0, 1)] == ["the cat\n", "the\n<pad>"]
    assert batch["source_lengths"] == [3, 2]
    assert batch["target_lengths"] == [3, 2]


def read_pairs(net: recaffe.Net, count: int) -> list[list[tuple[int, ...]]]:
    """The sources of ``count`` batches, without padding."""
    return [
        [tuple(batch["source"][: int(length), n]) for n, length in enumerate(batch["source_lengths"])]
        for batch in batches(net, count)
    ]


def test_an_epoch_has_every_pair_once_in_a_new_order():
    recaffe.set_random_seed(2)
    net = data_net("PairData", PAIR + "batch_size: 1 shuffle: true")
    epochs = [[batch[0] for batch in read_pairs(net, 7)] for _ in range(5)]
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1
    test_net = data_net("PairData", PAIR + "batch_size: 7 shuffle: true", recaffe.TEST)
    assert (
        read_pairs(test_net, 1)
        == read_pairs(test_net, 1)
        == read_pairs(data_net("PairData", PAIR + "batch_size: 7"), 1)
    )


def test_sorted_batches_hold_pairs_of_like_length():
    net = data_net("PairData", PAIR + "batch_size: 1 sort_batches: 7")
    lengths = [len(batch[0]) for batch in read_pairs(net, 7)]
    assert lengths == sorted(lengths)
    recaffe.set_random_seed(1)
    shuffled = data_net("PairData", PAIR + "batch_size: 2 sort_batches: 7 shuffle: true")
    pool = read_pairs(shuffled, 7)  # two epochs
    assert sorted(chain(*pool)) == sorted(2 * list(chain(*read_pairs(net, 7))))
    assert sum(abs(len(one) - len(other)) for one, other in pool) <= 3
    assert [len(one) for one, _ in pool] != sorted(len(one) for one, _ in pool)


# labelled sequences


def test_a_label_for_each_sequence():
    options = "source: 'classes.tsv' vocabulary: 'abc.json' batch_size: 3"
    batch = blobs(data_net("SequenceData", options))
    assert batch == {"data": [[1, 3, 1], [2, 0, 2], [0, 0, 3]], "label": [2, 1, 3], "lengths": [2, 1, 3]}
    assert set(blobs(data_net("SequenceData", options, tops="data label"))) == {"data", "label"}


def test_a_label_for_each_step():
    Vocabulary(Unit.CHAR, ["_", "x"]).save("tags.json")
    options = "source: 'left.txt' labels: 'tags.txt' label_vocabulary: 'tags.json' label_each_step: true batch_size: 2"
    batch = blobs(data_net("SequenceData", options + " length: 4"))
    assert batch["data"] == [[97, 99], [98, 0], [0, 0], [0, 0]]
    assert batch["label"] == [[1, 1], [1, -1], [-1, -1], [-1, -1]]
    assert batch["lengths"] == [2, 1]


def test_sequences_of_vectors(tmp_path):
    h5py = pytest.importorskip("h5py")
    x = np.random.default_rng(1).normal(size=(5, 4, 3)).astype(np.float32)
    lengths = np.array([4, 2, 3, 1, 4])
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["data"], file["label"], file["lengths"] = x, np.arange(5), lengths
        file["tags"] = np.arange(20).reshape(5, 4)
    batch = batches(data_net("SequenceData", "source: 'x.h5' batch_size: 3"), 2)
    assert batch[0]["data"].shape == (4, 3, 3)
    for n, i in enumerate((3, 4, 0)):
        np.testing.assert_array_equal(batch[1]["data"][: lengths[i], n], x[i, : lengths[i]])
        assert not batch[1]["data"][lengths[i] :, n].any()
    assert batch[1]["label"].tolist() == [3, 4, 0]
    tagged = data_net("SequenceData", "source: 'x.h5' batch_size: 2 label_each_step: true", tops="data tags")
    assert blobs(tagged)["tags"] == [[0, 4], [1, 5], [2, -1], [3, -1]]
    with h5py.File(tmp_path / "x.h5", "a") as file:
        del file["lengths"]
    assert blobs(data_net("SequenceData", "source: 'x.h5' batch_size: 5"))["lengths"] == [4] * 5


def test_masks_of_sequences():
    options = "source: 'classes.tsv' vocabulary: 'abc.json' batch_size: 3 length: 4 padding: MASK"
    batch = blobs(data_net("SequenceData", options, tops="data label mask"))
    assert batch["mask"] == [[1, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 0]]


STEPS = "walk,x,y,kind\n1,0.5,1,7\n1,1.5,2,7\n4,2.5,3,8\n2,3.5,4,9\n2,4.5,5,9\n2,5.5,6,9\n"
TABLE = "sequence_column: 'walk' label_column: 'kind' batch_size: 3 source: "


def test_sequences_out_of_a_table(tmp_path):
    (tmp_path / "steps.csv").write_text(STEPS)
    batch = blobs(data_net("SequenceData", TABLE + "'steps.csv'"))
    assert batch["data"] == [
        [[0.5, 1], [2.5, 3], [3.5, 4]],
        [[1.5, 2], [0, 0], [4.5, 5]],
        [[0, 0], [0, 0], [5.5, 6]],
    ]
    assert batch["label"] == [7, 8, 9]
    assert batch["lengths"] == [2, 1, 3]


def test_a_label_for_each_row_of_a_table(tmp_path):
    (tmp_path / "steps.csv").write_text(STEPS.replace(",", ";"))
    options = "label_each_step: true columns: 'y' delimiter: ';' sequence_column: 'walk' label_column: 'x'"
    batch = blobs(data_net("SequenceData", options + " source: 'steps.csv' batch_size: 2"))
    assert batch == {"data": [[[1], [3]], [[2], [0]]], "label": [[0.5, 2.5], [1.5, -1]], "lengths": [2, 1]}


def test_sequences_out_of_columns_of_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "steps.h5", "w") as file:
        file["walk"], file["x"], file["kind"] = [0, 0, 1], [1.0, 2.0, 3.0], [5, 5, 6]
    batch = blobs(data_net("SequenceData", TABLE.replace("3", "2") + "'steps.h5'"))
    assert batch == {"data": [[[1], [3]], [[2], [0]]], "label": [5, 6], "lengths": [2, 1]}


# series


def test_windows_of_a_table():
    net = data_net("SeriesData", "source: 'table.csv' target: 'warm' window: 3 stride: 2 horizon: 2 batch_size: 2")
    first, second = batches(net, 2)
    assert first["data"].tolist() == [[[0, 0, 0], [2, 20, 0]], [[1, 10, 1], [3, 30, 1]], [[2, 20, 0], [4, 40, 0]]]
    assert first["target"].tolist() == [[30, 40], [50, 60]]
    np.testing.assert_array_equal(second["target"], first["target"])  # two windows are an epoch


def test_a_target_at_each_step_and_chosen_columns():
    options = "source: 'table.csv' columns: 'wet' columns: 'day' target: 'warm' target_each_step: true"
    batch = blobs(data_net("SeriesData", options + " window: 3 horizon: 2 batch_size: 1"))
    assert batch == {"data": [[[0, 0]], [[1, 1]], [[0, 2]]], "target": [[20], [30], [40]]}


def test_a_table_without_names_and_another_delimiter(tmp_path):
    (tmp_path / "plain.csv").write_text("1;2\n\n3;4\n5;6\n")
    options = "source: 'plain.csv' delimiter: ';' window: 2 batch_size: 1 columns: '1'"
    assert blobs(data_net("SeriesData", options)) == {"data": [[[2]], [[4]]], "target": [[6]]}


def test_no_window_goes_from_file_to_file(tmp_path):
    for i in (0, 1):
        (tmp_path / f"part{i}.csv").write_text("".join(f"{v}\n" for v in range(10 * i, 10 * i + 3)))
    batch = blobs(data_net("SeriesData", "source: 'part*.csv' window: 2 batch_size: 2"))
    assert batch == {"data": [[[0], [10]], [[1], [11]]], "target": [[2], [12]]}


def test_hdf5_columns(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["a"], file["b"], file["image"] = np.arange(4), np.arange(4) * 0.5, np.zeros((4, 2))
    batch = blobs(data_net("SeriesData", "source: 't.h5' target: 'b' window: 3 batch_size: 1"))
    assert batch == {"data": [[[0, 0]], [[1, 0.5]], [[2, 1]]], "target": [[1.5]]}


def test_statistics_of_the_training_part_hold_for_the_test_part(tmp_path):
    values = np.random.default_rng(3).normal(5, 3, size=(20, 2))
    for name, part in (("train.csv", values[:12]), ("test.csv", values[12:])):
        (tmp_path / name).write_text("".join(f"{a!r},{b!r}\n" for a, b in part.tolist()) + "")
    options = "statistics: 's.json' target: '1' window: 4 batch_size: 1 source: "
    train = batches(data_net("SeriesData", options + "'train.csv'"), 1)[0]
    mean, std = values[:12].mean(axis=0), values[:12].std(axis=0)
    scaled = (values - mean) / std
    np.testing.assert_allclose(train["data"][:, 0], scaled[:4], rtol=1e-5)
    test = batches(data_net("SeriesData", options + "'test.csv'", recaffe.TEST), 1)[0]
    np.testing.assert_allclose(test["data"][:, 0], scaled[12:16], rtol=1e-5)
    np.testing.assert_allclose(test["target"][0], scaled[16, 1:], rtol=1e-5)
    assert json.loads((tmp_path / "s.json").read_text())["1"] == pytest.approx({"mean": mean[1], "std": std[1]})


def test_statistics_as_numbers():
    options = "source: 'table.csv' columns: 'warm' target: 'day' window: 2 batch_size: 1 mean: [10, 1] std: [5, 2]"
    assert blobs(data_net("SeriesData", options)) == {"data": [[[-2]], [[0]]], "target": [[0.5]]}


def test_large_offsets_lose_nothing(tmp_path):
    (tmp_path / "big.csv").write_text("".join(f"{1e9 + i}\n" for i in range(5)))
    batch = batches(data_net("SeriesData", "source: 'big.csv' statistics: 's.json' window: 4 batch_size: 1"), 1)[0]
    np.testing.assert_allclose(batch["data"].ravel(), (np.arange(4) - 2) / np.sqrt(2), rtol=1e-6)


# all of them


RESUMED = {
    "pairs": ("PairData", PAIR + "batch_size: 3"),
    "pairs_shuffled": ("PairData", PAIR + "batch_size: 2 shuffle: true"),
    "pairs_sorted": ("PairData", PAIR + "batch_size: 2 shuffle: true sort_batches: 3"),
    "sequences": ("SequenceData", "source: 'classes.tsv' batch_size: 3 shuffle: true"),
    "series": ("SeriesData", "source: 'table.csv' window: 3 batch_size: 2 shuffle: true statistics: 's.json'"),
}


@pytest.mark.parametrize("used", [0, 1, 2, 3, 4, 8])
@pytest.mark.parametrize("name", RESUMED)
def test_a_resumed_net_goes_on_with_the_same_bits(name, used):
    net = data_net(*RESUMED[name])
    batches(net, used)
    state = unpack(*pack(net.get_state()))
    expected = batches(net, 12)
    resumed = data_net(*RESUMED[name])
    batches(resumed, 2)
    resumed.set_state(state)
    same_batches(batches(resumed, 12), expected)


@pytest.mark.parametrize("name", RESUMED)
def test_what_does_not_fit_into_memory_gives_the_same(name, monkeypatch):
    recaffe.set_random_seed(4)
    expected = batches(data_net(*RESUMED[name]), 6)
    monkeypatch.setattr(sequences, "IN_MEMORY", 3)
    recaffe.set_random_seed(4)
    same_batches(batches(data_net(*RESUMED[name]), 6), expected)


def test_a_state_of_fewer_examples_is_refused(tmp_path):
    net = data_net("SequenceData", "source: 'classes.tsv' batch_size: 2")
    batches(net, 3)
    state = net.get_state()
    (tmp_path / "classes.tsv").write_text("a\t1\n")
    with pytest.raises(recaffe.RecaffeError, match=r"layer 'd'.*after record 4, but there are 1"):
        data_net("SequenceData", "source: 'classes.tsv' batch_size: 2").set_state(state)


TEXTS = {
    "empty.txt": "",
    "odd.tsv": "a\tA\nb\n",
    "three.tsv": "a\tA\tA\n",
    "blank.tsv": "a\tA\n\t\n",
    "unknown.tsv": "a\tA\nz\tA\n",
    "short.txt": "A\nB\n",
    "labels.tsv": "ab\t1 2\n",
    "words.tsv": "ab\tred\n",
    "odd.csv": "x,y\n1,2\n3\n",
    "word.csv": "x,y\n1,2\n3,warm\n",
    "nan.csv": "x,y\n1,nan\n",
    "header.csv": "x,y\n",
    "walks.csv": "id,kind,x\n2,1,0\n3,1,0\n3,2,0\n",
    "odd_labels.csv": "id,kind\n3,1\n3,2\n",
    "few.json": '{"day": {"mean": 0, "std": 1}}',
}
ABC = "source_vocabulary: 'abc.json' target_vocabulary: 'ABC_special.json' source: "
FAULTS = {
    "pairs: no vocabulary": ("PairData", "source: 'pairs.tsv'", 'needs the field "source_vocabulary"'),
    "pairs: no file": ("PairData", ABC + "'no.tsv'", "no.tsv: cannot be read: No such file"),
    "pairs: empty": ("PairData", ABC + "'empty.txt'", "empty.txt: the file has no pairs"),
    "pairs: one text": (
        "PairData",
        ABC + "'odd.tsv'",
        "odd.tsv:2: expected two texts with one tab between them, found 'b'",
    ),
    "pairs: three texts": ("PairData", ABC + "'three.tsv'", "three.tsv:1: expected two texts with one tab"),
    "pairs: blank": ("PairData", ABC + "'blank.tsv'", "blank.tsv:2: the left text of the pair is empty"),
    "pairs: unknown": ("PairData", ABC + "'unknown.tsv'", "unknown.tsv:2: the character 'z' is not in the vocabulary"),
    "pairs: lines": (
        "PairData",
        ABC + "'left.txt' target: 'short.txt'",
        "short.txt has 2 lines, left.txt has more",
    ),
    "pairs: no start": (
        "PairData",
        "source: 'pairs.tsv' source_vocabulary: 'abc.json'",
        "abc.json: the vocabulary has no token '<s>'",
    ),
    "pairs: too long": (
        "PairData",
        ABC + "'pairs.tsv' source_length: 2",
        "pairs.tsv:3: the sequence has 3 steps, but source_length is 2",
    ),
    "pairs: no batch": ("PairData", ABC + "'pairs.tsv' batch_size: 0", "batch_size is 0, expected 1 or more"),
    "pairs: no pool": ("PairData", ABC + "'pairs.tsv' sort_batches: 0", "sort_batches is 0, expected 1 or more"),
    "pairs: length": ("PairData", ABC + "'pairs.tsv' target_length: -1", "target_length is -1, expected 0"),
    "sequences: empty": ("SequenceData", "source: 'empty.txt'", "empty.txt: there are no sequences in it"),
    "sequences: two labels": (
        "SequenceData",
        "source: 'labels.tsv'",
        "labels.tsv:1: the sequence has 2 label(s), expected 1",
    ),
    "sequences: tags": (
        "SequenceData",
        "source: 'classes.tsv' label_each_step: true",
        "classes.tsv:1: the sequence has 1 label(s), expected one for each of 2 steps",
    ),
    "sequences: words": (
        "SequenceData",
        "source: 'words.tsv'",
        "words.tsv:1: the labels are 'red', expected whole numbers",
    ),
    "sequences: half a table": ("SequenceData", "source: 'table.csv' sequence_column: 'day'", "needs a label_column"),
    "sequences: no table": (
        "SequenceData",
        "source: 'classes.tsv' label_column: 'kind'",
        "classes.tsv is no table without a sequence_column; remove label_column",
    ),
    "sequences: a table's vocabulary": (
        "SequenceData",
        "source: 'table.csv' sequence_column: 'day' label_column: 'wet' vocabulary: 'abc.json'",
        "table.csv is a table, which has numbers and labels in it; remove vocabulary",
    ),
    "sequences: two labels in a table": (
        "SequenceData",
        "source: 'walks.csv' sequence_column: 'id' label_column: 'kind'",
        "walks.csv: the sequence whose 'id' is 3 has several labels",
    ),
    "sequences: no data in a table": (
        "SequenceData",
        "source: 'odd_labels.csv' sequence_column: 'id' label_column: 'kind'",
        "odd_labels.csv: there is no column of data beside 'id' and 'kind'",
    ),
    "series: none": ("SeriesData", "window: 2", "series_data_param gives no source"),
    "series: no file": ("SeriesData", "source: 'no.csv'", "no.csv: there is no such file"),
    "series: column": ("SeriesData", "source: 'table.csv' columns: 'wram'", "no column 'wram'; did you mean 'warm'?"),
    "series: target": ("SeriesData", "source: 'table.csv' target: 'hot'", "no column 'hot'; it has day, warm, wet"),
    "series: odd": ("SeriesData", "source: 'odd.csv'", "odd.csv:3: 1 columns, expected 2"),
    "series: word": ("SeriesData", "source: 'word.csv'", "word.csv:3: column 'y' is 'warm', expected a number"),
    "series: nan": ("SeriesData", "source: 'nan.csv'", "nan.csv:2: column 'y' is 'nan', expected a number"),
    "series: header": ("SeriesData", "source: 'header.csv'", "header.csv: there are no rows in it"),
    "series: short": ("SeriesData", "source: 'table.csv'", "the longest has 8 rows, window and horizon need 33"),
    "series: window": ("SeriesData", "source: 'table.csv' window: 0", "window is 0, expected 1 or more"),
    "series: means": (
        "SeriesData",
        "source: 'table.csv' mean: 1 std: 1",
        "mean has 1 and std 1 values, expected one for",
    ),
    "series: std": ("SeriesData", "source: 'table.csv' columns: 'wet' mean: 1 std: 0", "std has the value 0"),
    "series: both": ("SeriesData", "source: 'table.csv' mean: 1 statistics: 's.json'", "statistics, or mean and std"),
    "series: delimiter": ("SeriesData", "source: 'table.csv' delimiter: ''", "delimiter is '', expected one character"),
}


@pytest.mark.parametrize("layer_type", ["PairData", "SequenceData", "SeriesData", "TextData"])
def test_a_transformation_is_refused(layer_type):
    tops = " ".join(f"top: '{name}'" for name in TOPS.get(layer_type, "data cont target").split())
    options = PAIR if layer_type == "PairData" else "source: 'left.txt'"
    block = f"{BLOCKS.get(layer_type, 'text_data_param')} {{ {options} }} transform_param {{ scale: 2 }}"
    with pytest.raises(recaffe.RecaffeError, match=f"{layer_type} does not transform its data; remove transform_param"):
        make_net(f"layer {{ name: 'd' type: '{layer_type}' {tops} {block} }}")


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_told_in_one_message(fault, tmp_path):
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    layer_type, options, message = FAULTS[fault]
    with pytest.raises(recaffe.RecaffeError) as raised:
        data_net(layer_type, options)
    assert f"layer 'd' (type '{layer_type}'): " in str(raised.value)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.json", "none.json: the statistics cannot be read"),
        ("few.json", "few.json: expected mean and std of each of"),
    ],
)
def test_statistics_that_are_not_there(name, message, tmp_path):
    (tmp_path / "few.json").write_text(TEXTS["few.json"])
    with pytest.raises(recaffe.RecaffeError, match=message):
        data_net("SeriesData", f"source: 'table.csv' window: 2 statistics: '{name}'", recaffe.TEST)


def test_faulty_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    for name, label, lengths, message in (
        ("label", np.zeros((3, 2)), None, r"dataset 'label' has shape \(3, 2\), expected \(3,\)"),
        ("lengths", np.zeros(3), [1, 5, 2], "row 1 of 'lengths' is 5, expected a whole number of steps from 1 to 4"),
        ("halves", np.zeros(3), [1, 4, 2.5], "row 2 of 'lengths' is 2.5, expected a whole number"),
        ("nan", np.zeros(3), [np.nan, 5, 2], "row 0 of 'lengths' is nan, expected a whole number"),
        ("zero", np.zeros(3), [1, 0, 2], "row 1 of 'lengths' is 0, expected a whole number"),
        ("two", np.zeros(3), [1, 2], "the datasets have different numbers of rows"),
        ("axes", np.zeros(3), np.ones((3, 2)), r"dataset 'lengths' has shape \(3, 2\), expected \(3,\)"),
        ("count", np.zeros(2), None, "the datasets have different numbers of rows"),
    ):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["data"], file["label"] = np.zeros((3, 4)), label
            if lengths is not None:
                file["lengths"] = lengths
        with pytest.raises(recaffe.RecaffeError, match=message):
            data_net("SequenceData", f"source: '{name}.h5'")
    with pytest.raises(recaffe.RecaffeError, match="is HDF5, which has numbers and labels in it; remove vocabulary"):
        data_net("SequenceData", "source: 'label.h5' vocabulary: 'abc.json'")
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["a"], file["b"] = np.array([1.0, np.nan]), np.zeros(2)
    with pytest.raises(recaffe.RecaffeError, match="row 1 of 'a' is nan, expected a number"):
        data_net("SeriesData", "source: 't.h5' window: 1")
