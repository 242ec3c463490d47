"""Blobs to arrays and back, by value, in every form files hold them."""

import numpy as np
import pytest
from recaffe.proto import (
    BlobProto,
    RecaffeError,
    array_to_blob,
    blob_diff_to_array,
    blob_shape,
    blob_to_array,
)

VALUES = np.array([[1.5, -2, 3e-20], [np.inf, 0, -0.1]], np.float32)


def assert_same(array, expected):
    assert array.dtype == expected.dtype
    assert array.shape == expected.shape
    assert array.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(2, 3), (6,), (1, 2, 1, 3), (0,), (2, 0, 3), ()])
def test_round_trip(dtype, shape):
    array = np.resize(VALUES, shape).astype(dtype)
    blob = array_to_blob(array)
    assert blob.HasField("shape")
    assert list(blob.double_data if dtype == np.float64 else blob.data) == array.reshape(-1).tolist()
    expected = array if array.size else array.astype(np.float32)  # without values there is no type either
    assert_same(blob_to_array(blob), expected)
    assert_same(blob_to_array(BlobProto.FromString(blob.SerializeToString())), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients(dtype):
    array, diff = VALUES.astype(dtype), (2 * VALUES).astype(dtype)
    blob = array_to_blob(array, diff)
    assert_same(blob_to_array(blob), array)
    assert_same(blob_diff_to_array(blob), diff)
    assert_same(blob_diff_to_array(array_to_blob(array)), np.zeros_like(array))


def test_a_gradient_of_another_shape_is_a_fault_of_the_caller():
    with pytest.raises(ValueError, match="shape"):
        array_to_blob(VALUES, VALUES.T)


@pytest.mark.parametrize(
    "array",
    [VALUES.T, VALUES[:, ::2], VALUES.astype(">f4"), VALUES.astype(np.float16), np.arange(6).reshape(2, 3)],
    ids=["transposed", "strided", "big-endian", "half", "integers"],
)
def test_any_array_is_taken_as_floats(array):
    assert_same(blob_to_array(array_to_blob(array)), np.ascontiguousarray(array, np.float32))


def test_arrays_are_new_and_writable():
    blob = array_to_blob(VALUES)
    array = blob_to_array(blob)
    array[:] = 7
    assert_same(blob_to_array(blob), VALUES)


def test_what_protobuf_itself_wrote():
    blob = BlobProto(data=[1, 2, 3], diff=[4, 5, 6], num=1)
    blob.shape.dim.append(3)
    blob.ClearField("num")
    assert_same(blob_to_array(blob), np.array([1, 2, 3], np.float32))
    assert_same(blob_diff_to_array(blob), np.array([4, 5, 6], np.float32))


def test_unpacked_data_of_old_files():
    """One key and four bytes a value (0x2d: field 5, 32 bits), after the four legacy axes."""
    axes = b"\x08\x01\x10\x01\x18\x01\x20\x03"
    values = b"".join(b"\x2d" + np.float32(value).tobytes() for value in (1.5, -2.0, 0.25))
    blob = BlobProto.FromString(axes + values)
    assert blob_shape(blob) == (1, 1, 1, 3)
    assert_same(blob_to_array(blob), np.array([1.5, -2.0, 0.25], np.float32).reshape(1, 1, 1, 3))


def test_legacy_axes_count_even_when_only_some_are_set():
    assert blob_shape(BlobProto(width=5)) == (0, 0, 0, 5)
    assert blob_shape(BlobProto()) == ()


def test_fields_of_a_later_writer_are_passed_over():
    """Unknown fields of each wire type before and after the data."""
    foreign = b"\xa0\x06\x96\x01" + b"\xa1\x06" + 8 * b"x" + b"\xa2\x06\x03abc" + b"\xa5\x06" + 4 * b"y"
    known = array_to_blob(VALUES).SerializeToString()
    assert_same(blob_to_array(BlobProto.FromString(foreign + known + foreign)), VALUES)


@pytest.mark.parametrize(
    ("kind", "dtype", "expected"), [(0, "<f8", np.float64), (1, "<f4", np.float32), (2, "<f2", np.float32)]
)
def test_raw_data(kind, dtype, expected):
    values = np.array([0.5, -1.25, 2048.0])
    blob = BlobProto(raw_data_type=kind, raw_data=values.astype(dtype).tobytes())
    blob.shape.dim.append(3)
    assert_same(blob_to_array(blob), values.astype(expected))


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (BlobProto(num=1, channels=1, height=2, width=2, data=[1, 2, 3]), r"\(1, 1, 2, 2\) holds 3 values, expected 4"),
        (BlobProto(data=[1, 2]), r"\(\) holds 2 values, expected 1"),
        (BlobProto(num=-1, channels=1, height=1, width=1, data=[1]), "no length can be negative"),
        (BlobProto(raw_data_type=3, raw_data=b"1234"), "raw_data is of type 3"),
        (BlobProto(raw_data_type=2, raw_data=b"123"), "cut short: 3 bytes, 2 a value"),
    ],
)
def test_damaged_blobs_are_told(blob, message):
    with pytest.raises(RecaffeError, match=message):
        blob_to_array(blob)


def test_damaged_gradients_are_told():
    with pytest.raises(RecaffeError, match="holds 2 gradients, expected 1"):
        blob_diff_to_array(BlobProto(num=1, channels=1, height=1, width=1, data=[1], diff=[1, 2]))


def test_a_large_blob():
    array = np.random.default_rng(1).random((300, 1001), np.float32)
    assert_same(blob_to_array(array_to_blob(array, -array)), array)
    assert_same(blob_diff_to_array(array_to_blob(array, -array)), -array)
