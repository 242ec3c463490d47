"""``recaffe generate``: text that a trained language model writes."""

import logging
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import numpy as np

from ...layers.data.vocabulary import PAD, START, UNKNOWN, Decoder, UnknownTokenError, Vocabulary
from ...proto import TEST
from ..errors import RecaffeError
from ..generation import Sampler, StepNet, sample
from ..net import Net
from . import options
from .devices import use_device
from .imports import import_modules

log = logging.getLogger("recaffe")


@click.command()
@options.model
@options.weights
@options.vocabulary
@click.option("--prompt", default="\n", help="Text to go on from; by default the start of a line.")
@click.option("--length", type=click.IntRange(min=1), default=500, show_default=True, help="Tokens to write.")
@click.option("--temperature", type=float, default=1.0, show_default=True, help="Below 1 surer, above 1 bolder.")
@click.option("--top-k", type=click.IntRange(min=1), default=None, help="Draw from this many best tokens only.")
@click.option("--seed", type=click.IntRange(min=0), default=None, help="Seed of the random numbers.")
@click.option("--output", metavar="BLOB", default="", help="Blob of the scores, where the net has several outputs.")
@options.gpu
@options.state
@options.imports
def generate(
    model: str,
    weights: list[str],
    vocabulary: str,
    prompt: str,
    length: int,
    temperature: float,
    top_k: int | None,
    seed: int | None,
    output: str,
    gpu: Any,
    level: int,
    stage: list[str],
    imports: Sequence[str],
) -> None:
    """Write text with a trained language model.

    The model is a net with inputs data and cont (T x N) and one output of scores or probabilities, whose layers
    carry their state from token to token.
    """
    if not weights:
        raise click.UsageError("Missing option '--weights': the trained net to write with.")
    words = open_model_vocabulary(vocabulary, model)
    never = [number for name in (PAD, START, UNKNOWN) if (number := words.number(name)) is not None]
    sampler = Sampler(temperature, top_k or 0, never)
    start = encode_text(words, prompt, "--prompt")
    use_device(gpu)
    import_modules(imports)
    with closing(Net(model, TEST, level=level, stages=stage)) as net:
        step_net = StepNet(net, output)
        for path in weights:
            net.copy_from(path)
        step_net.output.check_tokens(len(words), "--vocabulary")
        rng = np.random.default_rng(seed)
        decoder = Decoder(words)
        show("".join(map(decoder.add, start.tolist())))
        for token in sample(step_net, start, length, sampler, rng):
            show(decoder.add(token))
        show(decoder.finish() + "\n")


def show(text: str) -> None:
    """Write text at once; a character that the terminal cannot show becomes a question mark."""
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(text.encode(encoding, "replace").decode(encoding), nl=False)


def open_model_vocabulary(path: str, model: str) -> Vocabulary:
    """The vocabulary in the file ``path``, else that beside the model, else bytes."""
    beside = Path(model).parent / "vocabulary.json"
    if not path and beside.is_file():
        path = str(beside)
        log.info("Vocabulary: %s", path)
    return Vocabulary.load(path) if path else Vocabulary()


def encode_text(vocabulary: Vocabulary, text: str, option: str) -> np.ndarray:
    """The tokens of a text that ``option`` gave."""
    try:
        return vocabulary.encode(text)
    except UnknownTokenError as error:
        raise RecaffeError(f"{option}: {error}") from None
