"""The order in which records are read, epoch after epoch."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...framework.errors import RecaffeError


class Order:
    """The numbers 0 to ``count`` - 1 in turn, or with ``shuffle`` in a new random order each epoch.

    The order of an epoch follows from one seed drawn from ``rng``, so the state is two integers.
    """

    def __init__(self, count: int, shuffle: bool, rng: "np.random.Generator"):
        self.count, self.shuffle, self._rng = count, shuffle, rng
        self.start_epoch()

    def start_epoch(self) -> None:
        """Go to the first record of a new epoch."""
        self.position = 0
        self._seed = int(self._rng.integers(1 << 63)) if self.shuffle else 0
        self._shuffled = self._shuffle()

    @property
    def finished(self) -> bool:
        """Whether the epoch has no more records."""
        return self.position == self.count

    def take(self, most: int) -> np.ndarray:
        """The next record numbers: ``most`` of them, fewer at the end of the epoch."""
        start, self.position = self.position, min(self.position + most, self.count)
        if self._shuffled is None:
            return np.arange(start, self.position)
        return self._shuffled[start : self.position]

    def get_state(self) -> dict[str, int]:
        """The place in the order."""
        return {"position": self.position, "seed": self._seed}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from ``get_state()``.  Raises RecaffeError where there are fewer records than then."""
        if int(state["position"]) > self.count:
            raise RecaffeError(
                f"the saved state goes on after record {state['position']}, but there are {self.count};"
                " the data is not what it was"
            )
        self.position, self._seed = int(state["position"]), int(state["seed"])
        self._shuffled = self._shuffle()

    def _shuffle(self) -> np.ndarray | None:
        return np.random.default_rng(self._seed).permutation(self.count) if self.shuffle else None
