"""Checks that every layer must pass, those that come with recaffe and a user's own.

    from recaffe.framework.layer_checks import check_layer
    check_layer("type: 'Swish'", [(2, 3, 4)])

builds the layer by itself, runs it forward and backward on random numbers, and raises AssertionError at the
first thing that a net could not rely on.  Each check is a function of a ``LayerCase`` and can be run alone.
"""

import unittest
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from .backend import Backend, CpuBackend, GpuBackend
from .errors import RecaffeError
from .gradient_check import compare, layer_objective
from .layer_case import LayerCase, label, plain_cpu, same, same_outcomes
from .single_layer import Description, Values
from .strict_array import arrays_made
from .strict_backend import StrictBackend


def check_numeric_gradient(case: LayerCase) -> None:
    """backward is the gradient of forward: central differences in float64."""
    with case.build() as subject:
        objective = layer_objective(subject.single, case.check_bottoms, case.check_tops)
        compare(objective, kink=case.kink, kink_range=case.kink_range, tolerance=case.tolerance, seed=case.seed)


def check_bottom_diffs_overwritten(case: LayerCase) -> None:
    """What a bottom's diff held before backward does not matter."""
    with case.build() as subject:
        expected = subject.pass_both_ways()
        tops = subject.single.forward()
        for blob, wanted in zip(subject.single.bottom, subject.propagate_down, strict=True):
            if wanted:
                blob.diff.fill(np.nan)
        if any(subject.propagate_down):
            subject.backward(tops)
            for j, diff in subject.bottom_diffs().items():
                same(case, f"diff of bottom {j}, filled with NaN before backward", diff, expected.bottom_diffs[j])


def check_parameter_diffs_added(case: LayerCase) -> None:
    """backward adds to a parameter's diff what it holds already, so that iter_size and shared weights work."""
    with case.build() as subject:
        gradients = subject.pass_both_ways().parameter_diffs
        before = {i: np.cos(np.arange(diff.size)).reshape(diff.shape) for i, diff in gradients.items()}
        for i, values in before.items():
            subject.layer.blobs[i].diff[...] = subject.single.device(values)
        for times in (1, 2):
            if gradients:
                subject.backward(subject.single.forward())
            for i, diff in subject.parameter_diffs().items():
                what = f"diff of parameter {i} after {times} backward pass(es) on a diff that was not zero"
                same(case, what, diff, before[i] + times * gradients[i], 1e-9)


def check_propagate_down_off(case: LayerCase) -> None:
    """Where propagate_down is off, the bottom's diff is left alone and all others are right."""
    with case.build() as subject:
        expected = subject.pass_both_ways()
        for off in [j for j, wanted in enumerate(subject.propagate_down) if wanted]:
            tops = subject.single.forward()
            for i in subject.single.learnt():
                subject.layer.blobs[i].clear_diff()
            subject.single.bottom[off].diff.fill(7)
            subject.set_top_diffs(tops)
            untouched = subject.single.bottom_diffs()[off]  # not 7 where the layer lets top and bottom share it
            subject.single.backward([wanted and j != off for j, wanted in enumerate(subject.propagate_down)])
            for j, diff in subject.bottom_diffs().items():
                what = f"diff of bottom {j} with propagate_down off for bottom {off}"
                same(case, what, diff, untouched if j == off else expected.bottom_diffs[j])
            for i, diff in subject.parameter_diffs().items():
                what = f"diff of parameter {i} with propagate_down off for bottom {off}"
                same(case, what, diff, expected.parameter_diffs[i])


def check_parameters_off(case: LayerCase) -> None:
    """Where param_propagate_down is off (lr_mult: 0), the parameter's diff is left alone and all others are right."""
    with case.build() as subject:
        expected = subject.pass_both_ways()
        for off in subject.single.learnt():
            subject.layer.param_propagate_down[off] = False
            for blob in subject.layer.blobs:
                blob.diff.fill(0)
            subject.backward(subject.single.forward())
            subject.layer.param_propagate_down[off] = True
            for i, diff in subject.parameter_diffs().items():
                what = f"diff of parameter {i} with param_propagate_down off for parameter {off}"
                same(case, what, diff, 0 * diff if i == off else expected.parameter_diffs[i])
            for j, diff in subject.bottom_diffs().items():
                what = f"diff of bottom {j} with param_propagate_down off for parameter {off}"
                same(case, what, diff, expected.bottom_diffs[j])


def check_inputs_untouched(case: LayerCase) -> None:
    """Neither pass writes into the bottoms' data or into parameters that are learnt."""
    with case.build() as subject:
        parameters = subject.single.parameters()
        subject.pass_both_ways()
        for j, (blob, expected) in enumerate(zip(subject.single.bottom, case.arrays, strict=True)):
            same(case, f"data of bottom {j} after a pass", subject.single.host(blob.data), expected)
        for i in subject.single.learnt():
            same(case, f"data of parameter {i} after a pass", subject.single.parameters()[i], parameters[i])


def check_reshape(case: LayerCase) -> None:
    """A layer that has seen other shapes computes what a fresh one does."""
    if not case.arrays:
        return
    with case.build() as subject:
        subject.pass_both_ways()
        for arrays in (case.other_arrays, case.arrays):
            with case.build(bottoms=arrays) as fresh:
                parameters = fresh.single.parameters()
                expected = fresh.pass_both_ways()
            subject.single.set_bottoms(arrays)
            subject.single.set_parameters(parameters)
            same_outcomes(case, subject.pass_both_ways(), expected, "after a reshape", 1e-12)


def check_repeatable(case: LayerCase) -> None:
    """The same inputs, parameters, state and random numbers give the same bits."""
    with case.build() as subject:
        parameters = subject.single.parameters()
        first = subject.pass_both_ways()
        subject.single.set_parameters(parameters)
        same_outcomes(case, subject.pass_both_ways(), first, "in a second pass")


def check_state_resumes(case: LayerCase) -> None:
    """A fresh layer given the parameters, ``get_state()`` and the random numbers goes on as the old one does."""
    backend = plain_cpu()
    with case.build() as old:
        old.single.forward()
        state, parameters, numbers = old.layer.get_state(), old.single.parameters(), backend.random_state()
        expected = old.single.run() if old.single.top else []
    with case.build() as new:
        new.single.state = state
        new.single.restart()
        new.single.set_parameters(parameters)
        backend.set_random_state(numbers)
        got = new.single.run() if new.single.top else []
    for j, (values, wanted) in enumerate(zip(got, expected, strict=True)):
        same(case, f"top {j} of a layer that was given the state of another", values, wanted)


def check_in_place(case: LayerCase) -> None:
    """With the first bottom as its top, the layer computes the same (where its class says ``in_place``)."""
    with case.build() as subject:
        if not subject.layer.in_place:
            return
        expected = subject.pass_both_ways()
    with case.build(in_place=True) as subject:
        same_outcomes(case, subject.pass_both_ways(), expected, "in place", 1e-12)


def check_float32(case: LayerCase) -> None:
    """float32 agrees with float64, and tops and diffs have the layer's dtype."""
    with case.build() as subject:
        expected = subject.pass_both_ways()
    with case.build(dtype=np.float32) as subject:
        got = subject.pass_both_ways()
        for what, values in got.items():
            if values.dtype != np.float32:
                raise AssertionError(f"{label(case)}: {what} has dtype {values.dtype} in a float32 layer")
    same_outcomes(case, got, expected, "in float32 against float64", case.float32_tolerance)


def check_nan_seen(case: LayerCase) -> None:
    """A NaN among the inputs shows in a top: a training that goes wrong must be seen to."""
    with case.build() as subject:
        if not subject.single.top or not any(subject.propagate_down):
            return
        arrays = [array.copy() for array in case.arrays]
        j = subject.propagate_down.index(True)
        arrays[j].reshape(-1)[::3] = np.nan
        subject.single.set_bottoms(arrays)
        with np.errstate(invalid="ignore"):
            tops = subject.single.forward()
        if not any(np.isnan(top).any() for top in tops):
            raise AssertionError(f"{label(case)}: bottom {j} holds NaN, but no top does")


def check_fused(case: LayerCase) -> None:
    """The fused CPU kernels compute what the plain code does."""
    backend = fused_cpu()
    if not backend.fused:
        raise unittest.SkipTest("no fused kernels here: Numba is not installed, or RECAFFE_PLAIN is set")
    check_backend(case, backend)


def check_strict(case: LayerCase) -> None:
    """The layer keeps to ``xp``: it runs on an array module that refuses what CuPy refuses.

    In float32 it makes no float64 array as large as its largest blob.
    """
    try:
        with arrays_made() as made:
            check_backend(case, strict(), dtypes=(np.float32,))
        check_backend(case, strict(), dtypes=(np.float64,))
    except (TypeError, AttributeError, NotImplementedError) as error:
        raise AssertionError(f"{label(case)}: not ready for a GPU: {error}") from error
    with case.build(dtype=np.float32) as subject:
        largest = max((blob.count for blob in (*subject.single.bottom, *subject.single.top)), default=0)
    doubles = [size for dtype, size in made if dtype == np.float64 and size >= max(largest, 16)]
    if doubles:
        raise AssertionError(
            f"{label(case)}: a float32 layer made {len(doubles)} float64 array(s) of up to {max(doubles)} values;"
            " use self.dtype and out="
        )


def check_gpu(case: LayerCase) -> None:
    """The GPU computes what the CPU does."""
    check_backend(case, gpu())


CHECKS: dict[str, Callable[[LayerCase], None]] = {
    check.__name__: check
    for check in (
        check_numeric_gradient,
        check_bottom_diffs_overwritten,
        check_parameter_diffs_added,
        check_propagate_down_off,
        check_parameters_off,
        check_inputs_untouched,
        check_reshape,
        check_repeatable,
        check_state_resumes,
        check_in_place,
        check_float32,
        check_nan_seen,
        check_fused,
        check_strict,
        check_gpu,
    )
}


def check_layer(layer: Description, bottoms: Sequence[Values] = (), **options: Any) -> None:
    """Run all checks on a layer; the options are LayerCase's fields.

    Raises AssertionError that names layer, check, expected and got.  A check that cannot run here (no GPU, no
    Numba) is told by a warning.
    """
    case = LayerCase(layer, bottoms, **options)
    for name in case.skip:
        if name not in CHECKS:
            raise ValueError(f"no check is named {name!r}; they are: {', '.join(CHECKS)}")
    for name, check in CHECKS.items():
        if name in case.skip:
            continue
        try:
            check(case)
        except unittest.SkipTest as reason:
            warnings.warn(f"{label(case)}: {name} did not run: {reason}", stacklevel=2)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
        except Exception as error:
            error.add_note(f"in {name} of recaffe.framework.layer_checks")
            raise


@cache
def fused_cpu() -> Backend:
    """NumPy with fused kernels."""
    return CpuBackend()


@cache
def strict() -> Backend:
    """The stand-in for the GPU."""
    return StrictBackend()


@cache
def gpu() -> Backend:
    """The GPU; raises SkipTest where there is none."""
    try:
        return GpuBackend()
    except RecaffeError as error:
        raise unittest.SkipTest(str(error)) from None


def check_backend(case: LayerCase, backend: Backend, dtypes: Sequence[Any] = (np.float32, np.float64)) -> None:
    """``backend`` computes what plain NumPy on one thread does."""
    for dtype in dtypes:
        with case.build(dtype=dtype) as subject:
            expected = subject.pass_both_ways()
        with case.build(backend, dtype=dtype) as subject:
            got = subject.pass_both_ways()
        tolerance = case.float32_tolerance if dtype == np.float32 else 1e-10
        same_outcomes(case, got, expected, f"on {backend.name} in {np.dtype(dtype)} against plain NumPy", tolerance)
