"""``recaffe time``: how long each layer takes, forward and backward."""

import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from time import perf_counter
from typing import Any

import click

from ...proto import Phase
from ..net import Net
from . import options
from .devices import use_device
from .imports import import_modules

log = logging.getLogger("recaffe")

MILLISECONDS = 1000.0


@click.command()
@options.model
@options.iterations
@options.gpu
@click.option(
    "--phase",
    type=click.Choice(["TRAIN", "TEST"], case_sensitive=False),
    default="TRAIN",
    show_default=True,
    help="Phase of the net.",
)
@options.state
@options.imports
def time(
    model: str,
    iterations: int,
    gpu: Any,
    phase: str,
    level: int,
    stage: list[str],
    imports: Sequence[str],
) -> None:
    """Time a net, layer by layer."""
    use_device(gpu)
    import_modules(imports)
    with closing(Net(model, Phase.Value(phase), level=level, stages=stage)) as net:
        log.info("Performing Forward")
        log.info("Initial loss: %g", net.forward_from_to(0, len(net.steps) - 1))
        log.info("Performing Backward")
        net.backward_from_to(len(net.steps) - 1, 0)
        benchmark(net, iterations)


def benchmark(net: Net, iterations: int) -> None:
    """Run ``iterations`` passes; log the average of every layer, of each direction and of both."""
    log.info("*** Benchmark begins ***")
    log.info("Testing for %d iterations.", iterations)
    layers = range(len(net.steps))
    forward, backward = [0.0] * len(layers), [0.0] * len(layers)
    for iteration in range(iterations):
        net.clear_param_diffs()
        before = sum(forward) + sum(backward)
        for i in layers:
            forward[i] += _duration(net, net.forward_from_to, i)
        for i in reversed(layers):
            backward[i] += _duration(net, net.backward_from_to, i)
        passed = sum(forward) + sum(backward) - before
        log.info("Iteration: %d forward-backward time: %g ms.", iteration + 1, passed * MILLISECONDS)
    log.info("Average time per layer: ")
    average = MILLISECONDS / iterations
    for layer, forward_time, backward_time in zip(net.layers, forward, backward, strict=True):
        log.info("%10s\tforward: %g ms.", layer.name, forward_time * average)
        log.info("%10s\tbackward: %g ms.", layer.name, backward_time * average)
    log.info("Average Forward pass: %g ms.", sum(forward) * average)
    log.info("Average Backward pass: %g ms.", sum(backward) * average)
    log.info("Average Forward-Backward: %g ms.", (sum(forward) + sum(backward)) * average)
    log.info("Total Time: %g ms.", (sum(forward) + sum(backward)) * MILLISECONDS)
    log.info("*** Benchmark ends ***")


def _duration(net: Net, run: Callable[[int, int], object], layer: int) -> float:
    """Seconds that ``run`` takes for one layer."""
    start = perf_counter()
    run(layer, layer)
    net.backend.synchronize()
    return perf_counter() - start
