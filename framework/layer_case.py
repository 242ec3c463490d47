"""A layer under check: what goes in, one pass both ways, and how outcomes are compared."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from ..proto import TRAIN
from .backend import Backend, CpuBackend
from .gradient_check import differentiable, top_weights
from .layer import Layer, place
from .single_layer import Description, SingleLayer, Values, describe, draw


@dataclass(frozen=True)
class LayerCase:
    """A layer to check, with what goes in.

    - ``layer``: its class, the text inside ``layer { }``, or a LayerParameter
    - ``bottoms``: arrays, or shapes to fill with normal numbers
    - ``other_bottoms``: bottoms of other shapes for the reshape check; by default one more item on axis 0
    - ``check_bottoms``: numbers of the bottoms that have a gradient; by default what ``allow_force_backward`` says
    - ``check_tops``: numbers of the tops whose gradients count; by default all, of a loss layer its losses
    - ``parameters``: their values; by default random where they are learnt
    - ``prepare``: called with each layer that is built (to hand data over, say)
    - ``kink``: elements whose absolute value is within ``kink_range`` of it are left out of the numeric gradient
    - ``tolerance``: of the numeric gradient; ``float32_tolerance``: of float32 against float64; both relative to
      the largest value
    - ``skip``: names of checks that make no sense for the layer
    """

    layer: Description
    bottoms: Sequence[Values] = ()
    phase: int = TRAIN
    other_bottoms: Sequence[Values] | None = None
    check_bottoms: Sequence[int] | None = None
    check_tops: Sequence[int] | None = None
    parameters: Sequence[np.ndarray] | None = None
    prepare: Callable[[Layer], None] | None = None
    kink: float | None = None
    kink_range: float = 0.01
    tolerance: float = 1e-6
    float32_tolerance: float = 1e-5
    seed: int = 0
    skip: Sequence[str] = ()

    @cached_property
    def arrays(self) -> list[np.ndarray]:
        """The bottoms as arrays whose values are the same in float32 and float64."""
        return rounded(draw(self.bottoms, self.seed))

    @cached_property
    def other_arrays(self) -> list[np.ndarray]:
        """The bottoms of other shapes."""
        if self.other_bottoms is not None:
            return rounded(draw(self.other_bottoms, self.seed))
        return [np.concatenate([array, array[:1]]) if array.ndim else array for array in self.arrays]

    @contextmanager
    def build(self, backend: Backend | None = None, **options: Any) -> Iterator["Subject"]:
        """The layer set up on ``backend`` (plain NumPy on one thread by default)."""
        options = {"bottoms": self.arrays, "dtype": np.float64, **options}
        single = SingleLayer(
            self.layer,
            backend=backend or plain_cpu(),
            phase=self.phase,
            parameters=self.parameters,
            seed=self.seed,
            **options,
        )
        try:
            if self.prepare is not None:
                self.prepare(single.layer)
            yield Subject(self, single)
        finally:
            single.layer.close()


class Subject:
    """The layer of a case as one check has it, with the diffs that go in at its tops."""

    def __init__(self, case: LayerCase, single: SingleLayer):
        self.case, self.single, self.layer = case, single, single.layer
        self.propagate_down, self.counted = differentiable(single, case.check_bottoms, case.check_tops)
        self.has_gradient = any(self.propagate_down) or bool(single.learnt() and single.top)

    def pass_both_ways(self) -> "Outcome":
        """One pass forward and, if the layer has gradients, one backward into cleared diffs."""
        tops = self.single.forward()
        if not self.has_gradient:
            return Outcome(tops, {}, {})
        for blob in self.layer.blobs:
            blob.clear_diff()
        self.backward(tops)
        return Outcome(tops, self.bottom_diffs(), self.parameter_diffs())

    def set_top_diffs(self, tops: Sequence[np.ndarray]) -> None:
        """Give the tops the same random diffs each time."""
        self.single.set_top_diffs(top_weights(tops, self.counted, self.case.seed))

    def backward(self, tops: Sequence[np.ndarray]) -> None:
        """Backward from those diffs, to all bottoms that have a gradient."""
        self.set_top_diffs(tops)
        self.single.backward(self.propagate_down)

    def bottom_diffs(self) -> dict[int, np.ndarray]:
        """The gradients of the bottoms that have one."""
        return {j: diff for j, diff in enumerate(self.single.bottom_diffs()) if self.propagate_down[j]}

    def parameter_diffs(self) -> dict[int, np.ndarray]:
        """The gradients of the parameters that are learnt."""
        diffs = self.single.parameter_diffs()
        return {i: diffs[i] for i in self.single.learnt()}


@dataclass
class Outcome:
    """What one pass gave, by top, bottom and parameter number."""

    tops: list[np.ndarray]
    bottom_diffs: dict[int, np.ndarray]
    parameter_diffs: dict[int, np.ndarray]

    def items(self) -> Iterator[tuple[str, np.ndarray]]:
        """All values with what they are."""
        yield from ((f"top {j}", values) for j, values in enumerate(self.tops))
        yield from ((f"diff of bottom {j}", values) for j, values in self.bottom_diffs.items())
        yield from ((f"diff of parameter {i}", values) for i, values in self.parameter_diffs.items())


def same_outcomes(case: LayerCase, got: Outcome, expected: Outcome, when: str, tolerance: float = 0.0) -> None:
    for (what, values), (_, wanted) in zip(got.items(), expected.items(), strict=True):
        same(case, f"{what} {when}", values, wanted, tolerance)


def same(case: LayerCase, what: str, got: np.ndarray, expected: np.ndarray, tolerance: float = 0.0) -> None:
    """Raise AssertionError unless ``got`` is within ``tolerance`` times the largest value of ``expected``."""
    if got.shape != expected.shape:
        raise AssertionError(f"{label(case)}: {what}: expected the shape {expected.shape}, got {got.shape}")
    bound = tolerance * np.abs(expected).max(initial=1e-3)
    wrong = ~(np.abs(got - expected) <= bound) & ~((got == expected) | (np.isnan(got) & np.isnan(expected)))
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{label(case)}: {what}: {wrong.sum()} of {wrong.size} values are wrong, the first at {list(index)}:"
            f" expected {expected[index]:.9g}, got {got[index]:.9g}"
        )


def label(case: LayerCase) -> str:
    return place(describe(case.layer), "")


def rounded(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [array.astype(np.float32).astype(np.float64) for array in arrays]


class PlainCpuBackend(CpuBackend):
    """NumPy alone, without fused kernels."""

    fused: Any = {}


@cache
def plain_cpu() -> Backend:
    """The backend that the others are compared with."""
    return PlainCpuBackend(threads=1)
