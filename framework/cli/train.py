"""``recaffe train``: train a net as a solver's prototxt says."""

import logging
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from ...proto import SolverParameter
from ..errors import RecaffeError
from ..learning_rate import create_learning_rate
from ..solver import Solver, load_solver_param
from . import options
from .devices import gpu_is_usable, use_device
from .events import EventWriter
from .imports import import_modules
from .logs import StderrHandler, logging_to_file
from .stop_signals import EFFECTS, SignalRequests

log = logging.getLogger("recaffe")


@click.command()
@click.option("--solver", metavar="FILE", required=True, callback=options.not_empty, help="Solver as a prototxt.")
@click.option("--snapshot", metavar="FILE", default="", help="Solver state (.solverstate) to go on from.")
@options.weights
@options.gpu
@click.option("--cpu", is_flag=True, help="Compute on the CPU whatever the solver says.")
@click.option(
    "--sigint-effect", type=click.Choice(EFFECTS), default="stop", show_default=True, help="What the first Ctrl-C does."
)
@click.option(
    "--sighup-effect", type=click.Choice(EFFECTS), default="snapshot", show_default=True, help="What SIGHUP does."
)
@options.state
@options.imports
@click.option("--log-dir", metavar="DIR", default="", help="Folder for TensorBoard event files and a copy of the log.")
@click.pass_obj
def train(
    handler: StderrHandler,
    solver: str,
    snapshot: str,
    weights: list[str],
    gpu: Any,
    cpu: bool,
    sigint_effect: str,
    sighup_effect: str,
    level: int,
    stage: list[str],
    imports: Sequence[str],
    log_dir: str,
) -> None:
    """Train a net as a solver says.

    It starts afresh, from trained weights (--weights), or where a snapshot left off (--snapshot).
    Ctrl-C stops after the iteration, with a snapshot; a second Ctrl-C ends at once.
    """
    if snapshot and weights:
        raise click.UsageError("give --snapshot to go on, or --weights to start from trained weights, not both")
    if gpu and cpu:
        raise click.UsageError("give --gpu or --cpu, not both")
    import_modules(imports)
    param = load_solver_param(solver)
    if not param.HasField("max_iter"):
        raise RecaffeError(f"{solver}: max_iter, the number of iterations to train, is missing")
    create_learning_rate(param)  # what is wrong with the policy is told before the nets are built
    param.train_state.level = level or param.train_state.level
    param.train_state.stage.extend(stage)
    if weights:
        log.info("Finetuning from %s", ", ".join(weights))
        param.weights[:] = weights
    use_device([] if cpu else gpu or device_of(param))
    with ExitStack() as stack:
        if log_dir:
            stack.enter_context(logging_to_file(Path(log_dir) / "recaffe.log"))
        running = Solver(param, Path(solver).parent)
        running.net.keeps_diffs = param.debug_info  # nobody else reads the gradients inside the net
        stack.callback(running.close)
        if not any(step.losses for step in running.net.steps):
            log.warning("the net to train, %r, has no loss: nothing will be learnt", running.net.name)
        if snapshot:
            log.info("Resuming from %s", snapshot)
            running.restore(snapshot)
        if log_dir:
            running.add_observer(stack.enter_context(EventWriter(Path(log_dir), running)))
        if sys.stderr.isatty():
            from .progress import ProgressBar

            running.add_observer(stack.enter_context(ProgressBar(handler, running.iter, param.max_iter)))
        requests = stack.enter_context(SignalRequests(sigint_effect, sighup_effect))
        running.set_action_function(requests.take)
        log.info("Starting Optimization")
        running.solve()


def device_of(param: SolverParameter) -> list[int]:
    """The GPU that a solver asks for; one that does not say takes a GPU if there is one."""
    wants_gpu = param.solver_mode == SolverParameter.GPU
    if wants_gpu and (param.HasField("solver_mode") or gpu_is_usable()):
        return [param.device_id]
    return []
