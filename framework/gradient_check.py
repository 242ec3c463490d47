"""Numeric gradient check: backward against central differences, in float64.

For an objective E = sum over tops of sum(top * weight), with dE/dx by backward and
(E(x + h) - E(x - h)) / 2h by differences, element by element.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..proto import TRAIN
from .backend import Backend
from .blob import Blob
from .layer import place
from .net import Net
from .single_layer import Description, SingleLayer, Values, draw

SHOWN = 5  # wrong elements that a report lists


@dataclass
class Objective:
    """What is differentiated: the sum of ``tops`` times ``weights``, as a function of ``variables``.

    ``forward`` computes the tops from the blobs in ``held`` (the variables are among them), the same way each
    time; ``backward`` computes the variables' diffs after it.
    """

    label: str
    backend: Backend
    variables: list[tuple[str, Blob]]
    held: list[Blob]
    tops: list[Blob]
    weights: list[np.ndarray]
    forward: Callable[[], Any]
    backward: Callable[[], Any]


def gradient_check(
    checked: Description | Net,
    bottoms: Sequence[Values] = (),
    *,
    phase: int = TRAIN,
    check_bottoms: Sequence[int] | None = None,
    check_tops: Sequence[int] | None = None,
    parameters: Sequence[np.ndarray] | None = None,
    backend: Backend | None = None,
    kink: float | None = None,
    kink_range: float = 0.01,
    step: float = 1e-5,
    tolerance: float = 1e-6,
    most: int = 200,
    seed: int = 0,
) -> None:
    """Compare the gradients of a layer or a net with central differences; raises AssertionError where they differ.

    ``checked`` is a layer (its class, the text inside ``layer { }``, or a LayerParameter) or a float64 Net.

    A layer gets ``bottoms``: arrays, or shapes to fill with normal numbers.  ``check_bottoms`` and
    ``check_tops`` number the bottoms that have a gradient (by default those that ``allow_force_backward``
    grants) and the tops that count (by default all; of a loss layer, its losses).  Tops get random weights.

    A net is checked at the values its inputs and parameters have, with its loss as the objective; without a
    loss (and then with ``force_backward``), its outputs get random weights.

    Of each blob up to ``most`` elements are tried.  They may differ by ``tolerance`` times the largest
    gradient of the blob.  At a ``kink`` there is no derivative: elements whose absolute value is within
    ``kink_range`` of it are left out.
    """
    if isinstance(checked, Net):
        objective = net_objective(checked, seed)
    else:
        single = SingleLayer(
            checked, draw(bottoms, seed), phase=phase, backend=backend, parameters=parameters, seed=seed
        )
        objective = layer_objective(single, check_bottoms, check_tops)
    compare(objective, kink=kink, kink_range=kink_range, step=step, tolerance=tolerance, most=most, seed=seed)


def differentiable(
    single: SingleLayer, check_bottoms: Sequence[int] | None, check_tops: Sequence[int] | None
) -> tuple[list[bool], list[bool]]:
    """Which bottoms have a gradient, and which tops count: as asked for, else as the layer says."""
    layer = single.layer
    bottoms, tops = range(len(single.bottom)), range(len(single.top))
    wanted = [j for j in bottoms if layer.allow_force_backward(j)] if check_bottoms is None else check_bottoms
    counted = (single.loss_tops or tops) if check_tops is None else check_tops
    return [j in wanted for j in bottoms], [j in counted for j in tops]


def top_weights(tops: Sequence[np.ndarray | Blob], counted: Sequence[bool], seed: int) -> list[np.ndarray]:
    """Random weights for the tops that count, zeros for the others."""
    rng = np.random.default_rng(seed + 2)
    return [rng.normal(size=top.shape) * count for top, count in zip(tops, counted, strict=True)]


def layer_objective(
    single: SingleLayer, check_bottoms: Sequence[int] | None, check_tops: Sequence[int] | None
) -> Objective:
    """The objective of a layer on its own, as a function of its bottoms and parameters."""
    layer = single.layer
    propagate_down, counted = differentiable(single, check_bottoms, check_tops)
    parameters = single.parameters()
    weights = top_weights(single.forward(), counted, single.seed)
    single.set_parameters(parameters)
    single.set_bottoms(single.values)

    def forward() -> None:
        single.restart()
        single.run()

    def backward() -> None:
        for blob in layer.blobs:
            blob.clear_diff()
        single.set_top_diffs(weights)
        single.backward(propagate_down)

    variables = [(f"bottom {j}", blob) for j, blob in enumerate(single.bottom) if propagate_down[j]]
    variables += [(f"parameter {i}", layer.blobs[i]) for i in single.learnt()]
    held = [*single.bottom, *layer.blobs]
    return Objective(place(layer.param, ""), single.backend, variables, held, single.top, weights, forward, backward)


def net_objective(net: Net, seed: int) -> Objective:
    """The loss of a net, or its outputs with random weights, as a function of its inputs and parameters."""
    if net.dtype != np.float64:
        raise ValueError(f"gradients are checked in float64; this net is {net.dtype}: Net(..., dtype=numpy.float64)")
    state, numbers = net.get_state(), net.backend.random_state()

    def forward() -> None:
        net.reset_states()
        net.set_state(state)
        net.backend.set_random_state(numbers)
        net.forward_from_to(0, len(net.steps) - 1)

    held = [*(net.blobs[name] for name in net.inputs), *net.learnable_params]
    values = [np.array(net.backend.to_host(blob.data)) for blob in held]
    forward()
    losses = [(blob, np.full(blob.shape, weight)) for step in net.steps for weight, blob in step.losses]
    if losses:
        tops, weights = [blob for blob, _ in losses], [weight for _, weight in losses]
    else:
        tops = [net.blobs[name] for name in net.outputs]
        weights = top_weights(tops, [True] * len(tops), seed)
    for blob, kept in zip(held, values, strict=True):
        blob.data[...] = net.backend.to_device(kept)

    def backward() -> None:
        net.clear_param_diffs()
        for blob, weight in zip(tops, weights, strict=True):
            blob.diff[...] = net.backend.to_device(weight)
        net.backward_from_to(len(net.steps) - 1, 0)

    reached = {
        id(blob)
        for step in net.steps
        for blob, wanted in zip(step.bottom, step.propagate_down, strict=True)
        if wanted and step.needs_backward
    }
    variables = [(f"input {name!r}", net.blobs[name]) for name in net.inputs if id(net.blobs[name]) in reached]
    variables += [
        (f"parameter {i} of layer {name!r}", blob)
        for name, blobs in net.params.items()
        for i, blob in enumerate(blobs)
        if net.layer_dict[name].param_propagate_down[i]
    ]
    return Objective(f"net {net.name!r}", net.backend, variables, held, tops, weights, forward, backward)


def compare(
    objective: Objective,
    *,
    kink: float | None = None,
    kink_range: float = 0.01,
    step: float = 1e-5,
    tolerance: float = 1e-6,
    most: int = 200,
    seed: int = 0,
) -> None:
    """Raise AssertionError, listing the elements, where backward and differences disagree."""
    to_host, to_device = objective.backend.to_host, objective.backend.to_device
    held = [(blob, np.array(to_host(blob.data))) for blob in objective.held]

    def tops_with(variable: Blob | None = None, index: int = 0, change: float = 0.0) -> list[np.ndarray]:
        for blob, values in held:
            blob.data[...] = to_device(values)
        if variable is not None:
            variable.data.reshape(-1)[index] += change
        objective.forward()
        return [np.array(to_host(blob.data)) for blob in objective.tops]

    tops_with()
    objective.backward()
    gradients = [np.array(to_host(blob.diff)).reshape(-1) for _, blob in objective.variables]
    originals = {id(blob): values.reshape(-1) for blob, values in held}
    rng = np.random.default_rng(seed)
    reports = []
    for (name, blob), gradient in zip(objective.variables, gradients, strict=True):
        indices = np.sort(rng.permutation(blob.count)[:most])
        if kink is not None:
            values = originals[id(blob)]
            indices = indices[np.abs(np.abs(values[indices]) - kink) > kink_range]
        numeric = np.empty(indices.size)
        for place_in, index in enumerate(indices):
            above, below = tops_with(blob, index, step), tops_with(blob, index, -step)
            changes = zip(above, below, objective.weights, strict=True)
            numeric[place_in] = sum(((a - b) * weight).sum() for a, b, weight in changes) / (2 * step)
        analytic = gradient[indices]
        largest = max(np.abs(numeric).max(initial=0.0), 1e-3)
        scale = np.maximum(np.maximum(np.abs(analytic), np.abs(numeric)), largest)
        wrong = ~(np.abs(analytic - numeric) <= tolerance * scale)  # a NaN is wrong too
        if wrong.any():
            reports.append(_report(name, blob.shape, indices[wrong], analytic[wrong], numeric[wrong], indices.size))
    if reports:
        raise AssertionError(f"{objective.label}: backward is not the gradient of forward\n" + "\n".join(reports))


def _report(
    name: str, shape: tuple[int, ...], indices: np.ndarray, analytic: np.ndarray, numeric: np.ndarray, tried: int
) -> str:
    lines = [f"  {name} of shape {shape}: {indices.size} of {tried} elements tried are wrong"]
    for index, got, expected in list(zip(indices, analytic, numeric, strict=True))[:SHOWN]:
        where = ", ".join(str(i) for i in np.unravel_index(index, shape))
        lines.append(f"    [{where}]: backward gives {got:.9g}, differences give {expected:.9g}")
    return "\n".join(lines)
