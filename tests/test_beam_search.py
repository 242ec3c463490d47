"""Beam search: against all sequences there are, and against the best token taken each time."""

import itertools

import numpy as np
import pytest
from recaffe import RecaffeError
from recaffe.framework.beam_search import BeamSearch, best_continuations, log_softmax

START, END, K = 0, 1, 4  # two more tokens: 2 and 3
LONGEST = 5


class ToyScorer:
    """A recurrent net with random weights; stream n belongs to source n // copies and starts from its own state."""

    def __init__(self, sources: int, copies: int, seed: int = 0):
        rng = np.random.default_rng(seed)
        self.first = rng.normal(size=(sources, 6))
        self.W, self.U, self.V = rng.normal(size=(6, 6)), 2 * rng.normal(size=(K, 6)), 1.5 * rng.normal(size=(6, K))
        self.states = np.repeat(self.first, copies, axis=0)
        self.steps = 0

    def feed(self, tokens):
        (row,) = tokens
        assert len(row) == len(self.states)
        self.states = np.tanh(self.states @ self.W + self.U[row])
        self.steps += 1
        return self.states @ self.V + 7.0  # scores are logarithms but for a constant

    def select_streams(self, order):
        self.states = self.states[order]

    def log_probability(self, source: int, tokens) -> float:
        """log P of a whole sequence, one token after the other."""
        state, total = self.first[source], 0.0
        for before, token in itertools.pairwise([START, *tokens]):
            state = np.tanh(state @ self.W + self.U[before])
            scores = state @ self.V
            total += scores[token] - np.log(np.exp(scores).sum())
        return total


def search(beam: int, sources: int = 3, seed: int = 0, longest: int = LONGEST, **options):
    scorer = ToyScorer(sources, beam, seed)
    found = BeamSearch(START, END, beam, never=[START], **options).run(scorer, np.full(sources, longest))
    return scorer, found


def every_text():
    """All sequences of at most LONGEST tokens that end, without their end."""
    for length in range(LONGEST):
        yield from itertools.product((2, 3), repeat=length)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_as_large_as_the_space_finds_the_best(seed, length_penalty):
    scorer, found = search(100, seed=seed, length_penalty=length_penalty, n_best=5)
    for source, hypotheses in enumerate(found):
        expected = []
        for text in every_text():
            log_probability = scorer.log_probability(source, [*text, END])
            expected.append((log_probability / ((5 + len(text) + 1) / 6) ** length_penalty, log_probability, text))
        expected.sort(reverse=True)
        assert [hypothesis.tokens for hypothesis in hypotheses] == [text for _, _, text in expected[:5]]
        for hypothesis, (score, log_probability, _) in zip(hypotheses, expected, strict=False):
            assert hypothesis.ended
            assert hypothesis.score == pytest.approx(score, rel=1e-12)
            assert hypothesis.log_probability == pytest.approx(log_probability, rel=1e-12)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6])
@pytest.mark.parametrize("seed", range(6))
def test_a_beam_of_one_takes_the_best_token_each_time(seed, length_penalty):
    scorer, found = search(1, seed=seed, longest=12, length_penalty=length_penalty)
    for source, (hypothesis,) in enumerate(found):
        tokens = []
        while len(tokens) < 12 and END not in tokens:
            after = [scorer.log_probability(source, [*tokens, token]) for token in range(K)]
            after[START] = -np.inf
            tokens.append(int(np.argmax(after)))
        assert hypothesis.ended == (END in tokens)
        assert hypothesis.tokens == tuple(token for token in tokens if token != END)
        assert hypothesis.log_probability == pytest.approx(scorer.log_probability(source, tokens), rel=1e-12)


@pytest.mark.parametrize("beam", [1, 2, 3, 5])
def test_each_sequence_is_searched_on_its_own(beam):
    _, together = search(beam, sources=4, n_best=beam)
    for source in range(4):
        alone = ToyScorer(4, 1)
        alone.states = np.repeat(alone.first[source : source + 1], beam, axis=0)
        (found,) = BeamSearch(START, END, beam, n_best=beam, never=[START]).run(alone, np.array([LONGEST]))
        assert [hypothesis.tokens for hypothesis in found] == [hypothesis.tokens for hypothesis in together[source]]


def test_a_wider_beam_never_scores_worse_than_what_it_contains():
    best = [[found[0].score for found in search(beam, n_best=1, length_penalty=0.6)[1]] for beam in (1, 100)]
    assert all(wide >= narrow for narrow, wide in zip(*best, strict=True))


class FixedScorer:
    """The same log P for each token at every step, whatever was read."""

    def __init__(self, probabilities):
        self.scores = np.log(probabilities)
        self.steps = 0

    def feed(self, tokens):
        self.steps += 1
        return np.tile(self.scores, (tokens.shape[1], 1))

    def select_streams(self, order):
        """All streams are the same."""


def test_scores_are_those_of_the_formula():
    scorer = FixedScorer([0.0001, 0.5, 0.3, 0.1999])
    (found,) = BeamSearch(START, END, 2, length_penalty=0.6, n_best=2).run(scorer, np.array([9]))
    assert [hypothesis.tokens for hypothesis in found] == [(), (2,)]
    assert [hypothesis.log_probability for hypothesis in found] == pytest.approx([-0.69314718, -1.89711998])
    assert [hypothesis.score for hypothesis in found] == pytest.approx([-0.69314718, -1.72953], rel=1e-5)


def test_the_search_ends_when_no_beginning_can_win():
    scorer = FixedScorer([0.01, 0.9, 0.05, 0.04])
    BeamSearch(START, END, 4, length_penalty=0.6).run(scorer, np.array([20]))
    assert scorer.steps == 1  # log 0.05 / (25 / 6)^0.6 is less than log 0.9
    scorer = FixedScorer([0.01, 0.4, 0.35, 0.24])
    BeamSearch(START, END, 4, length_penalty=2.0).run(scorer, np.array([20]))
    assert scorer.steps > 1  # a longer one may


def test_at_the_most_tokens_beginnings_stand_behind_what_has_ended():
    scorer = FixedScorer([1e-9, 0.1, 0.8, 0.1])
    (found,) = BeamSearch(START, END, 3, length_penalty=0.0, n_best=3).run(scorer, np.array([2]))
    assert [(hypothesis.tokens, hypothesis.ended) for hypothesis in found] == [
        ((), True),
        ((2,), True),
        ((2, 2), False),
    ]
    assert found[2].log_probability == pytest.approx(2 * np.log(0.8))
    assert found[2].score > found[1].score


def test_every_sequence_has_a_length_of_its_own():
    scorer = FixedScorer([1e-9, 1e-9, 0.5, 0.5])
    found = BeamSearch(START, END, 1).run(scorer, np.array([1, 4, 2]))
    assert [len(hypothesis.tokens) for (hypothesis,) in found] == [1, 4, 2]


def test_best_continuations():
    totals = np.array([[[1.0, 5.0, 2.0], [4.0, 3.0, -np.inf]], [[0.0, 0.5, 0.25], [-np.inf] * 3]])
    parents, tokens, values = best_continuations(totals, np.array([2, 1]))
    np.testing.assert_array_equal(parents, [[0, 1], [0, 0]])
    np.testing.assert_array_equal(tokens, [[1, 0], [1, 2]])
    np.testing.assert_array_equal(values, [[5.0, 4.0], [0.5, -np.inf]])


def test_log_softmax_of_large_scores():
    np.testing.assert_allclose(log_softmax(np.array([[1e4, 1e4], [0.0, -1e4]])), [[-np.log(2)] * 2, [0.0, -1e4]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "the beam is 0, expected 1"),
        ({"beam": 2, "n_best": 3}, "n_best is 3, expected 1 to the beam, which is 2"),
        ({"n_best": 0}, "n_best is 0"),
        ({"length_penalty": -1.0}, "length_penalty is -1, expected 0"),
    ],
)
def test_refused(options, message):
    with pytest.raises(RecaffeError, match=message):
        BeamSearch(START, END, **options)
