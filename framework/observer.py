"""Watching a solver and asking it to stop."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import numpy as np


class Action(StrEnum):
    """What may be asked of a solver while it runs; it answers between two iterations."""

    STOP = "stop"
    SNAPSHOT = "snapshot"


class Observer:
    """Told of what a solver does; override what you want to know."""

    def on_start(self) -> None:
        """An iteration begins."""

    def on_gradients_ready(self) -> None:
        """The gradients are there, the update is not made yet."""

    def on_iteration(self, iteration: int, loss: float, lr: float) -> None:
        """``iteration`` updates are made; ``loss`` is that of the last one's batches."""

    def on_display(self, iteration: int, outputs: Mapping[str, np.ndarray]) -> None:
        """The outputs of the training net are logged."""

    def on_test(self, iteration: int, net_index: int, scores: Mapping[str, np.ndarray]) -> None:
        """A test net was scored: the mean of each output."""

    def on_snapshot(self, iteration: int, weights: Path, state: Path) -> None:
        """A snapshot was written."""
