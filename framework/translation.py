"""Text to text by a trained encoder-decoder and its two vocabularies."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..layers.data.vocabulary import END, PAD, START, UNKNOWN, Vocabulary
from .beam_search import BeamSearch, Hypothesis
from .errors import RecaffeError
from .net import Net
from .transduction import Transducer


@dataclass(frozen=True)
class Translation:
    """A text, its tokens, and what it is ranked by among others (see BeamSearch)."""

    text: str
    tokens: tuple[int, ...]
    score: float


class Translator:
    """Translates texts with a net as Transducer describes; ``bounds`` are the start and the end of a target."""

    def __init__(self, net: Net, source: Vocabulary, target: Vocabulary, scores: str = ""):
        self.transducer = Transducer(net, scores)
        self.transducer.scores.check_tokens(len(target), "--target-vocabulary")
        self.source, self.target = source, target
        try:
            self.bounds = target.need(START), target.need(END)
        except RecaffeError as error:
            raise RecaffeError(f"target vocabulary: {error}, which the decoder needs") from None

    def search(self, beam: int = 4, length_penalty: float = 0.6, n_best: int = 1) -> BeamSearch:
        """A beam search among texts of the target vocabulary."""
        never = [number for name in (PAD, START, UNKNOWN) if (number := self.target.number(name)) is not None]
        return BeamSearch(*self.bounds, beam, length_penalty, n_best, never)

    def translate(
        self, sources: Sequence[np.ndarray], search: BeamSearch, max_length: int = 0
    ) -> list[list[Translation]]:
        """The best texts for each source, given as tokens without an end; an empty source gives an empty text.

        ``max_length``: the most tokens of a text and its end; 0 for twice those of its source and ten more.
        """
        results = [[Translation("", (), 0.0)] for _ in sources]
        for group in self._groups(sources):
            inputs = [self.with_end(sources[i]) for i in group]
            most = np.array([max_length or 2 * len(tokens) + 10 for tokens in inputs])
            self.transducer.read(inputs, self.source.number(PAD) or 0, copies=search.beam)
            for i, hypotheses in zip(group, search.run(self.transducer, most), strict=True):
                results[i] = [self._translation(hypothesis) for hypothesis in hypotheses]
        return results

    def with_end(self, source: np.ndarray) -> np.ndarray:
        """The source as the net reads it: where its vocabulary has an end, that ends it."""
        end = self.source.number(END)
        return source if end is None else np.append(source, end)

    def _groups(self, sources: Sequence[np.ndarray]) -> list[list[int]]:
        """The numbers of the sources that are not empty: all at once, or by length if the net takes no lengths."""
        groups: dict[int, list[int]] = defaultdict(list)
        for i, tokens in enumerate(sources):
            if len(tokens):
                groups[0 if self.transducer.takes_lengths else len(tokens)].append(i)
        return list(groups.values())

    def _translation(self, hypothesis: Hypothesis) -> Translation:
        return Translation(self.target.decode(hypothesis.tokens), hypothesis.tokens, hypothesis.score)
