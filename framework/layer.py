"""Layer: the base class of every layer, and the registry that finds a class by its prototxt type."""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np

from ..proto import TRAIN, LayerParameter, parse_options
from .backend import Backend, current_backend
from .blob import Blob, Kept
from .checks import canonical_axis
from .errors import LayerError, RecaffeError, nearest
from .filler import fill_values


@dataclass(frozen=True)
class LayerContext:
    """What a layer is built in: backend, phase, dtype, and where its text stands (for messages).

    ``shared``: the parameters of the layer that this one is a copy of (for another time step), in place of new ones.
    """

    backend: Backend
    phase: int = TRAIN
    dtype: Any = np.float32
    where: str = ""
    shared: Sequence[Blob] = ()


class Layer:
    """One step of a net: computes tops from bottoms, and bottoms' gradients from tops'.

    A subclass gives ``type`` and the least and most numbers of ``bottoms`` and ``tops`` (None: open), and
    writes ``layer_setup``, ``reshape``, ``forward`` and ``backward``.  Parameters are added in
    ``layer_setup`` by ``add_blob``.  In ``backward`` the diff of a bottom is overwritten, and only where
    ``propagate_down`` asks for it; the diff of a parameter is added to (``Blob.add_to_diff``), and only where
    ``param_propagate_down`` asks for it.

    Options beyond Caffe's schema: a dataclass in ``options_type``; the block of the layer's text named
    ``options_name`` (by default the type in snake case and ``_param``) is read into ``self.options``.
    """

    bottoms: ClassVar[tuple[int, int | None]] = (0, None)
    tops: ClassVar[tuple[int, int | None]] = (0, None)
    bottoms_equal_tops: ClassVar[bool] = False
    auto_tops: ClassVar[bool] = False  # missing tops are added without a name, as for losses
    in_place: ClassVar[bool] = False  # whether a top may be its bottom's blob
    saves_kept: ClassVar[bool] = False  # in place, its forward calls Blob.keep_before_overwriting itself
    reshape_every_pass: ClassVar[bool] = False  # reshape may depend on more than the bottoms' shapes
    options_type: ClassVar[type | None] = None
    options_name: ClassVar[str | None] = None
    type: ClassVar[str] = ""  # the name in prototxts; a class that a Python layer runs needs none

    def __init__(self, param: LayerParameter, context: LayerContext | None = None):
        context = context or LayerContext(current_backend())
        self.param = param
        self.name: str = param.name
        self.context = context
        self.backend = context.backend
        self.xp = context.backend.xp
        self.phase = context.phase
        self.dtype = np.dtype(context.dtype)
        self.blobs: list[Blob] = []
        self.param_propagate_down: list[bool] = []
        self.loss_weights: list[float] = []
        self.needs_backward = True  # whether the net will run backward through this layer
        self.options: Any = self._read_options()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """Once, before the first reshape: check the options, add the parameters."""

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """Give the tops their shapes, whenever a bottom's shape has changed."""
        raise NotImplementedError

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """Compute the tops' data."""
        raise NotImplementedError

    def run_forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """``forward``, as a net runs it: what other layers keep of a top is saved before it changes in place."""
        if not self.saves_kept:
            for blob in top:
                if blob.kept is not None:
                    blob.will_change(in_place=any(blob is other for other in bottom))
        self.forward(bottom, top)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        """Compute the diffs of the bottoms asked for, and add to the diffs of the parameters."""
        raise NotImplementedError

    def default_loss_weight(self, top_index: int) -> float:
        """The weight of a top in the net's loss where the prototxt gives none."""
        return 0.0

    def allow_force_backward(self, bottom_index: int) -> bool:
        """Whether ``force_backward`` asks for this bottom's gradient (labels and marks have none)."""
        return True

    def get_state(self) -> dict[str, Any]:
        """What the next passes depend on beyond the parameters (a position in the data, carried states).

        Arrays, numbers, strings and JSON-like values by name; a snapshot keeps them.
        """
        return {}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what ``get_state`` gave."""

    def reset_states(self) -> None:
        """Forget what is carried from pass to pass (the hidden states of a recurrent layer)."""

    def looks_back(self) -> bool:
        """Whether what it gives at a step depends on the steps before: step by step it needs what it carries."""
        return False

    def select_streams(self, order: Any) -> None:
        """Of what is carried, keep the streams with these numbers, in this order (host integers; repeats are fine)."""

    def close(self) -> None:
        """Release files and threads."""

    def add_blob(self, name: str, shape: Sequence[int], filler: Any = None) -> Blob:
        """Add a parameter, with the values that the layer's own text carries, else drawn by ``filler``."""
        index = len(self.blobs)
        if index < len(self.context.shared):
            self.blobs.append(self.context.shared[index])
            self.param_propagate_down.append(True)
            return self.blobs[index]
        blob = Blob(shape, self.dtype, self.backend, f"{self.name}.{name}")
        if index < len(self.param.blobs):
            from ..proto import blob_to_array

            values = blob_to_array(self.param.blobs[index])
            if values.size != blob.count:
                self.fail(f"parameter {index} ({name}) in the text has {values.size} values, expected {blob.count}")
            values = values.reshape(blob.shape)
        elif filler is None:
            values = np.broadcast_to(np.zeros((), self.dtype), blob.shape)
        else:
            try:
                values = fill_values(filler, blob.shape, self.backend.host_rng, self.dtype)
            except RecaffeError as error:
                self.fail(f"parameter {name}: {error}")
        blob.data[...] = self.backend.to_device(np.asarray(values, self.dtype))
        self.blobs.append(blob)
        self.param_propagate_down.append(True)
        return blob

    def keep(self, blob: Blob, overwriting: bool = False) -> Blob | Kept:
        """What has the values of ``blob`` in ``data`` still when backward runs, whoever works on the blob in place.

        ``overwriting``: this layer is about to overwrite them itself.
        """
        if not self.needs_backward:
            return blob
        return blob.keep_before_overwriting() if overwriting else blob.keep()

    def axis(self, axis: int, bottom: Blob) -> int:
        """``axis`` of ``bottom`` counted from the front; an error names the layer."""
        try:
            return canonical_axis(axis, bottom.ndim)
        except ValueError as error:
            self.fail(f"bottom {bottom.name!r} has shape {bottom.shape}: {error}")

    def fail(self, message: str) -> NoReturn:
        """Raise a LayerError that names this layer and its place in the text."""
        raise LayerError(f"{place(self.param, self.context.where)}: {message}")

    def check_counts(self, bottoms: int, tops: int) -> None:
        """Raise LayerError unless the layer works with so many bottoms and tops."""
        for what, count, (least, most) in (("bottom", bottoms, self.bottoms), ("top", tops, self.tops)):
            if count < least or (most is not None and count > most):
                expected = (
                    f"at least {least}" if most is None else f"{least}" if least == most else f"{least} to {most}"
                )
                self.fail(f"expected {expected} {what}(s), got {count}")
        if self.bottoms_equal_tops and bottoms != tops:
            self.fail(f"expected as many tops as bottoms, got {bottoms} bottom(s) and {tops} top(s)")

    def _read_options(self) -> Any:
        wanted = self.options_name or snake_case(self.type) + "_param"
        options: Any = None
        for block in self.param.option_block:
            where = f"{place(self.param, self.context.where)}: {block.name}"
            if not block.name:  # number 1000 holds something else in a fork's binary
                continue
            if self.options_type is not None and block.name == wanted:
                if options is not None:
                    self.fail(f"two {wanted} blocks")
                options = parse_options(block.text, self.options_type, where)
            else:
                self._unwanted_block(block.name, wanted)
        if options is None and self.options_type is not None:
            where = f"{place(self.param, self.context.where)}: {wanted}"
            options = parse_options("", self.options_type, where)
        return options

    def _unwanted_block(self, name: str, wanted: str) -> None:
        known = [field.name for field in LayerParameter.DESCRIPTOR.fields if field.name.endswith("_param")]
        close = nearest(name, [*known, wanted] if self.options_type else known)
        if close:
            self.fail(f"no such block as {name!r}; did you mean {close[0]!r}?")
        warnings.warn(f"{place(self.param, self.context.where)}: block {name!r} is not used", stacklevel=5)


def place(param: LayerParameter, where: str) -> str:
    """How messages name a layer: its name and type, and the file and line where known."""
    text = f"layer {param.name!r} (type {param.type!r})"
    return f"{where}: {text}" if where else text


def snake_case(name: str) -> str:
    """``HDF5Data`` -> ``hdf5_data``, ``InnerProduct`` -> ``inner_product``."""
    name = re.sub(r"([A-Z0-9]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


_registry: dict[str, type[Layer]] = {}
_sources: list[Callable[[], Any]] = []

LayerClass = TypeVar("LayerClass", bound=type[Layer])


def register(layer_class: LayerClass) -> LayerClass:
    """Class decorator: let prototxts name the class by its ``type``."""
    if not layer_class.type:
        raise RecaffeError(f"layer class {layer_class.__qualname__} has no type: the name that prototxts give it")
    known = _registry.get(layer_class.type)
    if known is not None and (known.__module__, known.__qualname__) != (
        layer_class.__module__,
        layer_class.__qualname__,
    ):
        raise RecaffeError(
            f"layer type {layer_class.type!r} is registered twice: by {known.__module__}.{known.__qualname__}"
            f" and by {layer_class.__module__}.{layer_class.__qualname__}"
        )
    _registry[layer_class.type] = layer_class
    return layer_class


def registered_types() -> list[str]:
    """All types that prototxts may name, sorted."""
    _load_sources()
    return sorted(_registry)


def layer_class(layer_type: str) -> type[Layer] | None:
    """The class registered for ``layer_type``, or None."""
    if layer_type not in _registry:
        _load_sources()
    return _registry.get(layer_type)


def create_layer(param: LayerParameter, context: LayerContext) -> Layer:
    """The layer that ``param`` describes; an unknown type is an error that says how to add one."""
    found = layer_class(param.type)
    if found is None:
        close = nearest(param.type, registered_types())
        hint = f"; did you mean {' or '.join(repr(name) for name in close)}?" if close else "."
        raise LayerError(
            f"{place(param, context.where)}: no layer of this type is registered{hint}"
            " A class of your own is added with @recaffe.register and --import your_module"
            " (docs/adding_a_layer.md)"
        )
    return found(param, context)


def add_layer_source(load: Callable[[], Any]) -> None:
    """Let ``load()`` register more layers the first time that a type is asked for which is not known."""
    _sources.append(load)


def _load_sources() -> None:
    while _sources:
        _sources.pop(0)()


def _load_entry_points() -> None:
    """Import the modules that other packages announce in the entry-point group ``recaffe.layers``."""
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    for entry in entry_points(group="recaffe.layers"):
        entry.load()


add_layer_source(_load_entry_points)
