"""A picture of attention weights: for each head, how much each token of one text looks at each of another."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .errors import RecaffeError

FORMATS = (".png", ".svg")
MOST_COLUMNS = 4  # of heads
CELL, LEAST_PANEL, WIDEST = 0.24, 1.6, 24.0  # inches: a token, the least side of a panel, all panels side by side
LEAST_FONT, LARGEST_FONT = 3.0, 9.0  # points
DOTS = 120  # an inch


def check_format(path: str) -> None:
    """Raise RecaffeError unless a picture can be written under this name."""
    if Path(path).suffix.lower() not in FORMATS:
        raise RecaffeError(f"{path}: a picture's name ends in {' or '.join(FORMATS)}")


def import_matplotlib() -> Any:
    """matplotlib; RecaffeError without it."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise RecaffeError(
            f"pictures are drawn with matplotlib, which cannot be imported ({error});"
            " pip install matplotlib, or 'recaffe[pictures]'"
        ) from None
    return matplotlib


def save_picture(path: str, weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], title: str) -> None:
    """Draw ``weights`` (heads x rows x columns) into the file ``path``, PNG or SVG by its name."""
    check_format(path)
    figure = draw(weights, rows, columns, title)
    try:
        with import_matplotlib().rc_context({"svg.fonttype": "none"}):  # text stays text
            figure.savefig(path, dpi=DOTS)
    except OSError as error:
        raise RecaffeError(f"{path}: the picture cannot be written: {error.strerror}") from None


def draw(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], title: str) -> Any:
    """A matplotlib figure with a panel for each head."""
    heads = len(weights)
    across = min(heads, MOST_COLUMNS)
    down = math.ceil(heads / across)
    cell = min(CELL, WIDEST / (across * max(len(rows), len(columns))))
    width, height = (max(LEAST_PANEL, cell * len(tokens)) + 0.8 for tokens in (columns, rows))
    size = across * width + 0.8, down * height + 0.5
    figure = import_matplotlib().figure.Figure(figsize=size, layout="constrained")
    figure.suptitle(title, parse_math=False)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for head, axes in enumerate(panels[:heads]):
        image = axes.imshow(weights[head], cmap="Blues", vmin=0, vmax=float(weights.max()), aspect="auto")
        label_axis(axes.xaxis, columns, cell)
        label_axis(axes.yaxis, rows, cell)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        if heads > 1:
            axes.set_xlabel(f"head {head + 1}")
    for axes in panels[heads:]:
        axes.set_axis_off()
    figure.colorbar(image, ax=list(panels), fraction=0.05, aspect=30)
    return figure


def label_axis(axis: Any, tokens: Sequence[str], cell: float) -> None:
    """Put the tokens beside their cells, where they can be read; else the axis keeps its numbers."""
    points = min(72 * 0.8 * cell, LARGEST_FONT)
    if points < LEAST_FONT:
        return
    turned = axis.axis_name == "x" and max(map(len, tokens)) > 2
    axis.set_ticks(range(len(tokens)), tokens, fontsize=points, rotation=90 if turned else 0)
    for label in axis.get_ticklabels():
        label.set_parse_math(False)
