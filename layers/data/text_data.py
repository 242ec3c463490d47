"""TextData: streams of text for language models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...framework.errors import RecaffeError
from ...framework.layer import register
from ...proto import TRAIN
from .batch_layer import BatchLayer
from .lists import read_lines
from .order import Order
from .prefetcher import Batch, BatchSource
from .texts import find_files, read_texts
from .vocabulary import Unit, open_vocabulary


@dataclass
class TextDataOptions:
    """See TextData."""

    source: list[str] = field(default_factory=list)
    source_list: str = ""
    vocabulary: str = ""
    steps: int = 50
    streams: int = 32
    documents: bool = False
    shuffle: bool = False


@register
class TextData(BatchLayer):
    """data = T steps of N streams of text, target = the token after each, cont = 0 where a text starts.

    The text is cut into N streams of equal length; each batch goes on where the last one ended, so that a
    recurrent layer that carries its state reads a stream from its start to its end.  Behind the end comes the start
    of the same stream again, or with ``shuffle`` of a new order of the files.

    Shapes
        tops data, cont, target: T x N.  cont is 0 at the first step of a stream, and of a file with ``documents``.

    Options (text_data_param)
        source: files, or patterns such as "lib/*.py"; source_list: a file that lists such files
        vocabulary: a file of tokens (see ``Vocabulary``); without one tokens are bytes, 0 to 255
        steps: T (50); streams: N (32)
        documents: each file is a text of its own: none of its tokens has its target in another file (false)
        shuffle: a new random order of the files each epoch, in phase TRAIN (false)

    Files of bytes are mapped into memory; of others the tokens are, where they are many.
    """

    type = "TextData"
    tops = (3, 3)
    options_type = TextDataOptions

    def open_source(self, tops: int, rng: np.random.Generator) -> BatchSource:
        options = self.options
        for name in ("steps", "streams"):
            if getattr(options, name) < 1:
                raise RecaffeError(f"{name} is {getattr(options, name)}, expected 1 or more")
        listed = [line for _, line in read_lines(options.source_list)] if options.source_list else []
        patterns = [*options.source, *listed]
        if not patterns:
            raise RecaffeError("text_data_param gives no source: the text files to read")
        paths = find_files(patterns)
        if options.shuffle and len(paths) == 1:
            raise RecaffeError(f"shuffle gives the files a new order each epoch, but there is one: {paths[0]}")
        vocabulary = open_vocabulary(options.vocabulary)
        texts = map_files(paths) if vocabulary.unit is Unit.BYTE and not vocabulary.lower_case else None
        if texts is None:
            sequences = read_texts(paths, vocabulary)
            texts = [sequences[i] for i in range(len(sequences))]
        shuffle = options.shuffle and self.phase == TRAIN
        try:
            return StreamSource(texts, options.steps, options.streams, options.documents, shuffle, rng)
        except RecaffeError as error:
            others = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
            raise RecaffeError(f"{paths[0]}{others}: {error}") from None


def map_files(paths: Sequence[str]) -> list[np.ndarray]:
    """The bytes of each file, mapped into memory."""
    texts = []
    for path in paths:
        try:
            empty = Path(path).stat().st_size == 0
            texts.append(np.empty(0, np.uint8) if empty else np.asarray(np.memmap(path, np.uint8, "r")))
        except OSError as error:
            raise RecaffeError(f"{path}: cannot be read: {error.strerror}") from None
    return texts


class StreamSource(BatchSource):
    """Texts in N streams of equal length.

    Step p reads token p + d, where d is the number of texts that ended before it, as a text's last token is no
    step.  Stream n has the steps from n S on, S of them.
    """

    def __init__(
        self,
        texts: Sequence[np.ndarray],
        steps: int,
        streams: int,
        documents: bool,
        shuffle: bool,
        rng: np.random.Generator,
    ):
        least = 2 if documents else 1  # a text of one token has no step
        self._texts = [text for text in texts if len(text) >= least]
        self._T, self._N, self._documents, self._rng = steps, streams, documents, rng
        tokens = sum(map(len, self._texts))
        count = tokens - (len(self._texts) if documents else min(tokens, 1))
        self._S = count // streams
        if not self._S:
            raise RecaffeError(
                f"the text has {tokens} tokens: too few for {streams} stream(s), each of two tokens or more"
            )
        self._order = Order(len(self._texts), shuffle, rng)
        self._start_epoch()

    def _start_epoch(self) -> None:
        """Put the texts in the epoch's order, and go to the first step."""
        self._step = 0
        self._in_order = [self._texts[i] for i in self._order.take(len(self._texts))]
        lengths = np.array([len(text) for text in self._in_order])
        self._token_starts = np.cumsum(lengths) - lengths
        self._step_starts = np.cumsum(lengths - 1) - (lengths - 1) if self._documents else np.zeros(1, np.int64)

    def top_shapes(self) -> list[tuple[int, ...]]:
        return [(self._T, self._N)] * 3

    def fill(self, batch: Batch) -> None:
        tops = [batch.array(i, (self._T, self._N)) for i in range(3)]
        done = 0
        while done < self._T:
            if self._step == self._S:
                self._order.start_epoch()
                self._start_epoch()
            count = min(self._T - done, self._S - self._step)
            self._read(count, *(top[done : done + count] for top in tops))
            done += count
            self._step += count

    def _read(self, count: int, data: np.ndarray, cont: np.ndarray, target: np.ndarray) -> None:
        """The next ``count`` steps of each stream, all of one epoch."""
        in_stream = self._step + np.arange(count)[:, None]
        steps = in_stream + self._S * np.arange(self._N)
        text = np.searchsorted(self._step_starts, steps, side="right") - 1
        cont[...] = (in_stream > 0) & (steps > self._step_starts[text])
        self._gather(steps + text, data)
        self._gather(steps + text + 1, target)

    def _gather(self, tokens: np.ndarray, out: np.ndarray) -> None:
        """out = the tokens of those numbers, counted over all texts."""
        text = np.searchsorted(self._token_starts, tokens, side="right") - 1
        for i in np.unique(text):
            here = text == i
            out[here] = self._in_order[i][tokens[here] - self._token_starts[i]]

    def get_state(self) -> dict[str, Any]:
        return {
            "rng": self._rng.bit_generator.state,
            "order": self._order.get_state(),
            "step": self._step,
            "stream_length": self._S,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        if int(state["stream_length"]) != self._S:
            raise RecaffeError(
                f"the saved state is of streams of {state['stream_length']} steps, but they have {self._S} now;"
                " the text is not what it was"
            )
        self._order.set_state({**state["order"], "position": 0})
        self._start_epoch()
        self._step = int(state["step"])
        self._rng.bit_generator.state = state["rng"]
