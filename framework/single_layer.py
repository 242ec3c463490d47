"""A layer on its own, with blobs of its own, outside any net: what gradient and layer checks work on."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..proto import TRAIN, LayerParameter, parse_net
from .backend import Backend, current_backend
from .blob import Blob
from .errors import RecaffeError
from .layer import Layer, LayerContext, create_layer, snake_case

Description = str | LayerParameter | type[Layer]
Values = np.ndarray | Sequence[int]


def describe(layer: Description) -> LayerParameter:
    """The LayerParameter of a layer class, of the text inside a prototxt's ``layer { }``, or of one itself."""
    if isinstance(layer, str):
        net = parse_net(f"layer {{ {layer} }}", "<layer>")
        if len(net.layer) != 1:
            raise RecaffeError(f"expected the text of one layer (what stands inside layer {{ }}), got {layer!r}")
        param = net.layer[0]
    elif isinstance(layer, LayerParameter):
        param = LayerParameter()
        param.CopyFrom(layer)
    else:
        param = LayerParameter(type=layer.type)
    param.name = param.name or snake_case(param.type)
    return param


def draw(bottoms: Sequence[Values], seed: int = 0) -> list[np.ndarray]:
    """The bottoms as float64 arrays; a tuple or list of sizes is a shape to fill with normal numbers."""
    rng = np.random.default_rng(seed)
    return [
        bottom.astype(np.float64) if isinstance(bottom, np.ndarray) else rng.normal(size=tuple(bottom))
        for bottom in bottoms
    ]


class SingleLayer:
    """A layer with blobs of its own, set up and reshaped.

    A layer that is given by its class need not be registered.  ``bottoms`` and ``parameters`` are host arrays;
    without ``parameters``, those that are learnt are filled with normal numbers times 0.5, and others keep their
    first values.  Every forward pass starts from the same state and random numbers.
    """

    def __init__(
        self,
        layer: Description,
        bottoms: Sequence[np.ndarray],
        *,
        phase: int = TRAIN,
        dtype: Any = np.float64,
        backend: Backend | None = None,
        parameters: Sequence[np.ndarray] | None = None,
        in_place: bool = False,
        seed: int = 0,
    ):
        self.backend, self.dtype, self.seed = backend or current_backend(), np.dtype(dtype), seed
        self.backend.seed(seed)
        param = describe(layer)
        if not param.HasField("phase"):
            param.phase = phase  # type: ignore[assignment]
        context = LayerContext(self.backend, param.phase, self.dtype)
        self.layer = layer(param, context) if isinstance(layer, type) else create_layer(param, context)
        self.bottom = [self._blob(f"bottom {j}") for j in range(len(bottoms))]
        tops = max(len(param.top), self.layer.tops[0], len(bottoms) if self.layer.bottoms_equal_tops else 0)
        self.top = [self._blob(f"top {j}") for j in range(tops)]
        if in_place:
            self.top[0] = self.bottom[0]
        self.layer.check_counts(len(bottoms), tops)
        self.set_bottoms(bottoms)
        self.layer.layer_setup(self.bottom, self.top)
        self._shapes: Any = None
        self._reshape()
        self._apply_param_specs()
        weights = list(param.loss_weight) or [self.layer.default_loss_weight(j) for j in range(tops)]
        self.loss_tops = [j for j, weight in enumerate(weights) if weight]
        if parameters is None:
            self._fill_parameters()
        else:
            self.set_parameters(parameters)
        self.state = self.layer.get_state()

    def set_bottoms(self, bottoms: Sequence[np.ndarray]) -> None:
        """Let the next forward passes read ``bottoms``, kept in ``values``."""
        self.values = [np.asarray(values, self.dtype) for values in bottoms]
        for blob, values in zip(self.bottom, self.values, strict=True):
            blob.reshape(*values.shape)
        self._load_bottoms()

    def forward(self) -> list[np.ndarray]:
        """Load the bottoms and run forward; gives the tops' values."""
        self._load_bottoms()
        self.restart()
        return self.run()

    def restart(self) -> None:
        """Let the next pass start from ``state`` (the one after set-up, at first) and the first random numbers."""
        self.backend.seed(self.seed)
        self.layer.reset_states()
        if self.state:
            self.layer.set_state(self.state)

    def run(self) -> list[np.ndarray]:
        """Run forward on what the blobs hold, with the random numbers that come next; gives the tops' values."""
        with self.backend.computing():
            self._reshape()
            self.layer.forward(self.bottom, self.top)
        return [self.host(blob.data) for blob in self.top]

    def set_top_diffs(self, diffs: Sequence[np.ndarray]) -> None:
        """Let the next backward pass start from ``diffs``."""
        for blob, values in zip(self.top, diffs, strict=True):
            blob.diff[...] = self.device(values)

    def backward(self, propagate_down: Sequence[bool]) -> None:
        """Run backward from the tops' diffs."""
        with self.backend.computing():
            self.layer.backward(self.top, propagate_down, self.bottom)

    def bottom_diffs(self) -> list[np.ndarray]:
        """The gradients of the bottoms."""
        return [self.host(blob.diff) for blob in self.bottom]

    def parameter_diffs(self) -> list[np.ndarray]:
        """The gradients of the parameters."""
        return [self.host(blob.diff) for blob in self.layer.blobs]

    def parameters(self) -> list[np.ndarray]:
        """The values of the parameters."""
        return [self.host(blob.data) for blob in self.layer.blobs]

    def set_parameters(self, values: Sequence[np.ndarray]) -> None:
        """Give the parameters these values."""
        for blob, array in zip(self.layer.blobs, values, strict=True):
            blob.data[...] = self.device(array)

    def learnt(self) -> list[int]:
        """The numbers of the parameters that get a gradient."""
        return [i for i, wanted in enumerate(self.layer.param_propagate_down) if wanted]

    def host(self, array: Any) -> np.ndarray:
        """A copy of ``array`` on the host."""
        return np.array(self.backend.to_host(array))

    def device(self, values: np.ndarray) -> Any:
        """``values`` in the layer's dtype on its device."""
        return self.backend.to_device(np.asarray(values, self.dtype))

    def _blob(self, name: str) -> Blob:
        return Blob((), self.dtype, self.backend, name)

    def _load_bottoms(self) -> None:
        for blob, values in zip(self.bottom, self.values, strict=True):
            blob.data[...] = self.device(values)

    def _reshape(self) -> None:
        shapes = [blob.shape for blob in self.bottom]
        if shapes != self._shapes or self.layer.reshape_every_pass:
            self.layer.reshape(self.bottom, self.top)
            self._shapes = shapes

    def _apply_param_specs(self) -> None:
        for i, spec in enumerate(self.layer.param.param):
            self.layer.param_propagate_down[i] = spec.lr_mult != 0

    def _fill_parameters(self) -> None:
        rng = np.random.default_rng(self.seed + 1)
        for i in self.learnt():
            blob = self.layer.blobs[i]
            blob.data[...] = self.device(0.5 * rng.normal(size=blob.shape))
