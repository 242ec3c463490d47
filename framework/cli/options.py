"""The options that several commands share, and the types of their values."""

from collections.abc import Callable
from typing import Any

import click

ALL_GPUS = "all"


class GpuIds(click.ParamType):
    """``all``, or the numbers of GPUs: ``0`` or ``0,1``."""

    name = "ids"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or value == ALL_GPUS:
            return value
        words = value.split(",") if value else []
        if not all(word.strip().isdecimal() for word in words):
            self.fail(f"{value!r}: expected the number of a GPU (0), several (0,1), or all", param, ctx)
        return [int(word) for word in words]


class CommaList(click.ParamType):
    """Words between commas."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        return [word.strip() for word in value.split(",") if word.strip()]


def options(*chosen: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several click options as one decorator, in the order of the help."""

    def decorate(function: Any) -> Any:
        for option in reversed(chosen):
            function = option(function)
        return function

    return decorate


def not_empty(context: click.Context, param: click.Parameter, value: str) -> str:
    """``value``; an empty one (a variable of a script that is not set) is as none."""
    if not value:
        raise click.MissingParameter(ctx=context, param=param)
    return value


gpu = click.option("--gpu", type=GpuIds(), default="", help="GPU to compute on: a number, several (0,1), or all.")
model = click.option("--model", metavar="FILE", required=True, callback=not_empty, help="Net as a prototxt.")
iterations = click.option(
    "--iterations", type=click.IntRange(min=1), default=50, show_default=True, help="Batches to run."
)
weights = click.option(
    "--weights",
    metavar="FILES",
    type=CommaList(),
    default="",
    help="Trained weights (.caffemodel or .h5), comma separated.",
)
state = options(
    click.option("--level", type=int, default=0, show_default=True, help="Level of the net's state."),
    click.option(
        "--stage", metavar="NAMES", type=CommaList(), default="", help="Stages of the net's state, comma separated."
    ),
)
imports = click.option(
    "--import",
    "imports",
    metavar="MODULE",
    multiple=True,
    help="Python module or .py file with layers of your own; may be repeated.",
)
vocabulary = click.option(
    "--vocabulary",
    metavar="FILE",
    default="",
    help="Vocabulary of a language model; by default vocabulary.json beside the model, else bytes.",
)
vocabularies = options(
    click.option(
        "--source-vocabulary",
        metavar="FILE",
        default="",
        help="Vocabulary of the source; by default source.json beside the model.",
    ),
    click.option(
        "--target-vocabulary",
        metavar="FILE",
        default="",
        help="Vocabulary of the target; by default target.json beside the model.",
    ),
)
search = options(
    click.option(
        "--beam", type=click.IntRange(min=1), default=4, show_default=True, help="Width of the beam; 1 is greedy."
    ),
    click.option(
        "--length-penalty",
        type=float,
        default=0.6,
        show_default=True,
        help="The a of log P / ((5 + length) / 6)^a, by which texts are ranked.",
    ),
    click.option(
        "--max-length",
        type=click.IntRange(min=1),
        default=None,
        help="Most tokens of a text and its end; by default twice those of the source and 10 more.",
    ),
)
scores = click.option(
    "--scores", metavar="BLOB", default="", help="Blob of the scores, where the decoder has several outputs."
)
