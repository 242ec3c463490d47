"""Blobs whose values are whole numbers that point at something: labels, words, rows."""

from typing import Any

from ...framework.blob import Blob
from ...framework.layer import Layer


def index_values(layer: Layer, blob: Blob, count: int, what: str, ignore: int | None = None) -> Any:
    """The values of ``blob`` as integers from 0 to ``count`` - 1; those equal to ``ignore`` become -1.

    Raises LayerError for a value out of range; fractions are cut off.
    """
    xp = layer.xp
    indices = blob.data.astype(xp.int64)
    if ignore is None:
        checked = indices
    else:
        ignored = indices == ignore
        checked = xp.where(ignored, 0, indices)
    # seen without a sign, a negative number is larger than any count
    if indices.size and int(checked.view(xp.uint64).max()) >= count:
        _fail_out_of_range(layer, blob, count, what, ignore)
    if ignore is not None:
        indices[ignored] = -1
    return indices


def _fail_out_of_range(layer: Layer, blob: Blob, count: int, what: str, ignore: int | None) -> None:
    values = layer.backend.to_host(blob.data)
    bad = ~((values > -1) & (values < count))
    if ignore is not None:
        bad &= values.astype("int64") != ignore
    place = tuple(int(i[0]) for i in bad.nonzero())
    allowed = f"a {what} from 0 to {count - 1}" + ("" if ignore is None else f", or {ignore} (ignored)")
    layer.fail(f"bottom {blob.name!r} has the value {values[place]:g} at {place}; expected {allowed}")
