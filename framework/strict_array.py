"""The arrays of the stand-in for the GPU: NumPy memory that stays hidden.

What CuPy's arrays refuse is refused here: mixing with host arrays, NumPy's functions, and conversions that
nobody asked for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import numpy as np

Scalar = (bool, int, float, complex, np.generic)


def words(text: str) -> frozenset[str]:
    """The words of ``text``."""
    return frozenset(text.split())


METHODS = words("""
    all any argmax argmin argpartition argsort astype choose clip compress conj copy cumprod cumsum diagonal
    dot fill flatten max mean min nonzero partition prod ptp put ravel repeat reshape round searchsorted sort
    squeeze std sum swapaxes take trace transpose var view
""")
PROPERTIES = words("dtype flags itemsize nbytes ndim shape size strides")
UNARY = words("abs invert neg pos")
BINARY = words("""
    add and divmod eq floordiv ge gt le lshift lt matmul mod mul ne or pow radd rand rdivmod rfloordiv rlshift
    rmatmul rmod rmul ror rpow rrshift rshift rsub rtruediv rxor sub truediv xor
""")
IN_PLACE = words("iadd iand ifloordiv ilshift imod imul ior ipow irshift isub itruediv ixor")
REFUSED_KEYWORDS = {"einsum": {"out"}, "take": {"mode"}, "put": {"mode"}, "astype": {"casting"}}


class DeviceArray:
    """An array whose memory the host cannot see; ``get`` and ``item`` are the ways out."""

    __slots__ = ("_host",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: np.ndarray):
        self._host = host
        if _made is not None:
            _made.append((host.dtype, host.size))

    def __repr__(self) -> str:
        return f"DeviceArray({self._host!r})"

    def get(self) -> np.ndarray:
        """A copy on the host."""
        return self._host.copy()

    def item(self, *index: int) -> Any:
        """The one value (or the value at ``index``) as a Python number."""
        return self._host.item(*index)

    def tolist(self) -> Any:
        """The values as nested lists."""
        return self._host.tolist()

    @property
    def T(self) -> "DeviceArray":  # noqa: N802
        """The transpose."""
        return DeviceArray(self._host.T)

    @property
    def real(self) -> "DeviceArray":
        """The real part."""
        return DeviceArray(self._host.real)

    def __len__(self) -> int:
        return len(self._host)

    def __getitem__(self, key: Any) -> "DeviceArray":
        key = host_key(key)
        keys = key if isinstance(key, tuple) else (key,)
        if not any(part is Ellipsis for part in keys):
            key = (*keys, Ellipsis)  # a view even where one element is left
        return DeviceArray(self._host[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._host[host_key(key)] = operand(value, "assignment")

    def __float__(self) -> float:
        return float(self._one_value("float"))

    def __int__(self) -> int:
        return int(self._one_value("int"))

    def __bool__(self) -> bool:
        return bool(self._one_value("bool"))

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a device array is not iterated over: each element would be a copy of its own")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("no implicit conversion of a device array to NumPy: use backend.to_host")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise TypeError(f"numpy.{func.__name__} on a device array: use backend.xp.{func.__name__}")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        # np.float32(2) * array comes here, and CuPy takes it
        if method == "__call__" and not kwargs and len(inputs) == 2 and isinstance(inputs[0], np.generic):
            return wrap(ufunc(inputs[0], operand(inputs[1], ufunc.__name__)))
        raise TypeError(f"numpy.{ufunc.__name__} on a device array (or beside one): use backend.xp")

    def _one_value(self, kind: str) -> Any:
        if self._host.ndim:
            raise TypeError(f"{kind}() of a device array of shape {self._host.shape}: only 0-d is one value")
        return self._host.item()


def _add_members() -> None:
    """Give DeviceArray the methods, properties and operators that CuPy's arrays have."""

    def forward_method(name: str) -> Any:
        def method(self: DeviceArray, *args: Any, **kwargs: Any) -> Any:
            check_keywords(name, kwargs)
            return wrap(getattr(self._host, name)(*unwrap(args, name), **unwrap(kwargs, name)))

        return method

    def forward_operator(name: str) -> Any:
        def operator(self: DeviceArray, other: Any) -> Any:
            return wrap(getattr(self._host, name)(operand(other, name)))

        return operator

    def forward_in_place(name: str) -> Any:
        def operator(self: DeviceArray, other: Any) -> Any:
            getattr(self._host, name)(operand(other, name))
            return self

        return operator

    for name in METHODS:
        setattr(DeviceArray, name, forward_method(name))
    for name in PROPERTIES:
        setattr(DeviceArray, name, property(attrgetter(f"_host.{name}")))
    for name in UNARY:
        setattr(DeviceArray, f"__{name}__", forward_method(f"__{name}__"))
    for name in BINARY:
        setattr(DeviceArray, f"__{name}__", forward_operator(f"__{name}__"))
    for name in IN_PLACE:
        setattr(DeviceArray, f"__{name}__", forward_in_place(f"__{name}__"))


_add_members()


def wrap(value: Any) -> Any:
    """``value`` with all arrays and numbers in it as device arrays."""
    if isinstance(value, (tuple, list)):
        return type(value)(wrap(part) for part in value)
    if isinstance(value, (np.ndarray, *Scalar)):
        return DeviceArray(np.asarray(value))
    return value


def unwrap(value: Any, name: str) -> Any:
    """``value`` with the hidden memory of all device arrays in it; a host array among them is an error."""
    if isinstance(value, DeviceArray):
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"{name}: a host array among device arrays: use backend.to_device")
    if isinstance(value, (tuple, list)):
        return type(value)(unwrap(part, name) for part in value)
    if isinstance(value, dict):
        return {key: unwrap(part, name) for key, part in value.items()}
    return value


def operand(value: Any, name: str) -> Any:
    """The operand of an elementwise operation: a device array or a single number."""
    if value is None or isinstance(value, (DeviceArray, *Scalar)):
        return unwrap(value, name)
    raise TypeError(f"{name}: expected a device array or a number, got {type(value).__name__}")


def host_key(key: Any) -> Any:
    return unwrap(key, "indexing")


def check_keywords(name: str, keywords: dict[str, Any]) -> None:
    """Refuse the keywords that NumPy's function has and CuPy's has not."""
    refused = {"initial", "subok"} | REFUSED_KEYWORDS.get(name, set())
    if name != "copyto":
        refused.add("where")
    if found := refused.intersection(keywords):
        raise TypeError(f"CuPy's {name} has no {', '.join(sorted(found))}")


_made: list[tuple[np.dtype, int]] | None = None


@contextmanager
def arrays_made() -> Iterator[list[tuple[np.dtype, int]]]:
    """Records (dtype, size) of every device array that is made inside the block."""
    global _made
    _made = []
    try:
        yield _made
    finally:
        _made = None
