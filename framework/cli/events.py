"""``--log-dir``: losses, rates and outputs as event files that TensorBoard shows."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import numpy as np

from ..errors import RecaffeError
from ..observer import Observer
from ..solver import Solver


class EventWriter(Observer):
    """Writes scalars whenever the log shows them: ``loss``, ``lr``, ``train/OUTPUT``, ``test/OUTPUT``.

    A second test net's outputs are under ``test1/``; the values of an output that has several are numbered.
    """

    def __init__(self, folder: Path, solver: Solver):
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise RecaffeError(
                "--log-dir writes event files with tensorboardX, which is not installed:"
                " pip install 'recaffe[tensorboard]'"
            ) from None
        self._solver = solver
        self._writer = SummaryWriter(str(folder))

    def __enter__(self) -> "EventWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    def on_display(self, iteration: int, outputs: Mapping[str, np.ndarray]) -> None:
        self._writer.add_scalar("loss", self._solver.smoothed_loss, iteration)
        self._writer.add_scalar("lr", self._solver.lr, iteration)
        self._write("train", iteration, outputs)

    def on_test(self, iteration: int, net_index: int, scores: Mapping[str, np.ndarray]) -> None:
        self._write(f"test{net_index or ''}", iteration, scores)

    def _write(self, group: str, iteration: int, outputs: Mapping[str, np.ndarray]) -> None:
        for name, array in outputs.items():
            for number, value in enumerate(array.flat):
                tag = f"{group}/{name}" if array.size == 1 else f"{group}/{name}/{number}"
                self._writer.add_scalar(tag, float(value), iteration)
