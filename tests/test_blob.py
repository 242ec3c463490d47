"""Blob: shapes, lazy memory, sharing, and diffs that add."""

import numpy as np
import pytest
from recaffe.framework.blob import Blob
from recaffe.framework.errors import RecaffeError
from recaffe.framework.layer_case import PlainCpuBackend
from recaffe.framework.strict_backend import StrictBackend

BACKENDS = {"cpu": PlainCpuBackend(), "strict": StrictBackend()}


@pytest.fixture(params=BACKENDS)
def backend(request):
    return BACKENDS[request.param]


def blob(backend, *shape, **options):
    return Blob(shape, backend=backend, name="x", **options)


def set_data(backend, blob, values):
    blob.data[...] = backend.to_device(np.asarray(values, blob.dtype))


def test_data_and_diff_are_zero_at_first(backend):
    x = blob(backend, 2, 3)
    assert (x.shape, x.count, x.ndim, x.dtype) == ((2, 3), 6, 2, np.float32)
    for array in (x.data, x.diff):
        assert array.dtype == np.float32
        np.testing.assert_array_equal(backend.to_host(array), np.zeros((2, 3)))


def test_memory_is_taken_on_first_use(backend):
    x = blob(backend, 1000, 1000)
    assert x._data.array is None
    assert x._diff.array is None
    assert x.data is x.data
    assert x._data.array is not None
    assert x._diff.array is None


def test_a_scalar_and_an_empty_blob(backend):
    assert blob(backend).count == 1
    assert blob(backend).data.shape == ()
    assert blob(backend, 0, 3).data.shape == (0, 3)


def test_float64(backend):
    assert blob(backend, 2, dtype=np.float64).diff.dtype == np.float64


def test_reshape_to_the_same_count_keeps_the_values(backend):
    x = blob(backend, 2, 3)
    set_data(backend, x, np.arange(6).reshape(2, 3))
    x.reshape(3, 2)
    np.testing.assert_array_equal(backend.to_host(x.data), np.arange(6).reshape(3, 2))
    x.reshape([6])
    assert x.shape == (6,)
    x.reshape((1, 6))
    assert x.shape == (1, 6)


def test_reshape_keeps_the_memory_where_it_fits(backend):
    x = blob(backend, 4, 3)
    set_data(backend, x, np.arange(12).reshape(4, 3))
    memory = x._data
    x.reshape(2, 3)
    assert x._data is memory
    np.testing.assert_array_equal(backend.to_host(x.data), np.arange(6).reshape(2, 3))
    x.reshape(4, 3)
    assert x._data is memory
    x.reshape(5, 3)
    assert x._data is not memory
    assert x.data.shape == x.diff.shape == (5, 3)


def test_reshape_like(backend):
    x = blob(backend, 1)
    x.reshape_like(blob(backend, 3, 4))
    assert x.shape == (3, 4)


def test_shared_data_is_one_memory_and_diffs_stay_apart(backend):
    x, y = blob(backend, 2, 3), blob(backend, 6)
    y.share_data(x)
    set_data(backend, x, np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(backend.to_host(y.data), np.arange(6))
    y.diff.fill(1)
    np.testing.assert_array_equal(backend.to_host(x.diff), np.zeros((2, 3)))
    y.share_diff(x)
    y.diff.fill(2)
    np.testing.assert_array_equal(backend.to_host(x.diff), np.full((2, 3), 2))


def test_blobs_of_other_counts_cannot_share(backend):
    with pytest.raises(RecaffeError, match=r"blob 'x' of shape \(2, 3\) cannot share .* 'x' of shape \(5,\)"):
        blob(backend, 2, 3).share_data(blob(backend, 5))
    with pytest.raises(RecaffeError, match="the counts differ"):
        blob(backend, 2, 3).share_diff(blob(backend, 5))


def test_contributions_to_the_diff_add(backend):
    x = blob(backend, 3)
    x.diff.fill(10)
    x.add_to_diff(lambda out: out.fill(1))
    np.testing.assert_array_equal(backend.to_host(x.diff), [11, 11, 11])


def test_after_clearing_the_first_contribution_is_written_into_the_diff(backend):
    x = blob(backend, 3)
    x.diff.fill(np.nan)
    x.clear_diff()
    written = []
    for value in (1, 2):
        x.add_to_diff(lambda out, value=value: (written.append(out is x.diff), out.fill(value)))
    assert written == [True, False]
    np.testing.assert_array_equal(backend.to_host(x.diff), [3, 3, 3])


def test_a_cleared_diff_reads_as_zero(backend):
    x = blob(backend, 3)
    x.diff.fill(np.nan)
    x.clear_diff()
    np.testing.assert_array_equal(backend.to_host(x.diff), [0, 0, 0])
    x.diff[...] += 1
    np.testing.assert_array_equal(backend.to_host(x.diff), [1, 1, 1])


def test_clearing_holds_for_all_that_share_the_diff(backend):
    x, y = blob(backend, 3), blob(backend, 3)
    y.share_diff(x)
    x.diff.fill(5)
    y.clear_diff()
    x.add_to_diff(lambda out: out.fill(1))
    y.add_to_diff(lambda out: out.fill(2))
    for shared in (x, y):
        np.testing.assert_array_equal(backend.to_host(shared.diff), [3, 3, 3])


def test_legacy_axes(backend):
    x = blob(backend, 5, 4)
    assert (x.num, x.channels, x.height, x.width) == (5, 4, 1, 1)
    with pytest.raises(RecaffeError, match="more than four axes"):
        _ = blob(backend, 1, 1, 1, 1, 1).num


@pytest.mark.parametrize(
    ("shape", "message"),
    [((2, -1), "negative size"), ((2**16, 2**15), "a blob holds at most 2,147,483,647")],
)
def test_impossible_shapes(backend, shape, message):
    x = blob(backend, 1)
    with pytest.raises(RecaffeError, match=message):
        x.reshape(*shape)
    assert x.shape == (1,)
