"""ExampleSource: batches of examples that have lengths, in turn, shuffled, or those of similar lengths together."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np

from ...framework.errors import RecaffeError
from .order import Order
from .prefetcher import BatchSource


class Padding(Enum):
    """How a top tells true steps from padding; as recurrent_param's ``padding``."""

    MASK = 1  # T x N: 1 at true steps, else 0
    LENGTHS = 2  # N: the number of true steps

    def shape(self, T: int, N: int) -> tuple[int, ...]:
        """The shape of such a top."""
        return (T, N) if self is Padding.MASK else (N,)

    def write(self, out: np.ndarray, lengths: Any) -> None:
        """out = the mask or the lengths of sequences that have ``lengths`` true steps."""
        out[...] = np.arange(len(out))[:, None] < np.asarray(lengths) if self is Padding.MASK else lengths


class ExampleSource(BatchSource):
    """Each batch takes the next ``batch_size`` examples; after the last one comes the first again.

    With ``sort_batches`` above 1 the examples of so many batches are sorted by length before they are cut into
    batches, which are then used in random order (with ``shuffle``): less padding.
    """

    def __init__(
        self, lengths: np.ndarray, batch_size: int, shuffle: bool, sort_batches: int, rng: np.random.Generator
    ):
        for name, value in (("batch_size", batch_size), ("sort_batches", sort_batches)):
            if value < 1:
                raise RecaffeError(f"{name} is {value}, expected 1 or more")
        self._lengths, self.batch_size, self._sort_batches = lengths, batch_size, sort_batches
        self._shuffle, self._rng = shuffle, rng
        self._order = Order(len(lengths), shuffle, rng)
        self._forget_pool()

    def _forget_pool(self) -> None:
        self._pool, self._used = np.empty((0, self.batch_size), np.int64), 0
        self._before_pool = {"rng": self._rng.bit_generator.state, "order": self._order.get_state()}

    def next_examples(self) -> np.ndarray:
        """The numbers of the examples of the next batch."""
        if self._used == len(self._pool):
            self._fill_pool()
        self._used += 1
        return self._pool[self._used - 1]

    def peek_examples(self) -> np.ndarray:
        """What ``next_examples`` will give."""
        state = self.get_state()
        examples = self.next_examples()
        self.set_state(state)
        return examples

    def _fill_pool(self) -> None:
        self._forget_pool()
        wanted = self.batch_size * self._sort_batches
        parts: list[np.ndarray] = []
        while (missing := wanted - sum(map(len, parts))) > 0:
            if self._order.finished:
                self._order.start_epoch()
            parts.append(self._order.take(missing))
        examples = np.concatenate(parts)
        if self._sort_batches > 1:
            examples = examples[np.argsort(self._lengths[examples], kind="stable")]
        self._pool = examples.reshape(-1, self.batch_size)
        if self._sort_batches > 1 and self._shuffle:
            self._pool = self._rng.permutation(self._pool)

    def get_state(self) -> dict[str, Any]:
        return {**self._before_pool, "used": self._used}

    def set_state(self, state: Mapping[str, Any]) -> None:
        used = int(state["used"])
        if not 0 <= used <= self._sort_batches:
            raise RecaffeError(f"the saved state is {used} batches into a pool of {self._sort_batches} (sort_batches)")
        self._order.set_state(state["order"])
        self._rng.bit_generator.state = state["rng"]
        self._forget_pool()
        if used:
            self._fill_pool()
        self._used = used


def check_length(name: str, length: int) -> None:
    """Raise RecaffeError unless ``length`` is 0 (as the longest of each batch) or a number of steps."""
    if length < 0:
        raise RecaffeError(f"{name} is {length}, expected 0 (the longest of each batch) or the number of steps")


def check_room(name: str, length: int, steps: int, where: str) -> None:
    """Raise RecaffeError if ``length`` is fixed and the sequence at ``where`` has more steps."""
    if length and steps > length:
        raise RecaffeError(f"{where}: the sequence has {steps} steps, but {name} is {length}")


def put_columns(out: np.ndarray, sequences: Sequence[np.ndarray], padding: float) -> None:
    """out[:, n] = sequence n, then ``padding``."""
    for n, sequence in enumerate(sequences):
        out[: len(sequence), n] = sequence
        out[len(sequence) :, n] = padding
