"""The nets of a solver: one to train and any number to test, from the fields of Caffe that name or hold them."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..proto import TEST, TRAIN, NetParameter, NetState, SolverParameter
from .backend import Backend
from .errors import RecaffeError
from .net import Net

log = logging.getLogger("recaffe")

TRAIN_FIELDS = ("train_net_param", "train_net", "net_param", "net")


def create_train_net(param: SolverParameter, folder: Path, backend: Backend) -> Net:
    """The net to train: exactly one of net, net_param, train_net and train_net_param gives it."""
    given = [name for name in TRAIN_FIELDS if param.HasField(name)]  # type: ignore[arg-type]
    if not given:
        raise RecaffeError(f"solver: no net to train; give one of {', '.join(reversed(TRAIN_FIELDS))}")
    if len(given) > 1:
        raise RecaffeError(f"solver: {' and '.join(given)} both give a net to train; give one")
    return _create_net(getattr(param, given[0]), TRAIN, param.train_state, param, folder, backend)


def create_test_nets(param: SolverParameter, folder: Path, backend: Backend) -> list[Net]:
    """The nets to test: those of test_net_param, of test_net, and net or net_param for what test_iter has more."""
    own: list[Any] = [*param.test_net_param, *param.test_net]
    common = [getattr(param, name) for name in ("net_param", "net") if param.HasField(name)]  # type: ignore[arg-type]
    iterations = list(param.test_iter)
    if len(iterations) < len(own) or (not common and len(iterations) != len(own)):
        raise RecaffeError(
            f"solver: test_iter is given {len(iterations)} time(s), expected once for each test net: {len(own)}"
        )
    sources = own + common * (len(iterations) - len(own))
    states = list(param.test_state)
    if states and len(states) != len(sources):
        raise RecaffeError(
            f"solver: test_state is given {len(states)} time(s), expected once for each test net: {len(sources)}"
        )
    if sources and param.test_interval <= 0:
        raise RecaffeError(f"solver: test_interval is {param.test_interval}, expected more than 0 with test nets")
    if any(count <= 0 for count in iterations):
        raise RecaffeError(f"solver: test_iter is {min(iterations)}, expected more than 0")
    states = states or [NetState()] * len(sources)
    return [
        _create_net(source, TEST, state, param, folder, backend) for source, state in zip(sources, states, strict=True)
    ]


def initial_weights(param: SolverParameter) -> Iterator[str]:
    """The files that the solver's ``weights`` names, each entry one or several between commas."""
    for entry in param.weights:
        yield from (path.strip() for path in entry.split(",") if path.strip())


def output_weights(net: Net) -> dict[str, float]:
    """The loss weight of each top that has one, by blob name."""
    return {blob.name: weight for step in net.steps for weight, blob in step.losses}


def find_file(path: str, folder: Path) -> str:
    """``path`` from the current folder as in Caffe, else from the solver's ``folder`` if it is there."""
    beside = folder / path
    if not Path(path).exists() and beside.exists():
        log.info("%s is not in the current folder; taking %s", path, beside)
        return str(beside)
    return path


def _create_net(
    source: str | NetParameter, phase: int, state: NetState, param: SolverParameter, folder: Path, backend: Backend
) -> Net:
    """A net in the merged state: the phase, the net's own level and stages, then the solver's."""
    if isinstance(source, str):
        source = find_file(source, folder)
    if state.HasField("phase"):
        phase = state.phase
    stages: Sequence[str] = list(state.stage)
    net = Net(source, phase, level=state.level, stages=stages, backend=backend)
    for path in initial_weights(param):
        net.copy_from(find_file(path, folder))
    return net
