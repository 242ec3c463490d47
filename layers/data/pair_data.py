"""PairData: pairs of texts for encoder-decoders."""

from dataclasses import dataclass

import numpy as np

from ...framework.errors import RecaffeError
from ...framework.layer import register
from ...proto import TRAIN
from .batch_layer import BatchLayer
from .example_source import ExampleSource, Padding, check_length, check_room, put_columns
from .prefetcher import Batch, BatchSource
from .sequences import Sequences, SequenceWriter
from .texts import read_pairs
from .vocabulary import END, PAD, START, Vocabulary


@dataclass
class PairDataOptions:
    """See PairData."""

    source: str
    source_vocabulary: str
    target: str = ""
    target_vocabulary: str = ""
    batch_size: int = 32
    source_length: int = 0
    target_length: int = 0
    sort_batches: int = 1
    shuffle: bool = False
    ignore_label: int = -1
    padding: Padding = Padding.LENGTHS


@register
class PairData(BatchLayer):
    """source, and the target twice: as the decoder reads it (``<s> y_1 ... y_m``) and gives it (``y_1 ... y_m </s>``).

    Sutskever et al., "Sequence to sequence learning with neural networks", NIPS 2014.

    Shapes
        tops source: S x N, padded with ``<pad>``; its lengths N or mask S x N, as ``padding`` says;
        target_input: T x N, padded with ``<pad>``; target: T x N, padded with ``ignore_label``; their lengths N or mask
        T x N.
        S and T are the longest of each batch, or fixed.  Where the source vocabulary has ``</s>``, it ends each source.

    Options (pair_data_param)
        source: a file of lines ``source TAB target``, or the sources, one a line, and target: the file of targets
        source_vocabulary, target_vocabulary (by default the same): files, see ``Vocabulary``; with ``<pad>``, the
        target's with ``<s>`` and ``</s>`` too
        batch_size: N (32); source_length, target_length: fixed S and T, 0 for the longest of each batch (0)
        sort_batches: the examples of so many batches are sorted by length before they are cut into batches (1)
        shuffle: a new random order each epoch, in phase TRAIN (false); ignore_label (-1)
        padding: LENGTHS or MASK, which is 1 at true steps and 0 at padded ones (LENGTHS).
    """

    type = "PairData"
    tops = (5, 5)
    options_type = PairDataOptions

    def open_source(self, tops: int, rng: np.random.Generator) -> BatchSource:
        return PairSource(self.options, self.options.shuffle and self.phase == TRAIN, rng)


class PairSource(ExampleSource):
    """The pairs as tokens: sources with their end, targets with start and end."""

    def __init__(self, options: PairDataOptions, shuffle: bool, rng: np.random.Generator):
        for name in ("source_length", "target_length"):
            check_length(name, getattr(options, name))
        self._options = options
        vocabularies = [load(options.source_vocabulary, PAD)]
        vocabularies.append(load(options.target_vocabulary or options.source_vocabulary, PAD, START, END))
        self._pad = [vocabulary.need(PAD) for vocabulary in vocabularies]
        self._sources, self._targets = read_token_pairs(options, vocabularies)
        super().__init__(self._sources.lengths, options.batch_size, shuffle, options.sort_batches, rng)

    def top_shapes(self) -> list[tuple[int, ...]]:
        return self._shapes(self.peek_examples())

    def _shapes(self, examples: np.ndarray) -> list[tuple[int, ...]]:
        N, options = len(examples), self._options
        S = options.source_length or int(self._sources.lengths[examples].max())
        T = options.target_length or int(self._targets.lengths[examples].max()) - 1
        return [(S, N), options.padding.shape(S, N), (T, N), (T, N), options.padding.shape(T, N)]

    def fill(self, batch: Batch) -> None:
        examples = self.next_examples()
        tops = [batch.array(i, shape) for i, shape in enumerate(self._shapes(examples))]
        source, source_padding, target_input, target, target_padding = tops
        sources = [self._sources[i] for i in examples]
        targets = [self._targets[i] for i in examples]
        put_columns(source, sources, self._pad[0])
        put_columns(target_input, [tokens[:-1] for tokens in targets], self._pad[1])
        put_columns(target, [tokens[1:] for tokens in targets], self._options.ignore_label)
        self._options.padding.write(source_padding, [len(tokens) for tokens in sources])
        self._options.padding.write(target_padding, [len(tokens) - 1 for tokens in targets])


def load(path: str, *needed: str) -> Vocabulary:
    """The vocabulary at ``path``, which must have the tokens ``needed``."""
    vocabulary = Vocabulary.load(path)
    try:
        for token in needed:
            vocabulary.need(token)
    except RecaffeError as error:
        raise RecaffeError(f"{path}: {error}; PairData needs it") from None
    return vocabulary


def read_token_pairs(options: PairDataOptions, vocabularies: list[Vocabulary]) -> tuple[Sequences, Sequences]:
    """All sources with their end, where the vocabulary has one, and all targets with start and end."""
    of_source, of_target = vocabularies
    source_end = of_source.number(END)
    sources, targets = SequenceWriter(of_source.dtype), SequenceWriter(of_target.dtype)
    for pair in read_pairs(options.source, options.target):
        sources.add(pair.encode(0, of_source))
        if source_end is not None:
            sources.add([source_end])
        check_room("source_length", options.source_length, sources.end_sequence(), pair.where(0))
        targets.add([of_target.need(START)])
        targets.add(pair.encode(1, of_target))
        targets.add([of_target.need(END)])
        check_room("target_length", options.target_length, targets.end_sequence() - 1, pair.where(1))
    if not sources.count:
        raise RecaffeError(f"{options.source}: the file has no pairs")
    return sources.finish(), targets.finish()
