"""State: a blob that one step of a Recurrent layer hands on to the next."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import Layer
from ...proto import RecurrentState


class State:
    """One state: its text, its place among bottoms, tops and parameters, and what is carried from batch to batch.

    A sequence starts from ``first`` (N x shape): a value, a parameter, or zeros where the state comes from a bottom,
    whose values belong to a sequence that goes on.
    """

    def __init__(self, param: RecurrentState):
        self.param, self.name = param, param.name
        self.bottom: int | None = None
        self.top: int | None = None
        self.parameter: int | None = None
        self.shape: tuple[int, ...] = tuple(param.shape.dim)
        self.first: Any = None
        self.carried: Any = None
        self.goes_on = False  # whether the last pass started from what was carried

    def take_shape(self, layer: Layer, N: int, bottom: Sequence[Blob]) -> tuple[int, ...]:
        """N x shape; LayerError if the shape is missing or the bottom has another."""
        if self.bottom is not None:
            blob = bottom[self.bottom]
            self.shape = self.shape or blob.shape[1:]
            if blob.shape != (N, *self.shape):
                expected = (N, *self.shape)
                layer.fail(f"bottom {blob.name!r} (first {self.name!r}) has shape {blob.shape}, expected {expected}")
        elif not self.param.HasField("shape"):
            layer.fail(f"step: state {self.name!r} needs a shape: of one stream, without N")
        return (N, *self.shape)

    def forward(self, layer: Layer, N: int, bottom: Sequence[Blob]) -> Any:
        """The values before the step that runs first."""
        shape = (N, *self.shape)
        if self.parameter is not None:
            self.first = layer.xp.broadcast_to(layer.blobs[self.parameter].data, shape)
        else:
            self.first = layer.xp.full(shape, self.param.value, layer.dtype)
        self.goes_on = self.carried is not None and self.carried.shape == shape
        if self.goes_on:
            return self.carried
        return self.first if self.bottom is None else bottom[self.bottom].data

    def backward(
        self, layer: Layer, d_start: Any, d_first: Any, propagate_down: Sequence[bool], bottom: Sequence[Blob]
    ) -> None:
        """From the gradient of what ``forward`` gave, and the sum over streams of that of ``first`` at later starts."""
        if self.bottom is not None and propagate_down[self.bottom]:
            bottom[self.bottom].diff[...] = 0 if self.goes_on else d_start
        if self.parameter is not None and layer.param_propagate_down[self.parameter]:
            layer.blobs[self.parameter].diff[...] += d_first if self.goes_on else d_first + d_start.sum(axis=0)
