"""``recaffe attention``: a picture of what an attention layer looks at."""

import logging
from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import Any

import click
import numpy as np

from ...layers.data.vocabulary import Vocabulary
from ...proto import TEST
from ..alignment import align_pair, align_text
from ..attention_picture import check_format, import_matplotlib, save_picture
from ..attention_weights import find_attention, weights_blob, with_weights
from ..errors import RecaffeError
from ..generation import StepNet
from ..net import Net
from ..transduction import TARGET, dependents
from ..translation import Translator
from . import options
from .devices import use_device
from .generate import encode_text, open_model_vocabulary
from .imports import import_modules
from .translate import open_vocabularies

log = logging.getLogger("recaffe")


@click.command()
@options.model
@options.weights
@options.vocabularies
@options.vocabulary
@click.option("--input", "source", metavar="TEXT", required=True, help="The source, or the text of a language model.")
@click.option("--target", metavar="TEXT", default=None, help="The target; by default what the net writes itself.")
@click.option("--layer", metavar="NAME", default="", help="Attention layer; by default the last that sees the source.")
@click.option(
    "--output",
    metavar="FILE",
    default="attention.png",
    show_default=True,
    help="The picture: PNG or SVG, by the name's ending.",
)
@options.search
@options.scores
@options.gpu
@options.state
@options.imports
def attention(
    model: str,
    weights: list[str],
    source_vocabulary: str,
    target_vocabulary: str,
    vocabulary: str,
    source: str,
    target: str | None,
    layer: str,
    output: str,
    beam: int,
    length_penalty: float,
    max_length: int | None,
    scores: str,
    gpu: Any,
    level: int,
    stage: list[str],
    imports: Sequence[str],
) -> None:
    """Draw the weights of an attention layer.

    The model is an encoder-decoder as for translate, or a language model as for generate. There is a panel for each
    head: a row for each token that looks, a column for each token that is looked at. The layer needs no top for its
    weights.
    """
    if not weights:
        raise click.UsageError("Missing option '--weights': the trained net to look into.")
    check_format(output)
    import_matplotlib()
    use_device(gpu)
    import_modules(imports)
    with ExitStack() as stack:
        net = stack.enter_context(closing(Net(model, TEST, level=level, stages=stage)))
        is_pair = TARGET in net.inputs
        chosen = find_attention(net, layer, dependents(net, TARGET) if is_pair else ())
        if weights_blob(net, chosen) is None:
            net = stack.enter_context(closing(Net(with_weights(net, chosen), TEST)))
            chosen = net.layer_dict[chosen.name]
        log.info("Attention of layer %s", chosen.name)
        for path in weights:
            net.copy_from(path)
        if is_pair:
            translator = Translator(net, *open_vocabularies(model, source_vocabulary, target_vocabulary), scores)
            tokens = encode_input(translator.source, source)
            if target is None:
                search = translator.search(beam, length_penalty)
                ((best,),) = translator.translate([tokens], search, max_length or 0)
                log.info("Target: %s", best.text)
                written = best.tokens
            else:
                written = tuple(encode_text(translator.target, target, "--target").tolist())
            found = align_pair(translator, chosen, tokens, written)
        elif target is not None:
            raise RecaffeError(f"--target is for an encoder-decoder; net {net.name!r} has no input {TARGET!r}")
        else:
            words = open_model_vocabulary(vocabulary, model)
            step_net = StepNet(net, scores)
            step_net.output.check_tokens(len(words), "--vocabulary")
            found = align_text(step_net, chosen, words, encode_input(words, source))
        save_picture(output, found.weights, found.rows, found.columns, title=chosen.name)
        log.info("Wrote %s", output)


def encode_input(vocabulary: Vocabulary, text: str) -> np.ndarray:
    """The tokens of ``--input``."""
    tokens = encode_text(vocabulary, text, "--input")
    if not len(tokens):
        raise RecaffeError("--input has no tokens: there is nothing to look at")
    return tokens
