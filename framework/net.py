"""Net: layers joined by named blobs, built from a prototxt, run forward and backward."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..proto import TEST, TRAIN, LayerParameter, NetParameter, ParamSpec, read_net_with_lines, upgrade_net
from .backend import Backend, current_backend
from .backward_plan import BackwardPlan
from .blob import Blob
from .errors import LayerError, RecaffeError
from .layer import Layer, LayerContext, create_layer, place
from .net_state import filter_layers
from .splits import insert_splits


@dataclass(slots=True)
class Step:
    """One layer with its blobs, as a pass uses it."""

    layer: Layer
    bottom: list[Blob]
    top: list[Blob]
    losses: list[tuple[float, Blob]]
    needs_backward: bool = False
    propagate_down: Sequence[bool] = ()
    shapes: tuple[tuple[int, ...], ...] | None = None  # the bottoms' shapes at the last reshape


class Net:
    """A net in one phase.

    ``Net(prototxt, phase)``, ``Net(prototxt, weights, phase)`` or
    ``Net(prototxt, phase, level=0, stages=[...], weights=...)``; in place of a path a NetParameter.

    - ``blobs``: blobs by name; ``params``: lists of parameter blobs by layer name
    - ``inputs``, ``outputs``: names of the blobs that Input layers give, and of those that no layer reads
    - ``forward()`` gives the outputs by name, ``backward()`` the gradients of the inputs
    """

    def __init__(
        self,
        source: str | os.PathLike | NetParameter,
        *args: Any,
        phase: int | None = None,
        level: int = 0,
        stages: Sequence[str] = (),
        weights: str | os.PathLike | None = None,
        backend: Backend | None = None,
        dtype: Any = np.float32,
    ):
        positional_weights, phase = _positional(args, phase)
        self.backend = backend or current_backend()
        self.dtype = np.dtype(dtype)
        param, wheres = _load(source)
        param.state.phase = phase  # type: ignore[assignment]
        param.state.level = level or param.state.level
        param.state.stage.extend(stage for stage in stages if stage not in param.state.stage)
        self.phase: int = phase
        self.source = param
        self._build(*insert_splits(*filter_layers(param, wheres)))
        for path in (positional_weights, weights):
            if path is not None:
                self.copy_from(path)

    # building

    def _build(self, param: NetParameter, wheres: list[str]) -> None:
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
        self.learnable_params: list[Blob] = []
        self.params_lr: list[float] = []
        self.params_weight_decay: list[float] = []
        self._param_specs: list[ParamSpec] = []
        self._param_owner: dict[str, tuple[int, str]] = {}  # shared name -> (learnable index, layer name)
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
            plan.add_layer(layer, bottoms[-1], tops[-1], self._add_params(layer))
        needs = plan.finish(self.layers, bottoms, tops, param.force_backward)
        for step, need in zip(self.steps, needs, strict=True):
            step.needs_backward, step.propagate_down = need.layer, need.bottoms
        self.outputs = sorted(available)  # the order in which Caffe numbers them

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
                    layer.fail(f"top {j} works in place on bottom {bottoms.index(name)}; expected bottom {j}")
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

    def _add_params(self, layer: Layer) -> bool:
        """Enter the layer's parameters, sharing those with a known name; gives whether any is learnt."""
        specs = list(layer.param.param)
        if len(specs) > len(layer.blobs):
            layer.fail(f"{len(specs)} param blocks for {len(layer.blobs)} parameter(s)")
        specs += [ParamSpec()] * (len(layer.blobs) - len(specs))
        for i, spec in enumerate(specs):
            layer.param_propagate_down[i] = spec.lr_mult != 0
            if spec.name and spec.name in self._param_owner:
                self._share_param(layer, i, spec)
                continue
            if spec.name:
                self._param_owner[spec.name] = (len(self.learnable_params), layer.name)
            self.learnable_params.append(layer.blobs[i])
            self._param_specs.append(ParamSpec.FromString(spec.SerializeToString()))
            self.params_lr.append(spec.lr_mult)
            self.params_weight_decay.append(spec.decay_mult)
        if layer.blobs:
            self.params[layer.name] = layer.blobs
        return any(spec.lr_mult != 0 for spec in specs)

    def _share_param(self, layer: Layer, i: int, spec: ParamSpec) -> None:
        """Let parameter i look at the owner's memory; a multiplier may stand with any of those that share it."""
        index, owner_layer = self._param_owner[spec.name]
        owner, blob = self.learnable_params[index], layer.blobs[i]
        permissive = spec.share_mode == ParamSpec.PERMISSIVE
        if (owner.count != blob.count) if permissive else (owner.shape != blob.shape):
            rule = "as many values (share_mode: PERMISSIVE)" if permissive else "the same shape (share_mode: STRICT)"
            layer.fail(
                f"parameter {i} shares {spec.name!r} with layer {owner_layer!r} and needs {rule}:"
                f" {blob.shape} here, {owner.shape} there"
            )
        first = self._param_specs[index]
        for field, values in (("lr_mult", self.params_lr), ("decay_mult", self.params_weight_decay)):
            if not spec.HasField(field):
                continue
            value = getattr(spec, field)
            if first.HasField(field) and value != values[index]:
                layer.fail(
                    f"parameter {i} shares {spec.name!r} with layer {owner_layer!r},"
                    f" but {field} is {value:g} here and {values[index]:g} there"
                )
            values[index] = value
            setattr(first, field, value)
        blob.share_data(owner)
        blob.share_diff(owner)

    # running

    def forward(
        self,
        blobs: Sequence[str] | None = None,
        start: str | None = None,
        end: str | None = None,
        **inputs: Any,
    ) -> dict[str, np.ndarray]:
        """Run the layers from ``start`` to ``end`` (all by default), with ``inputs`` by blob name.

        Gives the values of the outputs (of ``end``'s tops if given) and of the ``blobs`` named.
        """
        for name, values in inputs.items():
            self._set_input(name, values)
        first = self.layer_index(start) if start is not None else 0
        last = self.layer_index(end) if end is not None else len(self.steps) - 1
        self.forward_from_to(first, last)
        names = list(self.top_names[end]) if end is not None else list(self.outputs)
        names += [name for name in blobs or () if name not in names]
        return {name: self.backend.to_host(self.blobs[name].data) for name in names}

    def backward(
        self,
        diffs: Sequence[str] | None = None,
        start: str | None = None,
        end: str | None = None,
        **top_diffs: Any,
    ) -> dict[str, np.ndarray]:
        """Run backward from layer ``start`` down to ``end``, with ``top_diffs`` by blob name.

        Gives the diffs of the inputs (of ``end``'s bottoms if given) and of the blobs named in ``diffs``.
        """
        for name, values in top_diffs.items():
            blob = self.blob(name)
            values = np.asarray(values, self.dtype)
            if values.shape != blob.shape:
                raise RecaffeError(f"the diff for blob {name!r} has shape {values.shape}, expected {blob.shape}")
            blob.diff[...] = self.backend.to_device(values)
        first = self.layer_index(start) if start is not None else len(self.steps) - 1
        last = self.layer_index(end) if end is not None else 0
        self.backward_from_to(first, last)
        names = list(self.bottom_names[end]) if end is not None else list(self.inputs)
        names += [name for name in diffs or () if name not in names]
        return {name: self.backend.to_host(self.blobs[name].diff) for name in names}

    def forward_from_to(self, first: int, last: int) -> float:
        """Run the layers number ``first`` to ``last``; gives their weighted loss."""
        loss: Any = 0.0
        with self.backend.computing():
            for step in self.steps[first : last + 1]:
                bottom = step.bottom
                shapes = tuple([blob.shape for blob in bottom])
                if shapes != step.shapes or step.layer.reshape_every_pass:
                    _reshape(step, shapes)
                step.layer.forward(bottom, step.top)
                for weight, blob in step.losses:
                    loss = loss + weight * blob.data.sum()
        return float(loss)

    def backward_from_to(self, first: int, last: int) -> None:
        """Run backward from layer number ``first`` down to ``last``."""
        with self.backend.computing():
            for step in self.steps[last : first + 1][::-1]:
                if step.needs_backward:
                    step.layer.backward(step.top, step.propagate_down, step.bottom)

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

    # finding

    def blob(self, name: str) -> Blob:
        """The blob ``name``, or an error that lists those there are."""
        if name not in self.blobs:
            raise RecaffeError(f"net {self.name!r} has no blob {name!r} (it has: {', '.join(self.blobs)})")
        return self.blobs[name]

    def layer_index(self, name: str) -> int:
        """The number of the layer ``name``, or an error that lists those there are."""
        for index, layer in enumerate(self.layers):
            if layer.name == name:
                return index
        raise RecaffeError(f"net {self.name!r} has no layer {name!r} (it has: {', '.join(self.layer_dict)})")

    def _set_input(self, name: str, values: Any) -> None:
        if name not in self.inputs:
            known = ", ".join(self.inputs) or "none"
            raise RecaffeError(f"net {self.name!r} has no input {name!r} (its inputs: {known})")
        values = np.asarray(values, self.dtype)
        blob = self.blobs[name]
        if values.shape != blob.shape:
            raise RecaffeError(
                f"input {name!r} has shape {values.shape}, expected {blob.shape};"
                f" net.blobs[{name!r}].reshape(...) changes it"
            )
        blob.data[...] = self.backend.to_device(values)

    # weights and state

    def copy_from(self, path: str | os.PathLike) -> Any:
        """Load parameters by layer name from a .caffemodel or .caffemodel.h5; see ``weights.load_weights``."""
        from .weights import load_weights

        return load_weights(self, path)

    def save(self, path: str | os.PathLike) -> None:
        """Write the parameters: HDF5 where ``path`` ends in .h5, else .caffemodel."""
        from .weights import save_weights

        save_weights(self, path)

    def to_proto(self, write_diff: bool = False) -> NetParameter:
        """The net with its parameters, as a .caffemodel holds it."""
        from ..proto import array_to_blob

        result = NetParameter(name=self.name)
        for layer in self.layers:
            written: LayerParameter = result.layer.add()
            written.CopyFrom(layer.param)
            del written.blobs[:]
            for blob in layer.blobs:
                diff = self.backend.to_host(blob.diff) if write_diff else None
                written.blobs.append(array_to_blob(self.backend.to_host(blob.data), diff))
        return result

    def share_trained_layers_with(self, other: "Net") -> None:
        """Look at the parameters of ``other``, layer by layer of the same name (a test net at its train net)."""
        for name, blobs in self.params.items():
            if name not in other.params:
                continue
            theirs = other.params[name]
            if [blob.shape for blob in blobs] != [blob.shape for blob in theirs]:
                self.layer_dict[name].fail(
                    f"cannot share parameters of shapes {[blob.shape for blob in theirs]}:"
                    f" this net's have {[blob.shape for blob in blobs]}"
                )
            for blob, owner in zip(blobs, theirs, strict=True):
                blob.share_data(owner)

    def get_state(self) -> dict[str, dict[str, Any]]:
        """The layers' states by layer name (positions in the data, carried hidden states)."""
        states = {layer.name: layer.get_state() for layer in self.layers}
        return {name: state for name, state in states.items() if state}

    def set_state(self, states: Mapping[str, Mapping[str, Any]]) -> None:
        """Continue from ``get_state()``."""
        for name, state in states.items():
            if name in self.layer_dict:
                self.layer_dict[name].set_state(state)

    def reset_states(self) -> None:
        """Let the next pass start new sequences: forget what layers carry from pass to pass."""
        for layer in self.layers:
            layer.reset_states()

    def close(self) -> None:
        """Release the files and threads of all layers."""
        for layer in self.layers:
            layer.close()


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


def _positional(args: tuple[Any, ...], phase: int | None) -> tuple[Any, int]:
    """Weights and phase out of ``(phase)`` or ``(weights, phase)``."""
    weights = None
    if len(args) == 2:
        weights, phase = args
    elif len(args) == 1:
        (phase,) = args
    elif args:
        raise TypeError("Net takes (prototxt, phase) or (prototxt, weights, phase)")
    if phase not in (TRAIN, TEST):
        raise RecaffeError(f"the phase of a net is recaffe.TRAIN or recaffe.TEST, got {phase!r}")
    return weights, phase


def _load(source: str | os.PathLike | NetParameter) -> tuple[NetParameter, list[str]]:
    """A private copy of the net's text, and the place of each layer in it."""
    if isinstance(source, NetParameter):
        param = NetParameter()
        param.CopyFrom(upgrade_net(source, "net"))
        return param, [""] * len(param.layer)
    param, lines = read_net_with_lines(Path(source))
    seen: dict[str, int] = {}
    wheres = []
    for layer in param.layer:
        wheres.append(lines.where(layer.name, seen.get(layer.name, 0)))
        seen[layer.name] = seen.get(layer.name, 0) + 1
    return param, wheres


__all__ = ["LayerError", "Net", "Step", "place"]
