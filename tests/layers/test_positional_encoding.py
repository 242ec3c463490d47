"""PositionalEncoding: its values, where positions start again, what is carried, and mistakes."""

import numpy as np
import pytest
import recaffe
from recaffe.framework.single_layer import SingleLayer

from tests.support import assert_close

rng = np.random.default_rng(3)


def encoding(options="", *bottoms, phase=recaffe.TRAIN, **more):
    text = f"type: 'PositionalEncoding' positional_encoding_param {{ {options} }}"
    return SingleLayer(text, list(bottoms), phase=phase, **more)


@pytest.mark.parametrize("D", [6, 7])
def test_sines_and_cosines(D):
    x = rng.normal(size=(5, 2, D))
    (y,) = encoding("input_scale: 3", x).forward()
    for position in range(5):
        for i in range(D):
            angle = position / 10000 ** (2 * (i // 2) / D)
            expected = 3 * x[position, :, i] + (np.cos(angle) if i % 2 else np.sin(angle))
            assert_close(y[position, :, i], expected, 1e-12)


def test_a_learnt_table_and_its_gradient():
    table, x = rng.normal(size=(6, 4)), rng.normal(size=(5, 2, 4))
    single = encoding("encoding: LEARNED max_length: 6", x, parameters=[table])
    assert_close(single.forward()[0], x + table[:5, None], 1e-12)
    dy = rng.normal(size=x.shape)
    single.set_top_diffs([dy])
    single.layer.blobs[0].clear_diff()
    single.backward([True])
    assert_close(single.bottom_diffs()[0], dy, 1e-12)
    assert_close(single.parameter_diffs()[0], np.concatenate([dy.sum(axis=1), np.zeros((1, 4))]), 1e-12)


def test_rotary_products_depend_on_the_distance_alone():
    q, k = rng.normal(size=4), rng.normal(size=4)
    x = np.empty((9, 2, 8))
    x[:, 0], x[:, 1] = np.tile(q, 2), np.tile(k, 2)  # both heads alike
    (y,) = encoding("encoding: ROTARY num_heads: 2", x).forward()
    assert_close(y[..., :4], y[..., 4:], 1e-12)
    products = y[:, 0, :4] @ y[:, 1, :4].T
    for distance in range(-8, 9):
        diagonal = np.diagonal(products, distance)
        assert_close(diagonal, np.full(diagonal.shape, diagonal[0]), 1e-12)
    assert_close(products[0, 0], q @ k, 1e-12)
    assert abs(products[0, 5] - products[5, 0]) > 0.01
    angles = 3 / 10000 ** np.array([0.0, 0.5])
    turned = (q[0::2] + 1j * q[1::2]) * np.exp(1j * angles)
    assert_close(y[3, 0, :4], np.stack([turned.real, turned.imag], axis=1).reshape(-1), 1e-12)


ENCODINGS = ["", "encoding: LEARNED max_length: 4", "encoding: ROTARY"]


@pytest.mark.parametrize("options", ENCODINGS)
@pytest.mark.parametrize("N", [1, 2])
def test_positions_start_where_a_sequence_does(options, N):
    x, cont = rng.normal(size=(7, N, 4)), np.ones((7, N))
    cont[3] = 0  # sequences of 3 and 4 steps: the table has enough rows
    parameters = [rng.normal(size=(4, 4))] if "LEARNED" in options else []
    (y,) = encoding(options, x, cont, parameters=parameters).forward()
    parts = [encoding(options, part, parameters=parameters).forward()[0] for part in (x[:3], x[3:])]
    assert_close(y, np.concatenate(parts), 1e-12)


@pytest.mark.parametrize("options", ENCODINGS)
def test_carried_on_each_stream_counts_by_itself(options):
    options = options.replace("max_length: 4", "max_length: 9")
    x, cont = rng.normal(size=(6, 3, 4)), np.ones((6, 3))
    cont[2, 1] = cont[4, 2] = 0
    parameters = [rng.normal(size=(9, 4))] if "LEARNED" in options else []
    (expected,) = encoding(options, x, cont, parameters=parameters).forward()
    single = encoding(f"{options} carry_state: true", x, cont, phase=recaffe.TEST, parameters=parameters)

    def passes(start, streams=slice(None)):
        for t in range(start, 6):
            single.set_bottoms([x[t : t + 1, streams], cont[t : t + 1, streams]])
            assert_close(single.run()[0], expected[t : t + 1, streams], 1e-12)

    passes(0)
    single.layer.reset_states()
    single.set_bottoms([x[:4], cont[:4]])
    assert_close(single.run()[0], expected[:4], 1e-12)
    state = single.layer.get_state()
    assert state["positions"].tolist() == [4, 2, 4]
    passes(4)
    single.layer.set_state(state)
    single.layer.select_streams([1, 1, 0])
    passes(4, [1, 1, 0])


@pytest.mark.parametrize(
    ("options", "bottoms", "phase", "message"),
    [
        ("encoding: LEARNED", [(3, 2, 4)], recaffe.TRAIN, "needs max_length, 1 or more, for a LEARNED encoding"),
        ("base: 0", [(3, 2, 4)], recaffe.TRAIN, "base is 0, expected a number above 0"),
        ("encoding: ROTARY base: -2", [(3, 2, 4)], recaffe.TRAIN, "base is -2, expected a number above 0"),
        ("base: nan", [(3, 2, 4)], recaffe.TRAIN, "base is nan, expected a number above 0"),
        ("base: inf", [(3, 2, 4)], recaffe.TRAIN, "base is inf, expected a number above 0"),
        ("encoding: ROTARY", [(3, 2, 5)], recaffe.TRAIN, "x has 5 values, expected an even number for each"),
        ("encoding: ROTARY num_heads: 4", [(3, 2, 4)], recaffe.TRAIN, "for each of num_heads = 4 heads"),
        ("", [(3, 2)], recaffe.TRAIN, r"has shape \(3, 2\), expected T x N x D"),
        ("", [(3, 2, 4), (2, 3)], recaffe.TRAIN, r"\(cont\) has shape \(2, 3\), expected T x N = \(3, 2\)"),
        ("carry_state: true", [(3, 2, 4)], recaffe.TRAIN, "carry_state is for phase TEST alone"),
    ],
)
def test_mistakes(options, bottoms, phase, message):
    with pytest.raises(recaffe.RecaffeError, match=message):
        encoding(options, *(np.zeros(shape) for shape in bottoms), phase=phase)


def test_a_position_without_a_row():
    single = encoding("encoding: LEARNED max_length: 4", np.zeros((5, 2, 3)))
    with pytest.raises(recaffe.RecaffeError, match="a sequence has 5 positions, more than max_length = 4"):
        single.forward()


def test_other_streams_than_those_carried():
    single = encoding("carry_state: true", np.zeros((2, 3, 4)), phase=recaffe.TEST)
    single.run()
    single.set_bottoms([np.zeros((2, 2, 4))])
    with pytest.raises(recaffe.RecaffeError, match="3 streams are carried on, but there are 2; call reset_states"):
        single.run()
