"""``recaffe translate``: text to text by a trained encoder-decoder."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import click
import numpy as np

from ...layers.data.texts import decoded_lines, encode, text_lines
from ...layers.data.vocabulary import Vocabulary
from ...proto import TEST
from ..errors import RecaffeError
from ..net import Net
from ..translation import Translation, Translator
from . import options
from .devices import use_device
from .generate import show
from .imports import import_modules

log = logging.getLogger("recaffe")


@click.command()
@options.model
@options.weights
@options.vocabularies
@click.option("--input", "source", metavar="FILE", default="", help="Texts, one a line; by default standard input.")
@click.option("--output", metavar="FILE", default="", help="Where to write; by default standard output.")
@options.search
@click.option(
    "--n-best",
    metavar="K",
    type=click.IntRange(min=1),
    default=None,
    help="Write the K best texts for each line, as rank, score and text with tabs between.",
)
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    help="Lines that are read and run together; with 1 each line is answered at once.",
)
@options.scores
@options.gpu
@options.state
@options.imports
def translate(
    model: str,
    weights: list[str],
    source_vocabulary: str,
    target_vocabulary: str,
    source: str,
    output: str,
    beam: int,
    length_penalty: float,
    max_length: int | None,
    n_best: int | None,
    batch: int,
    scores: str,
    gpu: Any,
    level: int,
    stage: list[str],
    imports: Sequence[str],
) -> None:
    """Translate lines of text with a trained encoder-decoder.

    The model is a net with inputs source (S x N), source_lengths (N) or source_mask (S x N) where it needs them, and
    target_input (T x N). Its layers that depend on target_input carry their states (carry_state: true) and run for
    each token; the others run once. An empty line gives an empty line.
    """
    if not weights:
        raise click.UsageError("Missing option '--weights': the trained net to translate with.")
    if n_best is not None and n_best > beam:
        raise click.UsageError(f"--n-best {n_best} needs a beam of {n_best} or more; --beam is {beam}")
    if source and output and Path(source).resolve() == Path(output).resolve():
        raise click.UsageError(f"--input and --output are the same file, {output}")
    words = open_vocabularies(model, source_vocabulary, target_vocabulary)
    use_device(gpu)
    import_modules(imports)
    with ExitStack() as stack:
        net = stack.enter_context(closing(Net(model, TEST, level=level, stages=stage)))
        translator = Translator(net, *words, scores)
        for path in weights:
            net.copy_from(path)
        search = translator.search(beam, length_penalty, n_best or 1)
        sources = read_sources(source, words[0])
        write = stack.enter_context(open_output(output)).write if output else show
        while group := list(islice(sources, batch)):
            for texts in translator.translate(group, search, max_length or 0):
                write(lines_of(texts, ranked=n_best is not None))


def open_vocabularies(model: str, source: str, target: str) -> tuple[Vocabulary, Vocabulary]:
    """The vocabularies in the files ``source`` and ``target``, or else in those beside the model."""
    opened = []
    for side, path in (("source", source), ("target", target)):
        if not path:
            path = str(Path(model).parent / f"{side}.json")
            if not Path(path).is_file():
                raise RecaffeError(f"there is no {path}; give the model's vocabulary with --{side}-vocabulary")
            log.info("Vocabulary of the %s: %s", side, path)
        opened.append(Vocabulary.load(path))
    return opened[0], opened[1]


def read_sources(path: str, vocabulary: Vocabulary) -> Iterator[np.ndarray]:
    """The tokens of each line of the file, or of standard input."""
    lines = text_lines(path) if path else decoded_lines(sys.stdin.buffer, "standard input")
    for number, line in enumerate(lines, start=1):
        yield encode(vocabulary, line, path or "standard input", number)


def open_output(path: str) -> TextIO:
    """The file ``path``, in which every line is written at once."""
    try:
        return Path(path).open("w", encoding="utf-8", buffering=1)
    except OSError as error:
        raise RecaffeError(f"--output {path}: cannot be written: {error.strerror}") from None


def lines_of(texts: Sequence[Translation], ranked: bool) -> str:
    """A line for each text, with its rank and score if ``ranked``; what would begin a new line becomes a blank."""
    lines = []
    for rank, text in enumerate(texts, start=1):
        line = text.text.replace("\n", " ")
        lines.append(f"{rank}\t{text.score:.4f}\t{line}\n" if ranked else f"{line}\n")
    return "".join(lines)
