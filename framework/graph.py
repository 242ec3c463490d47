"""Graph: layers joined by named blobs, built in order from a NetParameter and run by number."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..proto import NetParameter
from .backend import Backend
from .backward_plan import BackwardPlan
from .blob import Blob
from .errors import LayerError, RecaffeError
from .layer import Layer, LayerContext, create_layer
from .learnable_params import LearnableParams


@dataclass(slots=True)
class Step:
    """One layer with its blobs, as a pass uses it."""

    layer: Layer
    bottom: list[Blob]
    top: list[Blob]
    losses: list[tuple[float, Blob]]
    needs_backward: bool = False
    propagate_down: Sequence[bool] = ()
    last_reads: Sequence[Blob] = ()  # tops whose gradient is not needed once this layer has run backward
    shapes: tuple[tuple[int, ...], ...] | None = None  # the bottoms' shapes at the last reshape


class Graph:
    """The layers of ``param`` with their blobs; ``wheres`` are the layers' places in the text.

    The layers are those of one phase, with pieces in place of composites and Splits inserted: what
    ``insert_splits(*expand_composites(*filter_layers(...)))`` gives.
    """

    def __init__(self, param: NetParameter, wheres: Sequence[str], phase: int, backend: Backend, dtype: Any):
        self.phase, self.backend, self.dtype = phase, backend, np.dtype(dtype)
        self.keeps_diffs = True  # whether the gradients of all blobs can be read after a backward pass
        self.param = param
        self.name: str = param.name
        self.blobs: dict[str, Blob] = {}
        self.params: dict[str, list[Blob]] = {}
        self.inputs: list[str] = []
        self.layers: list[Layer] = []
        self.layer_dict: dict[str, Layer] = {}
        self.steps: list[Step] = []
        self.bottom_names: dict[str, list[str]] = {}
        self.top_names: dict[str, list[str]] = {}
        learnable = LearnableParams()
        self.learnable_params, self.params_lr = learnable.blobs, learnable.lr_mults
        self.params_weight_decay = learnable.decay_mults
        available: dict[str, None] = {}
        bottoms: list[list[str]] = []
        tops: list[list[str]] = []
        plan = BackwardPlan()
        for layer_param, where in zip(param.layer, wheres, strict=True):
            if not layer_param.HasField("phase"):
                layer_param.phase = self.phase  # type: ignore[assignment]
            context = LayerContext(self.backend, layer_param.phase, self.dtype, where)
            layer = create_layer(layer_param, context)
            if layer.name in self.layer_dict:
                layer.fail("another layer of this net has the same name")
            bottoms.append(list(layer_param.bottom))
            tops.append(self._add_tops(layer, available))
            self._set_up(layer, bottoms[-1], tops[-1])
            if layer.blobs:
                self.params[layer.name] = layer.blobs
            plan.add_layer(layer, bottoms[-1], tops[-1], learns=learnable.add_layer(layer))
        needs = plan.finish(self.layers, bottoms, tops, param.force_backward)
        for step, need in zip(self.steps, needs, strict=True):
            step.needs_backward, step.propagate_down = need.layer, need.bottoms
            step.layer.needs_backward = need.layer
        self._find_last_reads()
        self.outputs = sorted(available)  # the order in which Caffe numbers them

    def _find_last_reads(self) -> None:
        """Where the gradient of each inner blob is read last: in the backward of the layer that made the blob."""
        written = {
            id(blob)
            for step in self.steps
            if step.needs_backward
            for blob, asked in zip(step.bottom, step.propagate_down, strict=True)
            if asked
        }
        inner = written - {id(blob) for step in self.steps for _, blob in step.losses}
        for step in self.steps:
            in_place = set(map(id, step.bottom))
            step.last_reads = [blob for blob in step.top if id(blob) in inner and id(blob) not in in_place]

    def _add_tops(self, layer: Layer, available: dict[str, None]) -> list[str]:
        """Make the blobs of the layer's tops; gives their names."""
        names = list(layer.param.top)
        if layer.auto_tops:
            missing = layer.tops[0] - len(names)
            names += [f"({layer.name} top {len(names) + i})" for i in range(missing)]
        bottoms = list(layer.param.bottom)
        layer.check_counts(len(bottoms), len(names))
        for name in bottoms:
            available.pop(name, None)
        for j, name in enumerate(names):
            if name in bottoms:
                if not layer.in_place:
                    layer.fail(f"top {name!r} is also a bottom, but this type does not work in place")
                if bottoms.index(name) != j:
                    layer.fail(f"top {name!r} works in place on bottom {bottoms.index(name)}, expected bottom {j}")
            elif name in self.blobs:
                layer.fail(f"top blob {name!r} is already made by {self._maker(name)}; give it another name")
            else:
                self.blobs[name] = Blob((), self.dtype, self.backend, name)
            if j < len(layer.param.top):  # a top added for a loss is no output
                available[name] = None
            if layer.type == "Input":
                self.inputs.append(name)
        return names

    def _maker(self, blob: str) -> str:
        makers = [name for name, tops in self.top_names.items() if blob in tops]
        return f"layer {makers[0]!r}" if makers else "this layer"

    def _set_up(self, layer: Layer, bottoms: list[str], tops: list[str]) -> None:
        bottom = [self.blobs[name] for name in bottoms]
        top = [self.blobs[name] for name in tops]
        with _told_by(layer):
            layer.layer_setup(bottom, top)
        given = list(layer.param.loss_weight)
        if given and len(given) != len(top):
            layer.fail(f"loss_weight is given {len(given)} time(s) for {len(top)} top(s)")
        layer.loss_weights = given or [layer.default_loss_weight(j) for j in range(len(top))]
        losses = [(weight, blob) for weight, blob in zip(layer.loss_weights, top, strict=True) if weight]
        step = Step(layer, bottom, top, losses)
        self.layers.append(layer)
        self.layer_dict[layer.name] = layer
        self.steps.append(step)
        self.bottom_names[layer.name], self.top_names[layer.name] = bottoms, tops
        _reshape(step, tuple([blob.shape for blob in bottom]))

    def forward_from_to(self, first: int, last: int) -> float:
        """Run the layers number ``first`` to ``last``; gives their weighted loss."""
        loss: Any = 0.0
        with self.backend.computing():
            for step in self.steps[first : last + 1]:
                bottom = step.bottom
                shapes = tuple([blob.shape for blob in bottom])
                if shapes != step.shapes or step.layer.reshape_every_pass:
                    _reshape(step, shapes)
                step.layer.run_forward(bottom, step.top)
                for weight, blob in step.losses:
                    loss = loss + weight * blob.data.sum()
        return float(loss)

    def backward_from_to(self, first: int, last: int) -> None:
        """Run backward from layer number ``first`` down to ``last``."""
        with self.backend.computing():
            for step in self.steps[last : first + 1][::-1]:
                if not step.needs_backward:
                    continue
                if self.keeps_diffs:
                    step.layer.backward(step.top, step.propagate_down, step.bottom)
                    continue
                for blob, asked in zip(step.bottom, step.propagate_down, strict=True):
                    if asked:
                        blob.expect_diff()
                step.layer.backward(step.top, step.propagate_down, step.bottom)
                for blob in step.last_reads:
                    blob.release_diff()

    def forward_backward(self) -> float:
        """One forward and one backward pass; gives the loss."""
        loss = self.forward_from_to(0, len(self.steps) - 1)
        self.backward_from_to(len(self.steps) - 1, 0)
        return loss

    def reshape(self) -> None:
        """Let every layer reshape, after the shape of an input was changed."""
        for step in self.steps:
            _reshape(step, tuple([blob.shape for blob in step.bottom]))

    def clear_param_diffs(self) -> None:
        """Set the gradients of all parameters to zero."""
        for blob in self.learnable_params:
            blob.clear_diff()


def _reshape(step: Step, shapes: tuple[tuple[int, ...], ...]) -> None:
    with _told_by(step.layer):
        step.layer.reshape(step.bottom, step.top)
    step.shapes = shapes
    for weight, blob in step.losses:
        blob.diff.fill(weight)


@contextmanager
def _told_by(layer: Layer) -> Iterator[None]:
    """Let the errors of what does not know its layer (a blob's shape) name the layer."""
    try:
        yield
    except LayerError:
        raise
    except RecaffeError as error:
        layer.fail(str(error))
