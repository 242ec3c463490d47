"""Net: layers joined by named blobs, built from a prototxt, run forward and backward."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..proto import TEST, TRAIN, LayerParameter, NetParameter, read_net_with_lines, upgrade_net
from .backend import Backend, current_backend
from .blob import Blob
from .composite import expand_composites
from .errors import RecaffeError
from .graph import Graph
from .net_state import filter_layers
from .splits import insert_splits


class Net(Graph):
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
        param, wheres = _load(source)
        param.state.phase = phase  # type: ignore[assignment]
        param.state.level = level or param.state.level
        param.state.stage.extend(stage for stage in stages if stage not in param.state.stage)
        self.source = param
        layers = insert_splits(*expand_composites(*filter_layers(param, wheres)))
        super().__init__(*layers, phase, backend or current_backend(), dtype)
        for path in (positional_weights, weights):
            if path is not None:
                self.copy_from(path)

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

    def select_streams(self, order: Any) -> None:
        """Let the next pass go on from these streams of the last one, in this order: what a beam search keeps."""
        for layer in self.layers:
            layer.select_streams(order)

    def close(self) -> None:
        """Release the files and threads of all layers."""
        for layer in self.layers:
            layer.close()


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
