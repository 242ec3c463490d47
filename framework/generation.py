"""Text from a trained language model: a net that reads tokens and scores the next one."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .carried import check_carried
from .errors import RecaffeError
from .net import Net
from .score_output import ScoreOutput


class StepNet:
    """Feeds tokens of N streams to a net and gives the scores of the next ones; the net's layers carry the past.

    The net has an input ``data`` (T x N tokens) and, where its layers need marks, ``cont`` (T x N, 0 at the first
    token).  Its output has a score for each token of the vocabulary, T x N x K; what a Softmax layer gives is taken
    as probabilities.
    """

    def __init__(self, net: Net, output: str = ""):
        self.net = net
        if "data" not in net.inputs:
            raise RecaffeError(
                f"net {net.name!r} has no input 'data' for the tokens (its inputs: {_names(net.inputs)})"
            )
        unknown = [name for name in net.inputs if name not in ("data", "cont")]
        if unknown:
            raise RecaffeError(f"net {net.name!r} has the input {unknown[0]!r}, expected data and cont (T x N) alone")
        self.output = ScoreOutput(net, output, net.outputs)
        self.restart()

    def restart(self) -> None:
        """Let the next token be the first of a new text."""
        self.net.reset_states()
        self._is_first = True

    def feed(self, tokens: np.ndarray) -> np.ndarray:
        """Read ``tokens`` (T x N) behind those read before; gives the scores of the tokens that follow, N x K.

        Scores are logarithms of probabilities, but for a constant.
        """
        T, N = tokens.shape
        for name in self.net.inputs:
            self.net.blobs[name].reshape(T, N)
        inputs: dict[str, Any] = {"data": tokens}
        if "cont" in self.net.inputs:
            inputs["cont"] = np.ones((T, N))
            inputs["cont"][0] = 0.0 if self._is_first else 1.0
        self.net.forward(**inputs)
        if self._is_first:
            check_carried(self.net, self.net.layers)
        self._is_first = False
        return self.output.read_last(T, N)


@dataclass(frozen=True)
class Sampler:
    """Draws a token from softmax(scores / temperature) over the ``top_k`` best (0: over all)."""

    temperature: float = 1.0
    top_k: int = 0
    never: Sequence[int] = ()

    def __post_init__(self) -> None:
        if not self.temperature > 0 or not np.isfinite(self.temperature):
            raise RecaffeError(
                f"temperature is {self.temperature:g}, expected more than 0 (top_k 1 takes the best token)"
            )
        if self.top_k < 0:
            raise RecaffeError(f"top_k is {self.top_k}, expected 1 or more, or 0 for all tokens")

    def choose(self, scores: np.ndarray, rng: np.random.Generator) -> int:
        """A token; ``scores`` (K) is used up."""
        scores[list(self.never)] = -np.inf
        if self.top_k == 1:
            return int(scores.argmax())
        if 0 < self.top_k < len(scores):
            scores[np.argpartition(scores, -self.top_k)[: -self.top_k]] = -np.inf
        weights = np.exp((scores - scores.max()) / self.temperature)
        return int(rng.choice(len(weights), p=weights / weights.sum()))


def sample(
    step_net: StepNet, prompt: Iterable[int], length: int, sampler: Sampler, rng: np.random.Generator
) -> Iterator[int]:
    """``length`` tokens that go on from ``prompt``, each fed back for the next."""
    tokens = np.array([*prompt])
    if not len(tokens):
        raise RecaffeError("the prompt has no tokens; the net needs one to start from")
    step_net.restart()
    for _ in range(length):
        token = sampler.choose(step_net.feed(tokens[:, None])[0], rng)
        yield token
        tokens = np.array([token])


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
