"""Python: a layer written by the user, found by module and class name."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ...framework.blob import Blob
from ...framework.errors import nearest
from ...framework.layer import Layer, LayerContext, register
from ...proto import LayerParameter


@register
class PythonLayer(Layer):
    """Runs an object of the class ``layer`` in the module ``module``, as pycaffe does.

    The class derives from ``recaffe.Layer`` and writes::

        def setup(self, bottom, top): ...
        def reshape(self, bottom, top): ...
        def forward(self, bottom, top): ...
        def backward(self, top, propagate_down, bottom): ...

    It finds the option string in ``self.param_str``, and makes parameters by ``self.blobs.add_blob(*shape)``
    (zeros) or ``self.add_blob(name, shape, filler)``.  reshape runs before every forward pass.  A class written
    with ``layer_setup`` in place of ``setup`` works as well.

    Shapes
        bottoms, tops and parameters: the class decides.

    Options (python_param)
        module: found in the current folder and on Python's path; layer: the class; param_str.

    Raises LayerError for a module or class that is not there; errors in the user's code keep their traceback.
    """

    type = "Python"
    in_place = True
    reshape_every_pass = True

    def __init__(self, param: LayerParameter, context: LayerContext | None = None):
        super().__init__(param, context)
        self.user: Layer = find_class(self)(param, self.context)
        self.blobs = self.user.blobs = ParameterList(self.user)
        self.user.param_str = param.python_param.param_str  # type: ignore[attr-defined]
        self.user.param_str_ = param.python_param.param_str  # type: ignore[attr-defined]  # its first name

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        getattr(self.user, "setup", self.user.layer_setup)(bottom, top)
        self.param_propagate_down = self.user.param_propagate_down

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.user.reshape(bottom, top)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.user.forward(bottom, top)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        self.user.param_propagate_down = self.param_propagate_down
        self.user.backward(top, propagate_down, bottom)

    def default_loss_weight(self, top_index: int) -> float:
        return self.user.default_loss_weight(top_index)

    def allow_force_backward(self, bottom_index: int) -> bool:
        return self.user.allow_force_backward(bottom_index)

    def get_state(self) -> dict[str, Any]:
        return self.user.get_state()

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.user.set_state(state)

    def close(self) -> None:
        self.user.close()


class ParameterList(list[Blob]):
    """The parameters of a user's layer, with pycaffe's way of adding one."""

    def __init__(self, layer: Layer):
        super().__init__()
        self._layer = layer

    def add_blob(self, *shape: int) -> Blob:
        """Add a parameter of ``shape``."""
        return self._layer.add_blob(str(len(self)), shape)


def find_class(layer: PythonLayer) -> type[Layer]:
    """The class that the layer's python_param names."""
    module_name, class_name = layer.param.python_param.module, layer.param.python_param.layer
    if not module_name or not class_name:
        layer.fail("python_param needs module and layer (the name of the class)")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # a fault inside the user's module
        layer.fail(
            f"there is no module {error.name!r} in the current folder ({folder}) nor on Python's path:"
            f" {', '.join(path for path in sys.path if path not in ('', folder))}"
        )
    found = getattr(module, class_name, None)
    if found is None:
        close = nearest(class_name, dir(module))
        hint = f"; did you mean {close[0]!r}?" if close else ""
        layer.fail(f"module {module_name!r} ({module.__file__}) has no class {class_name!r}{hint}")
    if not (isinstance(found, type) and issubclass(found, Layer)):
        layer.fail(f"{module_name}.{class_name} is not a class that derives from recaffe.Layer")
    return found
