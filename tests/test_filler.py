"""Fillers: values and statistics; where they are fixed, against Caffe."""

import numpy as np
import pytest
from recaffe.framework.errors import RecaffeError
from recaffe.framework.filler import FILLERS, fill_values
from recaffe.proto import FillerParameter, parse_text

SHAPE = (100, 50, 5, 4)  # fan_in 1000, fan_out 2000


def fill(text: str, shape: tuple[int, ...] = SHAPE, seed: int = 0) -> np.ndarray:
    values = fill_values(parse_text(text, FillerParameter), shape, np.random.default_rng(seed))
    assert values.shape == shape
    return values


def test_constant():
    assert np.all(fill("") == 0)
    assert np.all(fill("value: -0.25", (3, 2)) == -0.25)


def test_uniform():
    values = fill("type: 'uniform' min: -2 max: 3")
    assert -2 <= values.min() < -1.99
    assert 2.99 < values.max() <= 3
    assert values.mean() == pytest.approx(0.5, abs=0.02)
    assert values.std() == pytest.approx(5 / np.sqrt(12), rel=0.01)


def test_gaussian():
    values = fill("type: 'gaussian' mean: 1 std: 0.5")
    assert values.mean() == pytest.approx(1, abs=0.01)
    assert values.std() == pytest.approx(0.5, rel=0.02)
    inside = np.abs(values - 1) < 0.5
    assert inside.mean() == pytest.approx(0.6827, abs=0.01)


def test_sparse_gaussian_keeps_as_many_weights_for_each_output():
    values = fill("type: 'gaussian' std: 1 sparse: 5")
    kept = values[values != 0]
    assert (values != 0).mean() == pytest.approx(5 / 100, rel=0.05)
    assert kept.std() == pytest.approx(1, rel=0.05)


def test_positive_unitball():
    values = fill("type: 'positive_unitball'")
    assert values.min() >= 0
    np.testing.assert_allclose(values.reshape(100, -1).sum(axis=1), 1)
    assert values.std() * 1000 == pytest.approx(1 / np.sqrt(3), rel=0.02)


@pytest.mark.parametrize(
    ("norm", "n"),
    [("", 1000), ("variance_norm: FAN_IN", 1000), ("variance_norm: FAN_OUT", 2000), ("variance_norm: AVERAGE", 1500)],
)
def test_xavier_and_msra(norm, n):
    limit = np.sqrt(3 / n)
    values = fill(f"type: 'xavier' {norm}")
    assert 0.999 * limit < values.max() <= limit
    assert -limit <= values.min() < -0.999 * limit
    assert values.std() == pytest.approx(np.sqrt(1 / n), rel=0.01)
    values = fill(f"type: 'msra' {norm}")
    assert values.mean() == pytest.approx(0, abs=0.0005)
    assert values.std() == pytest.approx(np.sqrt(2 / n), rel=0.01)
    assert np.abs(values).max() > 3 * np.sqrt(2 / n)


def test_fans_of_a_blob_of_one_axis():
    assert np.abs(fill("type: 'xavier'", (1000,))).max() == pytest.approx(np.sqrt(3), rel=0.01)  # fan_in 1
    limit = np.sqrt(3 / 1000)
    assert np.abs(fill("type: 'xavier' variance_norm: FAN_OUT", (1000,))).max() == pytest.approx(limit, rel=0.01)


@pytest.mark.parametrize(
    ("size", "row"),
    [
        (1, [1]),
        (2, [0.25, 0.25]),
        (3, [0.25, 0.5, 0.25]),
        (4, [0.0625, 0.1875, 0.1875, 0.0625]),
        (5, [1 / 9, 2 / 9, 1 / 3, 2 / 9, 1 / 9]),
        (6, [1 / 36, 1 / 12, 5 / 36, 5 / 36, 1 / 12, 1 / 36]),
        (7, [0.0625, 0.125, 0.1875, 0.25, 0.1875, 0.125, 0.0625]),
    ],
)
def test_bilinear_as_caffe_fills_it(size, row):
    values = fill("type: 'bilinear'", (2, 3, size, size))
    np.testing.assert_allclose(values[1, 2, 0], row)
    np.testing.assert_allclose(values[0, 1, :, 0], row)
    np.testing.assert_array_equal(values, np.broadcast_to(values[0, 0], values.shape))


@pytest.mark.parametrize("kind", FILLERS)
def test_the_same_seed_fills_the_same_values(kind):
    shape = (4, 3, 5, 5)
    np.testing.assert_array_equal(fill(f"type: '{kind}'", shape, 3), fill(f"type: '{kind}'", shape, 3))


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        ("type: 'xaver'", (3, 2), "unknown filler 'xaver'; did you mean 'xavier'"),
        ("type: 'uniform' min: 1 max: 0", (3, 2), "max 0 is below min 1"),
        ("type: 'gaussian' std: -1", (3, 2), "std is -1"),
        ("type: 'gaussian' sparse: 0", (3, 2), "sparse is 0"),
        ("type: 'xavier' sparse: 3", (3, 2), "sparse is an option of the gaussian filler"),
        ("type: 'bilinear'", (3, 2), r"4 axes with square kernels, got the shape \(3, 2\)"),
        ("type: 'bilinear'", (1, 1, 3, 2), "square kernels"),
        ("type: 'positive_unitball'", (), "at least one axis"),
    ],
)
def test_mistakes(text, shape, message):
    with pytest.raises(RecaffeError, match=message):
        fill(text, shape)


@pytest.mark.parametrize("text", ['type: "uniform" min: -1', 'type: "gaussian"', 'type: "xavier"', 'type: "msra"'])
def test_a_large_blob_is_drawn_in_parts_with_the_same_values(text, monkeypatch):
    whole = fill(text, (40, 50))
    monkeypatch.setattr("recaffe.framework.filler.PART", 333)
    np.testing.assert_array_equal(fill(text, (40, 50)), whole)
