"""Beam search: the sequences to which a model gives the highest probability, as far as a few of them at once show."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .errors import RecaffeError


class StepScorer(Protocol):
    """What is searched: a model that scores the next token of each stream and carries what the streams have read."""

    def feed(self, tokens: np.ndarray) -> np.ndarray:
        """Read ``tokens`` (T x N); gives the scores of the tokens that follow, N x K."""

    def select_streams(self, order: Any) -> None:
        """Go on from these streams, in this order."""


@dataclass(frozen=True)
class Hypothesis:
    """Tokens without their end, log P of them (with the end, where it was reached), and what they are ranked by."""

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    ended: bool


@dataclass(frozen=True)
class BeamSearch:
    """Goes on from the ``beam`` likeliest beginnings of each sequence at every step; a beam of 1 takes the best token.

    What ends leaves the beam (Sutskever et al., "Sequence to sequence learning with neural networks", NIPS 2014) and
    is ranked by log P / ((5 + length) / 6)^length_penalty, its end counted in the length (Wu et al., "Google's neural
    machine translation system", 2016, without the coverage).  The search ends when none left in the beam can come
    among the ``n_best``, or at the most tokens allowed, where beginnings stand behind all that have ended.

    ``start`` is read first; ``never`` are tokens that are not taken.
    """

    start: int
    end: int
    beam: int = 4
    length_penalty: float = 0.6
    n_best: int = 1
    never: Sequence[int] = ()

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise RecaffeError(f"the beam is {self.beam}, expected 1 (the best token each time) or more")
        if not 1 <= self.n_best <= self.beam:
            raise RecaffeError(f"n_best is {self.n_best}, expected 1 to the beam, which is {self.beam}")
        if not 0 <= self.length_penalty < np.inf:
            raise RecaffeError(f"length_penalty is {self.length_penalty:g}, expected 0 (none) or more")

    def run(self, scorer: StepScorer, most: np.ndarray) -> list[list[Hypothesis]]:
        """The ``n_best`` of N sequences, best first; ``most``: the most tokens of each, its end among them.

        Hypothesis b of sequence n is the scorer's stream n beam + b.
        """
        N, B = len(most), self.beam
        rows = np.arange(N)[:, None]
        found: list[list[Hypothesis]] = [[] for _ in range(N)]
        tokens = np.full((N, B), self.start)
        texts = np.empty((N, B, 0), tokens.dtype)
        live = np.full((N, B), -np.inf)  # log P of each beginning; -inf where the beam has none
        live[:, 0] = 0.0
        for length in range(1, int(most.max()) + 1):
            scores = log_softmax(scorer.feed(tokens.reshape(1, -1)))
            scores[:, list(self.never)] = -np.inf
            width = B - np.array([len(hypotheses) for hypotheses in found])
            parents, tokens, live = best_continuations(live[:, :, None] + scores.reshape(N, B, -1), width)
            texts = np.concatenate([texts[rows, parents], tokens[:, :, None]], axis=2)
            ended = tokens == self.end
            leaves = (ended | (most == length)[:, None]) & np.isfinite(live)
            for n, b in np.argwhere(leaves):
                found[n].append(self._hypothesis(texts[n, b], float(live[n, b]), bool(ended[n, b])))
            live[leaves] = -np.inf
            for n in range(N):
                if self._is_settled(found[n], live[n].max(), most[n]):
                    live[n] = -np.inf
            if not np.isfinite(live).any():
                break
            scorer.select_streams((rows * B + parents).ravel())
        return [sorted(hypotheses, key=_rank)[: self.n_best] for hypotheses in found]

    def _hypothesis(self, text: np.ndarray, log_probability: float, ended: bool) -> Hypothesis:
        tokens = tuple(text[:-1].tolist() if ended else text.tolist())
        return Hypothesis(tokens, log_probability, log_probability / self._penalty(len(text)), ended)

    def _penalty(self, length: int) -> float:
        return ((5 + length) / 6) ** self.length_penalty

    def _is_settled(self, found: list[Hypothesis], live: float, most: int) -> bool:
        """Whether no beginning of log P ``live`` or less can become one of the best: log P only falls."""
        ended = sorted((hypothesis for hypothesis in found if hypothesis.ended), key=_rank)
        return len(ended) >= self.n_best and ended[self.n_best - 1].score >= live / self._penalty(most)


def _rank(hypothesis: Hypothesis) -> tuple[bool, float]:
    return not hypothesis.ended, -hypothesis.score


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """Logarithms of the probabilities, row by row."""
    scores = scores - scores.max(axis=1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def best_continuations(totals: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of ``totals`` (N x B x K) the B best of each row, best first: their beginnings, their tokens, and the totals.

    From number ``width`` (N) on a row has -inf.
    """
    N, B, K = totals.shape
    totals = totals.reshape(N, B * K)
    best = np.argpartition(-totals, B - 1, axis=1)[:, :B]
    order = np.argsort(-np.take_along_axis(totals, best, axis=1), axis=1)
    best = np.take_along_axis(best, order, axis=1)
    values = np.take_along_axis(totals, best, axis=1)
    values[np.arange(B) >= width[:, None]] = -np.inf
    return best // K, best % K, values
