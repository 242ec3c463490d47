"""A stand-in for the GPU where there is none: the plain layers on device arrays that are none, for tests.

Its array module has NumPy's functions as far as CuPy has them too, and takes device arrays alone.  So a layer
that runs on it keeps to ``xp``.
"""

from types import ModuleType
from typing import Any

import numpy as np

from .backend import Backend
from .strict_array import DeviceArray, check_keywords, host_key, operand, unwrap, words, wrap

# what NumPy has and CuPy 13 lacks
MISSING = words("""
    acos acosh apply_over_axes asin asinh asmatrix astype atan atan2 atanh bitwise_count bitwise_invert
    bitwise_left_shift bitwise_right_shift block bmat bool broadcast_shapes busday_count busday_offset
    busdaycalendar bytes_ character clongdouble complex256 concat cond cumulative_prod cumulative_sum
    datetime64 datetime_as_string datetime_data eig eigvals einsum_path errstate flexible float128 frompyfunc
    fromregex geomspace get_include getbufsize geterr geterrcall histogram_bin_edges info insert is_busday
    isdtype isnat long longdouble matrix matrix_norm matrix_transpose matvec memmap multi_dot nanpercentile
    nanquantile ndenumerate nditer nested_iters object_ permute_dims polyder polydiv polyint pow
    put_along_axis recarray record setbufsize seterr seterrcall show_runtime spacing str_ svdvals timedelta64
    trapezoid ulong unique_all unique_counts unique_inverse unique_values unstack vecdot vecmat vector_norm
    void
""")
# functions that make arrays from host values, or that look at no values at all
FROM_HOST = words("""
    arange array asanyarray asarray ascontiguousarray asfortranarray can_cast empty eye finfo frombuffer
    full identity iinfo indices issubdtype isscalar linspace logspace ndindex ones promote_types result_type
    tri tril_indices triu_indices zeros
""")
TAKE_HOST_ARRAYS = words("array asanyarray asarray ascontiguousarray asfortranarray frombuffer")
HOST_RESULTS = words("""
    can_cast finfo iinfo issubdtype isscalar may_share_memory ndim promote_types result_type shape
    shares_memory size
""")
SCATTERED = words("add subtract maximum minimum bitwise_and bitwise_or bitwise_xor")  # ufuncs with .at
SUMMED = words("add multiply")  # ufuncs with .reduce and .accumulate


class StrictModule:
    """NumPy's names over device arrays, as far as CuPy has them too."""

    ndarray = DeviceArray

    def __init__(self, module: ModuleType = np):
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name in MISSING or name.startswith("_") or not hasattr(self._module, name):
            raise AttributeError(f"CuPy has no {name!r}")
        if name == "random":
            raise AttributeError("random numbers come from backend.uniform, whose state a snapshot keeps")
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):
            value = StrictModule(value)
        elif isinstance(value, np.ufunc):
            value = StrictUfunc(value)
        elif callable(value) and not isinstance(value, type):
            value = StrictFunction(value)
        setattr(self, name, value)
        return value


class StrictFunction:
    """A function of NumPy that takes and gives device arrays."""

    def __init__(self, function: Any):
        self._function = function
        self._name = function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        check_keywords(self._name, kwargs)
        if self._name in TAKE_HOST_ARRAYS and isinstance(args[0], np.ndarray):
            return DeviceArray(np.array(args[0], *args[1:], **kwargs))
        if self._name not in FROM_HOST and not has_device_array((args, kwargs)):
            got = ", ".join(type(arg).__name__ for arg in args)
            raise TypeError(f"xp.{self._name} takes device arrays, got {got}")
        result = self._function(*unwrap(args, self._name), **unwrap(kwargs, self._name))
        return result if self._name in HOST_RESULTS else wrap(result)


class StrictUfunc:
    """A ufunc of NumPy that takes and gives device arrays; only the methods that CuPy's have."""

    def __init__(self, ufunc: np.ufunc):
        self._ufunc = ufunc
        self._name = ufunc.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        check_keywords(self._name, kwargs)
        operands = [operand(arg, self._name) for arg in args]
        return wrap(self._ufunc(*operands, **unwrap(kwargs, self._name)))

    def at(self, array: DeviceArray, indices: Any, values: Any = None) -> None:
        """Unbuffered in-place operation at ``indices``."""
        if self._name not in SCATTERED:
            raise NotImplementedError(f"CuPy has no {self._name}.at")
        self._ufunc.at(array._host, host_key(indices), operand(values, self._name))

    def reduce(self, array: DeviceArray, axis: Any = 0, **kwargs: Any) -> Any:
        """The sum or product along ``axis``."""
        return self._along("reduce", array, axis, kwargs)

    def accumulate(self, array: DeviceArray, axis: int = 0, **kwargs: Any) -> Any:
        """The running sum or product along ``axis``."""
        return self._along("accumulate", array, axis, kwargs)

    def outer(self, a: DeviceArray, b: DeviceArray) -> DeviceArray:
        """The operation on all pairs of elements."""
        return wrap(self._ufunc.outer(operand(a, self._name), operand(b, self._name)))

    def _along(self, method: str, array: DeviceArray, axis: Any, kwargs: dict[str, Any]) -> Any:
        if self._name not in SUMMED:
            raise NotImplementedError(f"CuPy has no {self._name}.{method}")
        check_keywords(self._name, kwargs)
        return wrap(getattr(self._ufunc, method)(array._host, axis, **unwrap(kwargs, self._name)))


class StrictBackend(Backend):
    """The plain layers on device arrays that are none; for tests."""

    name = "strict"

    def __init__(self, seed: int | None = None):
        super().__init__(seed)
        self.xp = StrictModule()

    def to_host(self, array: DeviceArray) -> np.ndarray:
        if not isinstance(array, DeviceArray):
            raise TypeError(f"to_host takes a device array, got {type(array).__name__}")
        return array.get()

    def to_device(self, array: Any) -> DeviceArray:
        return array if isinstance(array, DeviceArray) else DeviceArray(np.array(array))


def has_device_array(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return any(has_device_array(part) for part in value)
    return isinstance(value, DeviceArray)
