"""CTC: the loss against PyTorch and against the sum over all paths, the decoder, and what cannot be aligned."""

import logging
import re

import numpy as np
import pytest
import recaffe
from recaffe.framework.gradient_check import gradient_check
from recaffe.framework.single_layer import SingleLayer
from recaffe.layers.loss import ctc_greedy_decoder

from tests.reference.ctc import ctc_probability, edit_distance, spelling
from tests.support import GOLDEN, assert_close, backward, make_net

rng = np.random.default_rng(17)


def padded(sequences, fill=-1.0):
    """N x L, filled up behind the end of each."""
    rows = np.full((len(sequences), max(map(len, sequences))), fill)
    for row, labels in zip(rows, sequences, strict=True):
        row[: len(labels)] = labels
    return rows


def test_golden_values_of_pytorch():
    stored = np.load(GOLDEN / "torch" / "ctc_loss.npz")
    x, slopes = stored["in:x"], stored["top_diff:loss"]
    targets, steps = [[1, 2, 2], [3, 1], [4, 4, 4, 1]], np.array([9.0, 6.0, 9.0])
    lengths = np.array([float(len(labels)) for labels in targets])
    single = SingleLayer("type: 'CTCLoss'", [x, steps, lengths, padded(targets).T])
    (loss,) = single.forward()
    assert_close(loss, stored["out:loss"].mean(), 1e-10)
    (dx, *_) = backward(single, [1.0], [True, False, False, False])
    assert_close(dx * 3 * slopes[:, None], stored["in_diff:x"], 1e-10)
    for n, labels in enumerate(targets):
        alone = SingleLayer("type: 'CTCLoss'", [x[: int(steps[n]), n : n + 1], np.array([labels])])
        assert_close(alone.forward()[0], stored["out:loss"][n], 1e-10)
        (dx, _) = backward(alone, [slopes[n]], [True, False])
        assert_close(dx[:, 0], stored["in_diff:x"][: int(steps[n]), n], 1e-10)


@pytest.mark.parametrize("blank", [0, 1, -1])
@pytest.mark.parametrize("labels", [[], [2], [2, 2], [0, 2], [2, 0, 2], [0, 0, 0]])
def test_the_sum_over_all_paths(blank, labels):
    T, C = 5, 4
    labels = [label + (label >= blank) if blank >= 0 else label for label in labels]
    x = rng.normal(size=(T, 1, C))
    single = SingleLayer(
        f"type: 'CTCLoss' ctc_loss_param {{ blank_index: {blank} }}",
        [x, np.array([5.0]), np.array([float(len(labels))]), padded([labels or [0]]).T],
    )
    (loss,) = single.forward()
    assert_close(loss, -np.log(ctc_probability(x[:, 0], labels, blank % C)), 1e-12)
    gradient_check(single.layer.param, single.values)


def test_the_three_forms_of_targets_say_the_same():
    T, N, C = 6, 3, 5
    x = rng.normal(size=(T, N, C))
    labels, steps = [[1, 2, 2], [4], [3, 1]], [6, 3, 5]
    indicators = np.ones((T, N))
    indicators[0] = 0
    indicators[3, 1] = indicators[5, 2] = 0
    by_lengths = [np.array(steps, float), np.array([3.0, 1.0, 2.0]), padded(labels, 4.0).T]
    by_indicators = [indicators, padded(labels).T]
    losses = [SingleLayer("type: 'CTCLoss'", [x, *rest]).forward()[0] for rest in (by_lengths, by_indicators)]
    expected = -np.mean([
        np.log(ctc_probability(x[:t, n], labels[n])) for n, t in enumerate(steps)
    ])  # fmt: skip
    assert_close(losses[0], expected, 1e-12)
    assert_close(losses[1], expected, 1e-12)
    whole = [SingleLayer("type: 'CTCLoss'", [x, padded(labels, fill)]).forward()[0] for fill in (-1.0, 0.0)]
    among = SingleLayer("type: 'CTCLoss'", [x, np.array([[1, 0, 2, 2], [0, 0, 4, 0], [0, 3, 0, 1.0]])]).forward()[0]
    expected = -np.mean([np.log(ctc_probability(x[:, n], labels[n])) for n in range(N)])
    for loss in (*whole, among):
        assert_close(loss, expected, 1e-12)


def test_steps_behind_the_end_have_no_gradient():
    x = rng.normal(size=(5, 2, 4))
    single = SingleLayer("type: 'CTCLoss'", [x, np.array([5.0, 2.0]), np.ones(2), np.array([[1.0, 3.0]])])
    single.forward()
    dx, *_ = backward(single, [1.0], [True, False, False, False])
    assert (dx[2:, 1] == 0).all() and (dx[:, 0] != 0).all() and (dx[:2, 1] != 0).all()
    assert_close(dx.sum(axis=2), np.zeros((5, 2)), 1e-12)


@pytest.mark.parametrize(("normalization", "divisor"), [("VALID", 2), ("FULL", 4), ("BATCH_SIZE", 4), ("NONE", 1)])
def test_a_stream_that_cannot_be_aligned_is_left_out_and_told_once(normalization, divisor, caplog):
    """[1, 1] needs a blank between: three steps.  No step at all aligns with nothing either."""
    x = rng.normal(size=(4, 4, 3))
    bottoms = [x, np.array([2.0, 4.0, 0.0, 3.0]), np.array([2.0, 2.0, 0.0, 2.0]), np.ones((2, 4))]
    single = SingleLayer(f"type: 'CTCLoss' loss_param {{ normalization: {normalization} }}", bottoms)
    with caplog.at_level(logging.WARNING, "recaffe"):
        (loss,) = single.forward()
        single.forward()
    assert [record.getMessage() for record in caplog.records] == [
        "layer 'ctc_loss': 2 of 4 streams have more labels than their steps can spell; they are left out"
    ]
    total = -np.log(ctc_probability(x[:, 1], [1, 1])) - np.log(ctc_probability(x[:3, 3], [1, 1]))
    assert_close(loss, total / divisor, 1e-12)
    dx, *_ = backward(single, [1.0], [True, False, False, False])
    assert (dx[:, [0, 2]] == 0).all() and np.isfinite(dx).all()
    gradient_check(single.layer.param, bottoms)


def test_nothing_to_align_gives_no_loss():
    single = SingleLayer("type: 'CTCLoss'", [rng.normal(size=(1, 1, 3)), np.array([[1.0, 2.0]])])
    assert single.forward()[0] == 0
    dx, _ = backward(single, [1.0], [True, False])
    assert (dx == 0).all()


def test_scores_of_any_size_stay_finite():
    x = 1e4 * rng.normal(size=(8, 2, 5))
    single = SingleLayer("type: 'CTCLoss'", [x, np.array([[1.0, 2.0], [3.0, 3.0]])], dtype=np.float32)
    assert np.isfinite(single.forward()[0])
    dx, _ = backward(single, [1.0], [True, False])
    assert np.isfinite(dx).all()


@pytest.mark.parametrize(
    ("options", "bottoms", "message"),
    [
        ("", [(4, 2), (2, 1)], "has shape (4, 2), expected T x N x C, each 1 or more"),
        ("", [(4, 2, 3), np.ones((3, 1))], "(labels) has shape (3, 1), expected N x L with N = 2"),
        ("", [(4, 2, 3), np.ones((4, 2)), np.ones((1, 3))], "(labels) has shape (1, 3), expected L x N with N = 2"),
        ("", [(4, 2, 3), np.ones((3, 2)), np.ones((1, 2))], "(indicators) has shape (3, 2), expected T x N = (4, 2)"),
        ("", [(4, 2, 3), np.ones(3), np.ones(2), np.ones((1, 2))], "(steps) has shape (3,), expected N = (2,)"),
        ("", [(4, 2, 3), np.ones(2), np.ones(1), np.ones((1, 2))], "(lengths) has shape (1,), expected N = (2,)"),
        ("", [(4, 2, 3), np.array([[1.0], [3.0]])], "label 0 of stream 1 is 3, expected a class from 0 to 2 other"),
        ("", [(4, 2, 3), np.array([[1.0], [1.5]])], "holds 1.5, expected whole numbers"),
        ("", [(4, 2, 3), np.array([5.0, 1.0]), np.ones(2), np.ones((1, 2))], "holds the length 5, expected 0 to 4"),
        ("", [(4, 2, 3), np.ones(2), np.array([1.0, 2.0]), np.ones((1, 2))], "holds the length 2, expected 0 to 1"),
        ("", [(4, 2, 3), np.ones(2), np.ones(2), np.zeros((1, 2))], "label 0 of stream 0 is 0, expected a class"),
        ("blank_index: 3", [(4, 2, 3), np.ones((2, 1))], "the blank is 3, expected a class from 0 to 2, or -1"),
        ("alphabet_size: 4", [(4, 2, 3), np.ones((2, 1))], "alphabet_size is 4, but bottom"),
        ("time_step: 5", [(4, 2, 3), np.ones((2, 1))], "time_step is 5, but bottom"),
        ("output_delay: 1", [(4, 2, 3), np.ones((2, 1))], "output_delay is an option of a fork"),
    ],
)
def test_mistakes(options, bottoms, message):
    bottoms = [np.zeros(shape) if isinstance(shape, tuple) else shape for shape in bottoms]
    with pytest.raises(recaffe.RecaffeError, match=re.escape(message)):
        SingleLayer(f"type: 'CTCLoss' ctc_loss_param {{ {options} }}", bottoms).forward()


def test_labels_have_no_gradient():
    single = SingleLayer("type: 'CTCLoss'", [np.zeros((4, 2, 3)), np.ones((2, 1))])
    single.forward()
    with pytest.raises(recaffe.RecaffeError, match="has no gradient"):
        single.backward([True, True])


@pytest.mark.parametrize("name", ["CtcLoss", "WarpCTC", "WarpCTCLoss"])
def test_the_other_spellings(name):
    bottoms = [rng.normal(size=(5, 2, 4)), np.array([[1.0, 2.0], [3.0, 0.0]])]
    option = "ctc_loss_param { blank_label: 0 alphabet_size: 4 time_step: 5 }"
    single = SingleLayer(f"type: '{name}' {option}", bottoms)
    assert single.loss_tops == [0]
    assert_close(single.forward()[0], SingleLayer("type: 'CTCLoss'", bottoms).forward()[0], 1e-12)
    last = f"type: '{name}' ctc_loss_param {{ blank_label: 3 }}"
    expected = SingleLayer("type: 'CTCLoss' ctc_loss_param { blank_index: -1 }", bottoms).forward()[0]
    assert_close(SingleLayer(last, bottoms).forward()[0], expected, 1e-12)


# decoding


def one_hot(paths, C):
    """Scores T x N x C whose best paths are these (N x T)."""
    return np.eye(C)[np.array(paths)].transpose(1, 0, 2) + 0.1 * rng.random((len(paths[0]), len(paths), C))


PATHS = [[0, 1, 1, 0, 1, 2], [3, 3, 3, 2, 2, 0], [0, 0, 0, 0, 0, 0], [1, 2, 3, 1, 2, 3]]


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("blank", [0, 3, -1])
def test_decoding(merge, blank):
    x = one_hot(PATHS, 4)
    options = f"ctc_decoder_param {{ blank_index: {blank} ctc_merge_repeated: {str(merge).lower()} }}"
    sequences, scores = SingleLayer(f"type: 'CTCGreedyDecoder' top: 'y' top: 's' {options}", [x]).forward()
    for n, path in enumerate(PATHS):
        expected = spelling(path, blank % 4, merge)
        assert list(sequences[:, n]) == expected + [-1] * (6 - len(expected))
    assert_close(scores, -x.max(axis=2).sum(axis=0), 1e-12)


def test_decoding_up_to_where_the_next_sequence_starts():
    x = one_hot(PATHS, 4)
    indicators = np.ones((6, 4))
    indicators[0] = 0
    indicators[3, 0] = indicators[1, 3] = 0
    sequences, scores = SingleLayer("type: 'CTCGreedyDecoder' top: 'y' top: 's'", [x, indicators]).forward()
    assert [list(sequences[:2, n]) for n in range(4)] == [[1, -1], [3, 2], [-1, -1], [1, -1]]
    assert_close(scores[3], -x[0, 3].max(), 1e-12)


def test_accuracy_of_decoding():
    """The paths give [1, 1, 2], [3, 2], nothing, [1, 2, 3, 1, 2, 3]."""
    x, labels = one_hot(PATHS, 4), [[1, 1, 2], [3, 1, 2], [], [1, 2, 3, 1]]
    expected = np.array([(1 + (1 - 1 / 3) + 1 + (1 - 2 / 6)) / 4, 2 / 4])
    (accuracy,) = SingleLayer("type: 'CTCGreedyDecoder' top: 'a'", [x, padded(labels)]).forward()
    assert_close(accuracy, expected, 1e-12)
    sequences, accuracy = SingleLayer("type: 'CTCGreedyDecoder' top: 'y' top: 'a'", [x, padded(labels, 0.0)]).forward()
    assert_close(accuracy, expected, 1e-12)
    assert sequences.shape == (6, 4)
    tops = SingleLayer(
        "type: 'CTCGreedyDecoder' top: 'y' top: 's' top: 'a'", [x, np.ones((6, 4)), padded(labels).T]
    ).forward()
    assert_close(tops[2], expected, 1e-12)


def test_as_many_steps_as_streams_after_other_batches():
    paths = [path[:4] for path in PATHS]
    x, indicators, labels = one_hot(PATHS, 4), np.ones((6, 4)), padded([[1], [3, 2], [], [2, 2, 3, 1]])
    decoder = SingleLayer("type: 'CTCGreedyDecoder' top: 'y' top: 's'", [x, indicators])
    decoder.forward()
    decoder.set_bottoms([one_hot(paths, 4), np.ones((4, 4))])
    assert [list(column[column >= 0]) for column in decoder.run()[0].T] == [[1], [3, 2], [], [1, 2, 3, 1]]
    measure = SingleLayer("type: 'CTCGreedyDecoder' top: 'a'", [x, labels])
    measure.forward()
    measure.set_bottoms([one_hot(paths, 4), labels])
    assert_close(measure.run()[0], np.array([(1 + 1 + 1 + 3 / 4) / 4, 3 / 4]), 1e-12)


def test_edit_distance():
    for _ in range(50):
        a, b = (rng.integers(0, 3, size=rng.integers(0, 7)) for _ in range(2))
        assert ctc_greedy_decoder.edit_distance(a, b) == edit_distance(tuple(a), tuple(b))


def test_mistakes_in_decoding():
    with pytest.raises(recaffe.RecaffeError, match="may be T x N indicators or N x L labels; give three bottoms"):
        SingleLayer("type: 'CTCGreedyDecoder'", [np.zeros((3, 3, 2)), np.ones((3, 3))])
    with pytest.raises(recaffe.RecaffeError, match="an accuracy needs labels"):
        SingleLayer("type: 'CTCGreedyDecoder' top: 'a' top: 'b' top: 'c'", [np.zeros((3, 2, 2))])
    single = SingleLayer("type: 'CTCGreedyDecoder'", [np.zeros((3, 2, 2))])
    with pytest.raises(recaffe.RecaffeError, match="decoded labels have no gradient"):
        single.backward([True])


def test_a_net_learns_to_spell():
    """Each stream shows three patterns for two steps each, in any order; the loss is told the order alone."""
    net = make_net("""
        layer { name: "data" type: "Input" top: "x" top: "labels"
          input_param { shape { dim: 6 dim: 8 dim: 5 } shape { dim: 8 dim: 3 } } }
        layer { name: "scores" type: "InnerProduct" bottom: "x" top: "scores"
          inner_product_param { num_output: 4 axis: 2 weight_filler { type: "xavier" } } }
        layer { name: "loss" type: "WarpCTCLoss" bottom: "scores" bottom: "labels" top: "loss" }
        layer { name: "acc" type: "CTCGreedyDecoder" bottom: "scores" bottom: "labels" top: "acc" }
    """)
    patterns = rng.normal(size=(3, 5))
    for _ in range(300):
        order = np.array([rng.permutation(3) for _ in range(8)])
        x = np.repeat(patterns[order], 2, axis=1).transpose(1, 0, 2)
        net.blobs["x"].data[...], net.blobs["labels"].data[...] = x, order + 1
        net.clear_param_diffs()
        net.forward_backward()
        for blob in net.learnable_params:
            blob.data[...] -= 0.3 * blob.diff
    assert net.blobs["acc"].data[1] == 1
