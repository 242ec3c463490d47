"""Functions that a backend may replace by a fused version.

A hot function is written once, plainly, against ``backend.xp`` in the file of the layer that uses it,
and marked ``@fusable``.  A backend holds faster versions of some of them under the same names
(``framework/kernels/``); where it has none, the plain version runs.  Tests compare the two.
"""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any


class Fusable:
    """A plain function ``f(backend, ...)`` that runs its fused version where the backend has one."""

    __name__: str

    def __init__(self, plain: Callable[..., Any]):
        self.plain = plain
        update_wrapper(self, plain)

    def __call__(self, backend: Any, *args: Any) -> Any:
        return backend.fused.get(self.__name__, self.plain)(backend, *args)


fusables: dict[str, Fusable] = {}


def fusable(plain: Callable[..., Any]) -> Fusable:
    """Mark ``plain(backend, ...)`` as replaceable by a fused function of the same name."""
    name = plain.__name__
    if name in fusables:
        raise ValueError(f"two fusable functions are named {name!r}")
    fusables[name] = Fusable(plain)
    return fusables[name]
