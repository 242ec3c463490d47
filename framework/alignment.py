"""What an attention layer looks at when its net reads given texts, with the tokens of both sides."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..layers.data.vocabulary import BYTES, Unit, Vocabulary
from .attention_weights import looks_at_source, looks_from_target, read_weights
from .generation import StepNet
from .layer import Layer
from .translation import Translator

BLANK = "\u2423"  # an open box, which can be seen


@dataclass(frozen=True)
class Alignment:
    """Weights, heads x T x S, with a label for each of the T rows (what looks) and S columns (what is looked at)."""

    weights: np.ndarray
    rows: list[str]
    columns: list[str]


def align_pair(translator: Translator, layer: Layer, source: np.ndarray, target: Sequence[int]) -> Alignment:
    """The weights of ``layer`` when the net reads ``source`` and then ``target``, tokens without start and end.

    A row of a layer that looks from the target at the source has the token that is written there; those of a layer
    that looks at its own text have the token that is read.
    """
    transducer = translator.transducer
    net, target_blobs = transducer.net, transducer.target_blobs
    source, (start, end) = translator.with_end(source), translator.bounds
    transducer.read([source])
    transducer.feed(np.array([start, *target])[:, None])
    rows = columns = labels(translator.source, source)
    if looks_from_target(net, layer, target_blobs):
        across = looks_at_source(net, layer, target_blobs)
        rows = labels(translator.target, [*target, end] if across else [start, *target])
        columns = columns if across else rows
    return Alignment(read_weights(net, layer), rows, columns)


def align_text(step_net: StepNet, layer: Layer, vocabulary: Vocabulary, tokens: np.ndarray) -> Alignment:
    """The weights of ``layer`` when a language model reads ``tokens``."""
    step_net.restart()
    step_net.feed(tokens[:, None])
    names = labels(vocabulary, tokens)
    return Alignment(read_weights(step_net.net, layer), names, names)


def labels(vocabulary: Vocabulary, tokens: Iterable[int]) -> list[str]:
    """The tokens as they can be seen: blanks as open boxes, other white space and bytes by their codes."""
    found = []
    for number in tokens:
        if vocabulary.unit is Unit.BYTE and number < BYTES:
            text = bytes((number,)).decode("latin-1") if number < 128 else f"\\x{number:02x}"
        else:
            text = vocabulary.token(number)
        found.append(text.replace(" ", BLANK) if text.isprintable() else text.encode("unicode_escape").decode())
    return found
