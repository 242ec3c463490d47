"""An encoder-decoder in one net: the source is read once, then the target goes in token by token."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..layers.data.example_source import put_columns
from .carried import check_carried
from .errors import RecaffeError
from .net import Net
from .score_output import ScoreOutput

SOURCE, LENGTHS, MASK, TARGET = "source", "source_lengths", "source_mask", "target_input"


class Transducer:
    """Reads N sources, then feeds tokens of N targets and gives the scores of the next ones.

    The net has the inputs ``source`` (S x N tokens), where its layers need them ``source_lengths`` (N) or
    ``source_mask`` (S x N, 1 at true tokens), and ``target_input`` (T x N tokens).  The layers that depend on
    ``target_input`` are the decoder: they carry the past, and run for each token; the others are the encoder, and run
    once.  One of the decoder's outputs has a score for each token of the target's vocabulary, T x N x K (``scores``
    names it where there are several).
    """

    def __init__(self, net: Net, scores: str = ""):
        self.net = net
        for name in (SOURCE, TARGET):
            if name not in net.inputs:
                raise RecaffeError(f"net {net.name!r} has no input {name!r} (its inputs: {_names(net.inputs)})")
        known = (SOURCE, LENGTHS, MASK, TARGET)
        unknown = [name for name in net.inputs if name not in known]
        if unknown:
            raise RecaffeError(f"net {net.name!r} has the input {unknown[0]!r}, expected {_names(known)} alone")
        self.target_blobs = dependents(net, TARGET)
        self.scores = ScoreOutput(net, scores, [name for name in net.outputs if name in self.target_blobs])
        layers = range(len(net.layers))
        self._decoder = [i for i in layers if not self.target_blobs.isdisjoint(net.bottom_names[net.layers[i].name])]
        self._encoder = [i for i in layers if i not in self._decoder]
        self._is_first = True

    @property
    def takes_lengths(self) -> bool:
        """Whether sources of different lengths can be read together."""
        return LENGTHS in self.net.inputs or MASK in self.net.inputs

    def read(self, sources: Sequence[np.ndarray], padding: int = 0, copies: int = 1) -> None:
        """Let the next tokens be the first of new targets, those of ``sources``, each ``copies`` times in a row.

        Where the net takes neither lengths nor a mask, all sources have the same length.
        """
        lengths = np.repeat([len(source) for source in sources], copies)
        S, N = int(lengths.max()), len(lengths)
        if lengths.min() < S and not self.takes_lengths:
            raise RecaffeError(
                f"sources of {lengths.min()} and {S} tokens cannot be read together: net {self.net.name!r} has"
                f" neither the input {LENGTHS} nor {MASK}"
            )
        tokens = np.empty((S, N))
        put_columns(tokens, [source for source in sources for _ in range(copies)], padding)
        self.net.reset_states()
        self._put(SOURCE, tokens)
        self._put(LENGTHS, lengths)
        self._put(MASK, np.arange(S)[:, None] < lengths)
        self._run(self._encoder)
        self._is_first = True

    def feed(self, tokens: np.ndarray) -> np.ndarray:
        """Read ``tokens`` (T x N) behind those read before; gives the scores of the tokens that follow, N x K.

        Scores are logarithms of probabilities, but for a constant.
        """
        self._put(TARGET, tokens)
        self._run(self._decoder)
        if self._is_first:
            check_carried(self.net, [self.net.layers[i] for i in self._decoder], f" that reads {TARGET}")
        self._is_first = False
        return self.scores.read_last(*tokens.shape)

    def select_streams(self, order: Any) -> None:
        """Go on from these streams, in this order, each among those of the same source."""
        if not np.array_equal(order, np.arange(len(order))):
            self.net.select_streams(order)

    def _put(self, name: str, values: np.ndarray) -> None:
        """Let the input ``name``, if the net has it, take the values and their shape."""
        if name in self.net.inputs:
            blob = self.net.blobs[name]
            blob.reshape(*values.shape)
            blob.data[...] = self.net.backend.to_device(values.astype(self.net.dtype))

    def _run(self, layers: Iterable[int]) -> None:
        with self.net.backend.computing():
            for i in layers:
                self.net.forward_from_to(i, i)


def dependents(net: Net, name: str) -> set[str]:
    """The blob ``name`` and those that change with it."""
    found = {name}
    for layer in net.layers:
        if not found.isdisjoint(net.bottom_names[layer.name]):
            found.update(net.top_names[layer.name])
    return found


def _names(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
