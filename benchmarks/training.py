"""Whole training iterations of a sequence model of models/: batch, forward, backward and the solver's update.

A net is named ``train_MODEL``: ``train_char_transformer``.  Its data must be there, as the README of the model says;
PyTorch's twin is that of ``sequence_models.py``, and reads the same batches.
"""

from collections.abc import Callable
from typing import Any

MODELS = ("char_transformer", "char_lstm")


def names() -> list[str]:
    """Every model."""
    return [f"train_{model}" for model in MODELS]


def recaffe_passes(name: str) -> Callable[[], object]:
    """One iteration in recaffe."""
    solver = make_solver(name)
    solver.net.keeps_diffs = False  # as the command line trains
    return lambda: solver.step(1)


def torch_passes(name: str) -> Callable[[], object]:
    """One iteration in PyTorch."""
    from .sequence_models import TorchTraining

    return TorchTraining(make_solver(name)).step


def make_solver(name: str) -> Any:
    """The model's solver, which trains without end and does nothing else."""
    import recaffe
    from recaffe.proto import read_solver

    param = read_solver(f"models/{name.removeprefix('train_')}/solver.prototxt")
    param.test_interval, param.snapshot = 1 << 30, 0
    return recaffe.get_solver(param)
