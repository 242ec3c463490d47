"""Blob: an N-dimensional array of values (data) and their gradient (diff)."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .backend import Backend, current_backend
from .errors import RecaffeError

MAX_COUNT = 2**31 - 1


class Storage:
    """Flat memory that one or more blobs look at; taken on first use, zero at first.

    ``cleared`` stands for "all zero, not yet written": clearing a large gradient then costs nothing, and
    what comes first is written in place of being added.  ``released`` stands for "given back": a gradient inside a
    net is needed for a short while only, and its memory then serves others.
    """

    __slots__ = ("array", "backend", "cleared", "dtype", "released", "shared", "size")

    def __init__(self, backend: Backend, dtype: np.dtype, size: int):
        self.backend, self.dtype, self.size = backend, dtype, size
        self.array: Any = None
        self.cleared = self.released = self.shared = False

    def view(self, shape: tuple[int, ...], count: int) -> Any:
        """The first ``count`` values as an array of ``shape``."""
        if self.array is None:
            self.array = self.backend.zeros(self.size, self.dtype)
        return self.array[:count].reshape(shape)


class Kept:
    """The values that a blob has now, for a backward pass: copied only when a layer in place overwrites them."""

    __slots__ = ("_blob", "_copy", "_memory")

    def __init__(self, blob: "Blob"):
        self._blob = blob
        self._copy: Any = None
        self._memory: Any = None

    @property
    def data(self) -> Any:
        """The values, as an array of the blob's shape at that time."""
        return self._blob.data if self._copy is None else self._copy

    def save(self) -> None:
        """Copy the values, now."""
        blob = self._blob
        self._memory = blob._backend.take_array(blob.count, blob.dtype)
        self._copy = self._memory[: blob.count].reshape(blob.shape)
        self._copy[...] = blob.data

    def __del__(self) -> None:
        if self._memory is not None:
            self._blob._backend.free_arrays.append(self._memory)


class Blob:
    """data and diff of one shape.

    Both are allocated on first use; ``reshape`` keeps the memory where the new shape fits in it;
    ``share_data`` and ``share_diff`` let two blobs look at the same memory.
    """

    __slots__ = ("_backend", "_data", "_data_view", "_diff", "_diff_view", "count", "dtype", "kept", "name", "shape")

    def __init__(
        self,
        shape: Sequence[int] = (),
        dtype: Any = np.float32,
        backend: Backend | None = None,
        name: str = "",
    ):
        self.name = name
        self.dtype = np.dtype(dtype)
        self._backend = backend or current_backend()
        self.shape: tuple[int, ...] = ()
        self.count = -1
        self._data = self._diff = Storage(self._backend, self.dtype, 0)
        self._data_view: Any = None
        self._diff_view: Any = None
        self.kept: Kept | None = None
        self.reshape(*shape)

    def __repr__(self) -> str:
        return f"Blob({self.name!r}, shape={self.shape}, dtype={self.dtype})"

    @property
    def data(self) -> Any:
        """The values: an array of ``shape``."""
        if self._data_view is None:
            self._data_view = self._data.view(self.shape, self.count)
        return self._data_view

    @property
    def diff(self) -> Any:
        """The gradient with respect to the values: an array of ``shape``."""
        if self._diff_view is None:
            if self._diff.released:
                raise RecaffeError(
                    f"the gradient of blob {self.name!r} was not kept; set keeps_diffs = True on its net before"
                )
            self._diff_view = self._diff.view(self.shape, self.count)
        if self._diff.cleared:
            self._diff.cleared = False
            self._diff_view.fill(0)
        return self._diff_view

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def num(self) -> int:
        """Axis 0 of four, as old nets name it."""
        return self._legacy_axis(0)

    @property
    def channels(self) -> int:
        """Axis 1 of four, as old nets name it."""
        return self._legacy_axis(1)

    @property
    def height(self) -> int:
        """Axis 2 of four, as old nets name it."""
        return self._legacy_axis(2)

    @property
    def width(self) -> int:
        """Axis 3 of four, as old nets name it."""
        return self._legacy_axis(3)

    def reshape(self, *shape: Any) -> None:
        """Take a new shape, sizes or a sequence of them; values are kept only where the count stays the same."""
        if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)):
            shape = tuple(shape[0])
        if shape == self.shape and self.count >= 0:
            return
        shape = tuple(int(size) for size in shape)
        if any(size < 0 for size in shape):
            raise RecaffeError(f"blob {self.name!r}: the shape {shape} has a negative size")
        count = math.prod(shape)
        if count > MAX_COUNT:
            raise RecaffeError(
                f"blob {self.name!r}: the shape {shape} has {count:,} values; a blob holds at most {MAX_COUNT:,}"
            )
        if count > self._data.size:
            self._data = Storage(self._backend, self.dtype, count)
        if count > self._diff.size or self._diff is self._data:
            self._diff = Storage(self._backend, self.dtype, count)
        self.shape, self.count = shape, count
        self._data_view = self._diff_view = None

    def keep(self) -> Kept:
        """The values as they are now, for the backward pass; layers that keep the same values share one copy."""
        if self.kept is None:
            self.kept = Kept(self)
        return self.kept

    def keep_before_overwriting(self) -> Kept:
        """As ``keep``, for the layer that will overwrite the values in place."""
        kept = self.keep()
        kept.save()
        self.kept = None
        return kept

    def will_change(self, in_place: bool) -> None:
        """A layer is about to write the values: those that are kept are saved first if it works in place."""
        if self.kept is not None:
            if in_place:
                self.kept.save()
            self.kept = None

    def release_diff(self) -> None:
        """Give the gradient's memory back for others to use, unless another blob looks at it too.

        Reading the gradient is an error until ``expect_diff`` says that it will be written again.
        """
        storage = self._diff
        if storage.array is not None and not storage.shared:
            self._backend.free_arrays.append(storage.array)
            storage.array, storage.released, self._diff_view = None, True, None

    def expect_diff(self) -> None:
        """Take memory for a gradient that will be written whole: what another blob has released, if it fits."""
        storage = self._diff
        if storage.array is None:
            storage.array, storage.released = self._backend.take_array(storage.size, storage.dtype), False

    def reshape_like(self, other: "Blob") -> None:
        """Take the shape of ``other``."""
        self.reshape(*other.shape)

    def share_data(self, other: "Blob") -> None:
        """Look at the values of ``other`` (same count, any shape)."""
        self._check_shareable(other)
        if self._data is not other._data:
            self._data, self._data_view = other._data, None

    def share_diff(self, other: "Blob") -> None:
        """Look at the gradient of ``other`` (same count, any shape)."""
        self._check_shareable(other)
        if self._diff is not other._diff:
            self._diff, self._diff_view = other._diff, None
            self._diff.shared = True

    def clear_diff(self) -> None:
        """Set the gradient to zero (without touching its memory yet)."""
        self._diff.cleared = True

    def add_to_diff(self, write: Callable[[Any], None]) -> None:
        """diff += what ``write(out)`` writes into an array of the blob's shape.

        After ``clear_diff`` the first contribution is written straight into the gradient.
        """
        if self._diff.cleared:
            self._diff.cleared = False
            write(self.diff)
        else:
            contribution = self._backend.xp.empty(self.shape, self.dtype)
            write(contribution)
            self.diff[...] += contribution

    def _check_shareable(self, other: "Blob") -> None:
        if self.count != other.count:
            raise RecaffeError(
                f"blob {self.name!r} of shape {self.shape} cannot share the memory of {other.name!r}"
                f" of shape {other.shape}: the counts differ"
            )

    def _legacy_axis(self, axis: int) -> int:
        if self.ndim > 4:
            raise RecaffeError(f"blob {self.name!r} of shape {self.shape} has more than four axes")
        return self.shape[axis] if axis < self.ndim else 1
