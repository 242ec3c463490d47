"""Products, shapes, joining and cutting against their formulas, and what they refuse."""

import numpy as np
import pytest
import recaffe
from recaffe.framework.single_layer import SingleLayer

from tests.support import assert_close, backward, make_net

rng = np.random.default_rng(8)


def random(*shape: int) -> np.ndarray:
    return rng.normal(size=shape)


def run(text: str, *bottoms: np.ndarray) -> list[np.ndarray]:
    """The tops of the layer ``text``."""
    return SingleLayer(text, bottoms).forward()


def refused(message: str, text: str, *bottoms: np.ndarray) -> None:
    """The layer ``text`` must raise RecaffeError with ``message`` in it."""
    with pytest.raises(recaffe.RecaffeError) as error:
        run(text, *bottoms)
    assert message in str(error.value)


@pytest.mark.parametrize("transpose", ["false", "true"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_inner_product(axis: int, transpose: str) -> None:
    x = random(2, 3, 4)
    text = f"type: 'InnerProduct' inner_product_param {{ num_output: 5 axis: {axis} transpose: {transpose} }}"
    single = SingleLayer(text, [x])
    W, b = single.parameters()
    rows = x.reshape(-1, W.size // 5)
    (y,) = single.forward()
    matrix = W if transpose == "true" else W.T
    assert_close(y, (rows @ matrix + b).reshape(*x.shape[: axis % 3], 5), 1e-12)
    dy = random(*y.shape)
    backward(single, [dy], [True])
    dW, db = single.parameter_diffs()
    dy_rows = dy.reshape(-1, 5)
    assert_close(dW, rows.T @ dy_rows if transpose == "true" else dy_rows.T @ rows, 1e-12)
    assert_close(db, dy_rows.sum(axis=0), 1e-12)
    assert_close(single.bottom_diffs()[0], (dy_rows @ matrix.T).reshape(x.shape), 1e-12)


def test_inner_product_refuses() -> None:
    refused("needs num_output", "type: 'InnerProduct'", random(2, 3))
    text = "type: 'InnerProduct' inner_product_param { num_output: 5 %s }"
    refused("axis 2 is out of range", text % "axis: 2", random(2, 3))
    refused("relu is an option of a fork", text % "relu: true", random(2, 3))
    single = SingleLayer(text % "", [random(2, 3)])
    single.set_bottoms([random(2, 4)])
    with pytest.raises(recaffe.RecaffeError, match=r"\(2, 4\): 4 values from axis 1 on, expected the 3"):
        single.forward()


def test_embed_adds_the_gradients_of_a_word() -> None:
    words = np.array([[2.0, 0.0], [2.0, 2.0]])
    single = SingleLayer("type: 'Embed' embed_param { num_output: 3 input_dim: 4 }", [words])
    W, b = single.parameters()
    (y,) = single.forward()
    assert_close(y, W[words.astype(int)] + b, 1e-12)
    dy = random(2, 2, 3)
    backward(single, [dy], [False])
    dW, db = single.parameter_diffs()
    expected = np.zeros((4, 3))
    expected[0] = dy[0, 1]
    expected[2] = dy[0, 0] + dy[1, 0] + dy[1, 1]
    assert_close(dW, expected, 1e-12)
    assert_close(db, dy.sum(axis=(0, 1)), 1e-12)


def test_embed_refuses() -> None:
    text = "type: 'Embed' embed_param { num_output: 3 input_dim: 4 }"
    refused("bottom 'bottom 0' has the value 4 at (1, 0); expected a word from 0 to 3", text, np.array([[0.0], [4.0]]))
    refused("needs input_dim", "type: 'Embed' embed_param { num_output: 3 }", np.zeros(2))
    single = SingleLayer(text, [np.zeros(2)])
    single.forward()
    with pytest.raises(recaffe.RecaffeError, match="have no gradient"):
        backward(single, [random(2, 3)], [True])


@pytest.mark.parametrize("option", ["axis: 1", "axis: -2", "concat_dim: 1"])
def test_concat(option: str) -> None:
    parts = [random(2, 3, 4), random(2, 1, 4), random(2, 2, 4)]
    single = SingleLayer(f"type: 'Concat' concat_param {{ {option} }}", parts)
    (y,) = single.forward()
    assert (y == np.concatenate(parts, axis=1)).all()
    dy = random(*y.shape)
    backward(single, [dy], [True, False, True])
    first, second, third = single.bottom_diffs()
    assert (first == dy[:, :3]).all()
    assert (second == 0).all()
    assert (third == dy[:, 4:]).all()


def test_concat_refuses() -> None:
    refused("'bottom 1' has shape (2, 5)", "type: 'Concat' concat_param { axis: 0 }", random(2, 3), random(2, 5))
    refused("give axis alone", "type: 'Concat' concat_param { axis: 0 concat_dim: 0 }", random(2, 3))
    refused("axis 3 is out of range", "type: 'Concat' concat_param { axis: 3 }", random(2, 3))


@pytest.mark.parametrize(
    ("option", "bounds"), [("", [0, 2, 4, 6]), ("slice_dim: 1", [0, 2, 4, 6]), ("slice_point: [1, 5]", [0, 1, 5, 6])]
)
def test_slice(option: str, bounds: list[int]) -> None:
    x = random(2, 6, 3)
    single = SingleLayer(f"type: 'Slice' top: 'a' top: 'b' top: 'c' slice_param {{ {option} }}", [x])
    tops = single.forward()
    for top, start, stop in zip(tops, bounds[:-1], bounds[1:], strict=True):
        assert (top == x[:, start:stop]).all()
    diffs = [random(*top.shape) for top in tops]
    backward(single, diffs, [True])
    assert (single.bottom_diffs()[0] == np.concatenate(diffs, axis=1)).all()


def test_slice_refuses() -> None:
    two = "type: 'Slice' top: 'a' top: 'b'"
    refused("2 tops cannot share equally", two, random(2, 5))
    refused("2 slice points for 2 tops, expected 1", f"{two} slice_param {{ slice_point: [1, 2] }}", random(2, 5))
    for point in (0, 5, 9):
        refused("must increase and lie between 0 and 5", f"{two} slice_param {{ slice_point: {point} }}", random(2, 5))
    refused("give axis alone", f"{two} slice_param {{ axis: 1 slice_dim: 1 }}", random(2, 4))


def test_eltwise_max_of_equal_values() -> None:
    x = [np.array([1.0, 2.0, 2.0, 2.0]), np.array([1.0, 3.0, 2.0, 0.0]), np.array([0.0, 3.0, 2.0, 2.0])]
    single = SingleLayer("type: 'Eltwise' eltwise_param { operation: MAX }", x)
    (y,) = single.forward()
    assert y.tolist() == [1, 3, 2, 2]
    backward(single, [np.ones(4)], [True] * 3)
    assert [diff.tolist() for diff in single.bottom_diffs()] == [[0, 0, 0, 1], [1, 1, 1, 0], [0, 0, 0, 0]]


def test_eltwise_sum_with_coefficients() -> None:
    x = [random(2, 3) for _ in range(3)]
    single = SingleLayer("type: 'Eltwise' eltwise_param { coeff: [1, -0.5, 2] }", x)
    assert_close(single.forward()[0], x[0] - 0.5 * x[1] + 2 * x[2], 1e-12)
    dy = random(2, 3)
    backward(single, [dy], [True] * 3)
    for diff, coefficient in zip(single.bottom_diffs(), (1, -0.5, 2), strict=True):
        assert_close(diff, coefficient * dy, 1e-12)


def test_eltwise_product_through_zeros() -> None:
    x = [np.array([0.0, 2.0, 0.0]), np.array([3.0, 0.0, 0.0]), np.array([5.0, 7.0, 11.0])]
    single = SingleLayer("type: 'Eltwise' eltwise_param { operation: PROD }", x)
    assert single.forward()[0].tolist() == [0, 0, 0]
    backward(single, [np.ones(3)], [True] * 3)
    assert [diff.tolist() for diff in single.bottom_diffs()] == [[15, 0, 0], [0, 14, 0], [0, 0, 0]]


def test_eltwise_refuses() -> None:
    two = random(2, 3), random(2, 3)
    refused("'bottom 1' has shape (3, 2)", "type: 'Eltwise'", random(2, 3), random(3, 2))
    refused("1 coeff for 2 bottoms", "type: 'Eltwise' eltwise_param { coeff: 1 }", *two)
    refused("which is for operation: SUM", "type: 'Eltwise' eltwise_param { operation: MAX coeff: [1, 2] }", *two)
    refused("operation DIV is a fork's", "type: 'Eltwise' eltwise_param { operation: DIV }", *two)
    refused("at least 2 bottom(s), got 1", "type: 'Eltwise'", random(2, 3))


@pytest.mark.parametrize(
    ("option", "shape"),
    [
        ("", (2, 60)),
        ("axis: 0", (120,)),
        ("axis: 1 end_axis: -2", (2, 12, 5)),
        ("axis: -2", (2, 3, 20)),
        ("axis: 2 end_axis: 2", (2, 3, 4, 5)),
    ],
)
def test_flatten(option: str, shape: tuple[int, ...]) -> None:
    x = random(2, 3, 4, 5)
    single = SingleLayer(f"type: 'Flatten' flatten_param {{ {option} }}", [x])
    (y,) = single.forward()
    assert (y == x.reshape(shape)).all()
    dy = random(*shape)
    backward(single, [dy], [True])
    assert (single.bottom_diffs()[0] == dy.reshape(x.shape)).all()


def test_flatten_refuses_axes_in_the_wrong_order() -> None:
    refused("end_axis 0 is before axis 1", "type: 'Flatten' flatten_param { end_axis: 0 }", random(2, 3))


@pytest.mark.parametrize(
    ("option", "shape"),
    [
        ("shape { dim: [2, 2, -1] }", (2, 2, 6)),
        ("shape { dim: [0, -1] }", (2, 12)),
        ("shape { dim: [-1, 0] } axis: 1", (2, 3, 4)),
        ("shape { dim: [4, 3] } axis: 1 num_axes: 2", (2, 4, 3)),
        ("shape { dim: [6] } axis: 0 num_axes: 2", (6, 4)),
        ("shape { dim: [1, 1] } axis: -1", (2, 3, 4, 1, 1)),
        ("shape { dim: [1] } axis: 1 num_axes: 0", (2, 1, 3, 4)),
        ("shape { dim: [6] } axis: -4 num_axes: 2", (6, 4)),
        ("shape { } axis: 1 num_axes: 0", (2, 3, 4)),
    ],
)
def test_reshape(option: str, shape: tuple[int, ...]) -> None:
    x = random(2, 3, 4)
    single = SingleLayer(f"type: 'Reshape' reshape_param {{ {option} }}", [x])
    (y,) = single.forward()
    assert (y == x.reshape(shape)).all()
    dy = random(*shape)
    backward(single, [dy], [True])
    assert (single.bottom_diffs()[0] == dy.reshape(x.shape)).all()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("shape { dim: [5, -1] }", "(2, 3, 4) has 24 values: shape [5, -1] does not fit"),
        ("shape { dim: [5] }", "shape [5] does not fit"),
        ("shape { dim: [-1, -1] }", "at most one -1"),
        ("shape { dim: [-2] }", "at most one -1"),
        ("shape { dim: [2, 3, 4, 0] }", "keeps axis 3"),
        ("shape { dim: 1 } axis: 4", "axis 4 and num_axes -1 do not fit"),
        ("shape { dim: 1 } axis: 2 num_axes: 2", "axis 2 and num_axes 2 do not fit"),
    ],
)
def test_reshape_refuses(option: str, message: str) -> None:
    refused(message, f"type: 'Reshape' reshape_param {{ {option} }}", random(2, 3, 4))


INPUT = 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 4 } } }'


def test_views_share_memory_and_follow_another_shape() -> None:
    net = make_net(f"""
        force_backward: true {INPUT}
        layer {{ name: "split" type: "Split" bottom: "x" top: "a" top: "b" }}
        layer {{ name: "flat" type: "Flatten" bottom: "a" top: "f" }}
        layer {{ name: "back" type: "Reshape" bottom: "f" top: "r" reshape_param {{ shape {{ dim: [0, -1, 2] }} }} }}
    """)
    for shape in ((2, 3, 4), (4, 5, 2), (1, 2, 2)):
        net.blobs["x"].reshape(*shape)
        x = random(*shape).astype(np.float32)
        out = net.forward(x=x)
        assert (out["b"] == x).all()
        assert (out["r"] == x.reshape(shape[0], -1, 2)).all()
        assert np.shares_memory(net.blobs["r"].data, net.blobs["x"].data)
        dr, db = random(*out["r"].shape).astype(np.float32), random(*shape).astype(np.float32)
        for _ in range(2):
            dx = net.backward(r=dr, b=db)["x"]
            assert (dx == dr.reshape(shape) + db).all()


def test_split_adds_in_the_order_of_the_tops() -> None:
    single = SingleLayer("type: 'Split' top: 'a' top: 'b' top: 'c'", [np.zeros(1)], dtype=np.float32)
    single.forward()
    backward(single, [np.array([1.0]), np.array([2.0**-24]), np.array([2.0**-24])], [True])
    assert single.bottom_diffs()[0] == np.float32(1.0)  # the small ones first would give more


def test_silence_clears_the_diffs() -> None:
    single = SingleLayer("type: 'Silence'", [random(2), random(3)])
    for blob in single.bottom:
        blob.diff[...] = 1
    backward(single, [], [True, False])
    assert [diff.tolist() for diff in single.bottom_diffs()] == [[0, 0], [1, 1, 1]]


def test_parameter_is_learnt_and_its_gradient_adds() -> None:
    net = make_net("""
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
        layer { name: "p" type: "Parameter" top: "p"
                parameter_param { shape { dim: 2 dim: 3 } blob_filler { type: "constant" value: 2 } } }
        layer { name: "loss" type: "EuclideanLoss" bottom: "p" bottom: "x" top: "loss" }
    """)
    x = random(2, 3)
    net.forward(x=x)
    net.clear_param_diffs()
    net.backward()
    net.backward()
    assert_close(net.params["p"][0].diff, 2 * (2 - x) / 2, 1e-6)


@pytest.mark.parametrize(("shapes", "expected"), [(0, ()), (1, (2, 3)), (2, (2, 3))])
def test_input_shapes(shapes: int, expected: tuple[int, ...]) -> None:
    given = "shape { dim: [2, 3] } " * shapes
    net = make_net(f"layer {{ name: 'x' type: 'Input' top: 'a' top: 'b' input_param {{ {given} }} }}")
    assert net.inputs == ["a", "b"]
    assert net.blobs["a"].shape == net.blobs["b"].shape == expected


def test_input_refuses_shapes_that_match_no_tops() -> None:
    refused("2 shapes for 3 tops", "type: 'Input' top: 'a' top: 'b' top: 'c' input_param { shape { } shape { } }")


def test_arg_max_orders_equal_values_from_the_last() -> None:
    x = np.array([[1.0, 5.0, 5.0, 0.0], [2.0, 2.0, 2.0, 2.0]])
    (y,) = run("type: 'ArgMax' argmax_param { top_k: 3 out_max_val: true }", x)
    assert y.tolist() == [[[2, 1, 0], [5, 5, 1]], [[3, 2, 1], [2, 2, 2]]]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_arg_max_along_an_axis(axis: int) -> None:
    x = random(3, 4, 5)
    (places,) = run(f"type: 'ArgMax' argmax_param {{ axis: {axis} top_k: 2 }}", x)
    (values,) = run(f"type: 'ArgMax' argmax_param {{ axis: {axis} top_k: 2 out_max_val: true }}", x)
    order = np.argsort(-x, axis=axis).take([0, 1], axis=axis)
    assert (places == order).all()
    assert (values == np.take_along_axis(x, order, axis=axis)).all()


def test_arg_max_keeps_the_axes_of_its_bottom() -> None:
    (y,) = run("type: 'ArgMax'", random(3, 4, 5, 6))
    assert y.shape == (3, 1, 1, 1)


def test_arg_max_refuses_more_than_there_are() -> None:
    refused("top_k is 5, expected from 1 to the 4 values", "type: 'ArgMax' argmax_param { top_k: 5 }", random(3, 4))


def test_batch_reindex() -> None:
    x, places = random(3, 2), np.array([2.0, 0.0, 2.0, 2.0])
    single = SingleLayer("type: 'BatchReindex'", [x, places])
    assert (single.forward()[0] == x[[2, 0, 2, 2]]).all()
    dy = random(4, 2)
    dx, _ = backward(single, [dy], [True, False])
    assert_close(dx, [dy[1], [0, 0], dy[0] + dy[2] + dy[3]], 1e-12)
    refused("expected a place from 0 to 2", "type: 'BatchReindex'", x, np.array([3.0]))


def test_crop() -> None:
    x, size = random(2, 3, 5, 6), np.zeros((1, 1, 2, 3))
    single = SingleLayer("type: 'Crop' crop_param { offset: [1, 2] }", [x, size])
    assert (single.forward()[0] == x[:, :, 1:3, 2:5]).all()
    dy = random(2, 3, 2, 3)
    dx, _ = backward(single, [dy], [True, False])
    expected = np.zeros(x.shape)
    expected[:, :, 1:3, 2:5] = dy
    assert (dx == expected).all()
    refused("2 values from 4 on do not fit 5", "type: 'Crop' crop_param { offset: 4 }", x, size)
    refused("3 offsets for 2 axes", "type: 'Crop' crop_param { offset: [1, 1, 1] }", x, size)


def test_filter_follows_its_selector() -> None:
    net = make_net("""
        force_backward: true
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: [4, 2] } } }
        layer { name: "s" type: "Input" top: "s" input_param { shape { dim: 4 } } }
        layer { name: "f" type: "Filter" bottom: "x" bottom: "s" top: "y" }
    """)
    assert net.blobs["y"].shape == (4, 2)
    x = random(4, 2).astype(np.float32)
    for selector in ([0, 1, 0, 2], [1, 1, 1, 0], [0, 0, 0, 0]):
        kept = np.flatnonzero(selector)
        assert (net.forward(x=x, s=selector)["y"] == x[kept]).all()
        dy = random(len(kept), 2).astype(np.float32)
        expected = np.zeros(x.shape)
        expected[kept] = dy
        assert (net.backward(y=dy)["x"] == expected).all()


def test_filter_refuses() -> None:
    refused("expected 3 items", "type: 'Filter' top: 'y'", random(4, 2), np.zeros(3))
    two = "type: 'Filter' top: 'a' top: 'b'"
    refused("expected a top for each bottom but the last, 1, got 2", two, random(4), np.zeros(4))


@pytest.mark.parametrize(
    ("operation", "value", "slope"),
    [
        ("SUM", lambda x: x.sum(axis=(1, 2)), np.ones_like),
        ("ASUM", lambda x: np.abs(x).sum(axis=(1, 2)), np.sign),
        ("SUMSQ", lambda x: (x**2).sum(axis=(1, 2)), lambda x: 2 * x),
        ("MEAN", lambda x: x.mean(axis=(1, 2)), lambda x: np.full(x.shape, 1 / 12)),
    ],
)
def test_reduction(operation: str, value, slope) -> None:
    x, dy = random(2, 3, 4), random(2)
    single = SingleLayer(f"type: 'Reduction' reduction_param {{ operation: {operation} axis: 1 coeff: 0.5 }}", [x])
    assert_close(single.forward()[0], 0.5 * value(x), 1e-12)
    assert_close(backward(single, [dy], [True])[0], 0.5 * slope(x) * dy[:, None, None], 1e-12)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_tile(axis: int) -> None:
    x = random(2, 3, 4)
    single = SingleLayer(f"type: 'Tile' tile_param {{ axis: {axis} tiles: 3 }}", [x])
    (y,) = single.forward()
    assert (y == np.concatenate([x, x, x], axis=axis)).all()
    dy = random(*y.shape)
    assert_close(backward(single, [dy], [True])[0], sum(np.split(dy, 3, axis=axis)), 1e-12)
    refused("needs tiles", "type: 'Tile'", x)
