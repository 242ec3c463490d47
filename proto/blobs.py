"""BlobProto to NumPy and back, through the bytes of the message: a weight is never a Python float."""

import math

import numpy as np

from . import recaffe_pb2 as pb
from .errors import RecaffeError

_RAW_TYPES = {0: "<f8", 1: "<f4", 2: "<f2"}  # OpenCV's numbers for the type of raw_data
_TYPES = {"data": "<f4", "diff": "<f4", "double_data": "<f8", "double_diff": "<f8"}
_VARINT, _FIXED64, _LENGTH = 0, 1, 2  # wire types


def blob_shape(blob: pb.BlobProto) -> tuple[int, ...]:
    """The shape of a blob, new style or the four axes num, channels, height, width of old files."""
    legacy = ("num", "channels", "height", "width")
    if any(blob.HasField(name) for name in legacy):
        shape = tuple(getattr(blob, name) for name in legacy)
    else:
        shape = tuple(blob.shape.dim)
    if any(dim < 0 for dim in shape):
        raise RecaffeError(f"a blob has the shape {shape}: no length can be negative")
    return shape


def blob_to_array(blob: pb.BlobProto) -> np.ndarray:
    """A new array of the blob's values: float64 where it holds doubles, float32 otherwise."""
    if blob.HasField("raw_data"):
        return _shaped(blob, _raw_values(blob), "values")
    return _shaped(blob, _packed_values(blob, "double_data" if len(blob.double_data) else "data"), "values")


def blob_diff_to_array(blob: pb.BlobProto) -> np.ndarray:
    """A new array of the blob's gradients: zeros where the file holds none."""
    values = _packed_values(blob, "double_diff" if len(blob.double_diff) else "diff")
    if not values.size:
        dtype = np.float64 if len(blob.double_data) else np.float32
        return np.zeros(blob_shape(blob), dtype)
    return _shaped(blob, values, "gradients")


def array_to_blob(array: np.ndarray, diff: np.ndarray | None = None) -> pb.BlobProto:
    """A blob of an array's shape and values (and gradients): doubles if it is float64, floats otherwise."""
    array = np.asarray(array)
    blob = pb.BlobProto()
    blob.shape.SetInParent()
    blob.shape.dim.extend(array.shape)
    prefix = "double_" if array.dtype == np.float64 else ""
    _merge_packed(blob, prefix + "data", array)
    if diff is not None:
        if np.shape(diff) != array.shape:
            raise ValueError(f"diff has the shape {np.shape(diff)}, the array {array.shape}")
        _merge_packed(blob, prefix + "diff", np.asarray(diff))
    return blob


def _shaped(blob: pb.BlobProto, values: np.ndarray, what: str) -> np.ndarray:
    shape = blob_shape(blob)
    if math.prod(shape) != values.size:
        raise RecaffeError(
            f"a blob of shape {shape} holds {values.size} {what}, expected {math.prod(shape)}: "
            "the file is damaged or was not written by Caffe"
        )
    return values.reshape(shape)


def _raw_values(blob: pb.BlobProto) -> np.ndarray:
    if blob.raw_data_type not in _RAW_TYPES:
        raise RecaffeError(
            f"a blob's raw_data is of type {blob.raw_data_type}; known are 0 (double), 1 (float), 2 (half)"
        )
    dtype = np.dtype(_RAW_TYPES[blob.raw_data_type])
    if len(blob.raw_data) % dtype.itemsize:
        raise RecaffeError(f"a blob's raw_data is cut short: {len(blob.raw_data)} bytes, {dtype.itemsize} a value")
    values = np.frombuffer(blob.raw_data, dtype)
    return values.astype(np.float64 if dtype.itemsize == 8 else np.float32)


def _packed_values(blob: pb.BlobProto, name: str) -> np.ndarray:
    """The values of a packed field, found by its number in the serialized message."""
    wire = blob.SerializeToString()
    wanted = blob.DESCRIPTOR.fields_by_name[name].number
    dtype = np.dtype(_TYPES[name])
    native = dtype.newbyteorder("=")
    position = 0
    while position < len(wire):
        key, position = _read_varint(wire, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == _LENGTH:
            size, position = _read_varint(wire, position)
            if number == wanted:
                return np.frombuffer(wire, dtype, size // dtype.itemsize, position).astype(native)
            position += size
        elif wire_type == _VARINT:
            _, position = _read_varint(wire, position)
        else:
            position += 8 if wire_type == _FIXED64 else 4
    return np.empty(0, native)


def _merge_packed(blob: pb.BlobProto, name: str, array: np.ndarray) -> None:
    """Set a packed field by merging its bytes."""
    values = np.ascontiguousarray(array, _TYPES[name]).reshape(-1).view(np.uint8)
    key = blob.DESCRIPTOR.fields_by_name[name].number << 3 | _LENGTH
    blob.MergeFromString(b"".join((_varint(key), _varint(values.size), values.data)))


def _read_varint(wire: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = wire[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
