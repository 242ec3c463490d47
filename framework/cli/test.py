"""``recaffe test``: the outputs and the loss of a trained net, averaged over batches."""

import logging
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import click
import numpy as np

from ...proto import TEST
from ..errors import RecaffeError
from ..net import Net
from ..solver_nets import output_weights
from . import options
from .devices import use_device
from .imports import import_modules

log = logging.getLogger("recaffe")


@click.command()
@options.model
@options.weights
@options.iterations
@options.gpu
@options.state
@options.imports
def test(
    model: str,
    weights: list[str],
    iterations: int,
    gpu: Any,
    level: int,
    stage: list[str],
    imports: Sequence[str],
) -> None:
    """Score a trained net on its test data."""
    if not weights:
        raise click.UsageError("Missing option '--weights': the trained net to score.")
    use_device(gpu)
    import_modules(imports)
    with closing(Net(model, TEST, level=level, stages=stage)) as net:
        if not net.outputs:
            raise RecaffeError(f"{model}: the net has no outputs to score in the TEST phase")
        for path in weights:
            net.copy_from(path)
        score(net, iterations)


def score(net: Net, iterations: int) -> None:
    """Run ``iterations`` batches; log every output of every batch, then the means."""
    log.info("Running for %d iterations.", iterations)
    loss = 0.0
    totals: dict[str, np.ndarray] = {}
    for batch in range(iterations):
        loss += net.forward_from_to(0, len(net.steps) - 1)
        for name in net.outputs:
            values = net.backend.to_host(net.blobs[name].data).astype(np.float64).ravel()
            totals[name] = totals[name] + values if name in totals else values
            for value in values:
                log.info("Batch %d, %s = %g", batch, name, value)
    log.info("Loss: %g", loss / iterations)
    weights = output_weights(net)
    for name, total in totals.items():
        for value in total / iterations:
            weight = weights.get(name, 0.0)
            share = f" (* {weight:g} = {weight * value:g} loss)" if weight else ""
            log.info("%s = %g%s", name, value, share)
