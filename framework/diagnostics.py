"""Looking into a net: the first blob that is not finite, and the lines of ``debug_info``."""

import logging
from collections.abc import Iterator
from typing import Any

from .layer import Layer
from .net import Net

log = logging.getLogger("recaffe")


def first_bad_blob(net: Net) -> str | None:
    """The first parameter or top, in forward order, that holds NaN or infinity, else the first such gradient."""
    for layer, step in zip(net.layers, net.steps, strict=True):
        for i, blob in enumerate(layer.blobs):
            if (count := not_finite(net, blob.data)) is not None:
                return f"parameter {i} of layer {layer.name!r} ({layer.type}): {count}"
        for blob in step.top:
            if (count := not_finite(net, blob.data)) is not None:
                return f"blob {blob.name!r}, a top of layer {layer.name!r} ({layer.type}): {count}"
    for layer, i, blob in parameters(net):
        if (count := not_finite(net, blob.diff)) is not None:
            return f"the gradient of parameter {i} of layer {layer.name!r} ({layer.type}): {count}"
    return None


def first_bad_parameter(net: Net) -> str | None:
    """The first parameter that holds NaN or infinity."""
    for layer, i, blob in parameters(net):
        if (count := not_finite(net, blob.data)) is not None:
            return f"parameter {i} of layer {layer.name!r} ({layer.type}): {count}"
    return None


def not_finite(net: Net, array: Any) -> str | None:
    """How many values of ``array`` are NaN or infinite, in words; None if none are."""
    finite = net.backend.xp.isfinite(array)
    count = array.size - int(finite.sum())
    return f"{count} of {array.size} values are not finite" if count else None


def parameters(net: Net) -> Iterator[tuple[Layer, int, Any]]:
    """All parameters: layer, index, blob."""
    for layer in net.layers:
        for i, blob in enumerate(layer.blobs):
            yield layer, i, blob


def debug_forward(net: Net) -> float:
    """A forward pass that logs the mean absolute value of every top and parameter; gives the loss."""
    loss = 0.0
    for index, step in enumerate(net.steps):
        loss += net.forward_from_to(index, index)
        for blob in step.top:
            log.info("    [Forward] Layer %s, top blob %s data: %g", step.layer.name, blob.name, mean_abs(blob.data))
        for i, blob in enumerate(step.layer.blobs):
            name = parameter_name(step.layer, i)
            log.info("    [Forward] Layer %s, param blob %s data: %g", step.layer.name, name, mean_abs(blob.data))
    return loss


def debug_backward(net: Net) -> None:
    """A backward pass that logs the mean absolute value of every gradient computed, and the norms of all."""
    for index in reversed(range(len(net.steps))):
        net.backward_from_to(index, index)
        step = net.steps[index]
        if not step.needs_backward:
            continue
        layer = step.layer
        for blob, wanted in zip(step.bottom, step.propagate_down, strict=True):
            if wanted:
                log.info("    [Backward] Layer %s, bottom blob %s diff: %g", layer.name, blob.name, mean_abs(blob.diff))
        for i, blob in enumerate(layer.blobs):
            if layer.param_propagate_down[i]:
                name = parameter_name(layer, i)
                log.info("    [Backward] Layer %s, param blob %s diff: %g", layer.name, name, mean_abs(blob.diff))
    data, diff = ([getattr(blob, kind) for blob in net.learnable_params] for kind in ("data", "diff"))
    log.info(
        "    [Backward] All net params (data, diff): L1 norm = (%g, %g); L2 norm = (%g, %g)",
        sum(float(abs(array).sum()) for array in data),
        sum(float(abs(array).sum()) for array in diff),
        sum(float((array * array).sum()) for array in data) ** 0.5,
        sum(float((array * array).sum()) for array in diff) ** 0.5,
    )


def mean_abs(array: Any) -> float:
    """The mean absolute value; 0 of an empty array."""
    return float(abs(array).sum()) / array.size if array.size else 0.0


def parameter_name(layer: Layer, index: int) -> str:
    """The name under which a parameter is shared, else its index."""
    specs = layer.param.param
    return specs[index].name if index < len(specs) and specs[index].name else str(index)
