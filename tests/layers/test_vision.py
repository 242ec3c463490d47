"""Vision layers against references that go window by window, and what they refuse."""

import numpy as np
import pytest
import recaffe
from recaffe.framework.backend import CpuBackend
from recaffe.framework.layer_case import PlainCpuBackend
from recaffe.framework.single_layer import SingleLayer

from tests.reference.convolution import convolution, deconvolution
from tests.reference.normalization import lrn
from tests.reference.pooling import average, expected_draw, largest, place_of_largest, pooling
from tests.support import assert_close, backward

rng = np.random.default_rng(4)

BACKENDS = [PlainCpuBackend, CpuBackend]


def random(*shape: int) -> np.ndarray:
    return rng.normal(size=shape)


def repeated(name: str, values: tuple[int, ...]) -> str:
    return " ".join(f"{name}: {value}" for value in values)


def refused(message: str, text: str, *bottoms: np.ndarray) -> None:
    """The layer ``text`` must raise RecaffeError with ``message`` in it."""
    with pytest.raises(recaffe.RecaffeError) as error:
        SingleLayer(text, bottoms)
    assert message in str(error.value)


WINDOWS = {
    "plain": ((3, 3), (1, 1), (0, 0), (1, 1), 1, (5, 6)),
    "all options": ((3, 2), (2, 1), (1, 2), (2, 3), 2, (6, 7)),
    "pad beyond the kernel": ((1, 2), (2, 2), (3, 3), (1, 1), 1, (3, 2)),
    "pad beyond the last window": ((1, 1), (10, 10), (3, 3), (1, 1), 1, (1, 2)),
    "windows that leave rows out": ((2, 2), (3, 3), (0, 0), (1, 1), 2, (6, 7)),
    "pointwise": ((1, 1), (1, 1), (0, 0), (1, 1), 2, (3, 4)),
    "depthwise": ((3, 3), (1, 1), (1, 1), (1, 1), 4, (4, 5)),
    "one axis": ((3,), (2,), (1,), (2,), 2, (9,)),
    "no axis": ((), (), (), (), 1, ()),
    "three axes": ((2, 1, 3), (1, 2, 1), (1, 0, 1), (1, 1, 2), 2, (3, 4, 5)),
}


def window_text(kernel, stride, pad, dilation, group):
    fields = zip(("kernel_size", "stride", "pad", "dilation"), (kernel, stride, pad, dilation), strict=True)
    return f"num_output: 8 group: {group} " + " ".join(repeated(*field) for field in fields)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", WINDOWS)
def test_convolution(name, backend):
    *window, sizes = WINDOWS[name]
    kernel, stride, pad, dilation, group = window
    text = f"type: 'Convolution' convolution_param {{ {window_text(*window)} }}"
    x = random(2, 4, *sizes)
    single = SingleLayer(text, [x], backend=backend())
    weight, bias = single.parameters()
    assert weight.shape == (8, 4 // group, *kernel)
    assert_close(single.forward()[0], convolution(x, weight, bias, stride, pad, dilation, group), 1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", [name for name in WINDOWS if "beyond" not in name])
def test_deconvolution(name, backend):
    *window, sizes = WINDOWS[name]
    kernel, stride, pad, dilation, group = window
    text = f"type: 'Deconvolution' convolution_param {{ {window_text(*window)} }}"
    x = random(2, 4, *sizes)
    single = SingleLayer(text, [x], backend=backend())
    weight, bias = single.parameters()
    assert weight.shape == (4, 8 // group, *kernel)
    assert_close(single.forward()[0], deconvolution(x, weight, bias, stride, pad, dilation, group), 1e-12)


def test_convolution_in_many_chunks(monkeypatch):
    """A batch whose columns are made a few images at a time gives the same values and gradients."""
    text = "type: 'Convolution' convolution_param { num_output: 3 kernel_size: 3 pad: 1 }"
    x, dy = random(5, 2, 4, 4), random(5, 3, 4, 4)
    outcomes = []
    for values in (1 << 22, 2 * 2 * 9 * 16):
        monkeypatch.setattr("recaffe.layers.vision.convolve.COLUMN_VALUES", values)
        single = SingleLayer(text, [x], backend=PlainCpuBackend())
        outcomes.append(single.forward())
        backward(single, [dy], [True])
        outcomes[-1] += single.bottom_diffs() + single.parameter_diffs()
    for whole, parts in zip(*outcomes, strict=True):
        assert_close(parts, whole, 1e-12)


def test_convolution_axis_counts_what_is_before_it_as_the_batch():
    text = "type: 'Convolution' convolution_param { num_output: 2 kernel_size: 2 axis: %d }"
    x = random(2, 3, 4, 5)
    last = SingleLayer(text % -2, [x])
    weight, bias = last.parameters()
    y = convolution(x.reshape(6, 4, 5), weight, bias, (1,), (0,), (1,), 1)
    assert_close(last.forward()[0], y.reshape(2, 3, 2, 4), 1e-12)


def test_convolution_of_several_bottoms_shares_one_weight():
    text = "type: 'Convolution' convolution_param { num_output: 2 kernel_size: 2 }"
    bottoms, dy = [random(2, 3, 4, 4) for _ in range(2)], [random(2, 2, 3, 3) for _ in range(2)]
    both = SingleLayer(text, bottoms)
    both.forward()
    backward(both, dy, [True, True])
    added = [np.zeros(diff.shape) for diff in both.parameter_diffs()]
    for x, y in zip(bottoms, dy, strict=True):
        one = SingleLayer(text, [x], parameters=both.parameters())
        one.forward()
        backward(one, [y], [True])
        added = [total + diff for total, diff in zip(added, one.parameter_diffs(), strict=True)]
    for got, expected in zip(both.parameter_diffs(), added, strict=True):
        assert_close(got, expected, 1e-12)


def test_kernel_h_and_w_say_what_kernel_size_says():
    x = random(1, 2, 6, 7)
    pair = SingleLayer(
        "type: 'Convolution' convolution_param { num_output: 2 kernel_h: 2 kernel_w: 3 stride_h: 2 stride_w: 1"
        " pad_w: 1 }",
        [x],
    )
    listed = SingleLayer(
        "type: 'Convolution' convolution_param { num_output: 2 kernel_size: [2, 3] stride: [2, 1] pad: [0, 1] }",
        [x],
        parameters=pair.parameters(),
    )
    assert_close(pair.forward()[0], listed.forward()[0], 1e-12)


def test_bilinear_deconvolution_keeps_a_plane():
    """Upsampling by 2 of a linear ramp is the ramp at twice the places, away from the edges."""
    text = (
        "type: 'Deconvolution' convolution_param { num_output: 1 kernel_size: 4 stride: 2 pad: 1 bias_term: false"
        " weight_filler { type: 'bilinear' } }"
    )
    single = SingleLayer(text, [np.arange(36.0).reshape(1, 1, 6, 6)])
    single.set_parameters([np.outer([0.25, 0.75, 0.75, 0.25], [0.25, 0.75, 0.75, 0.25]).reshape(1, 1, 4, 4)])
    rows, columns = np.mgrid[0:12, 0:12]
    ramp = 6 * (rows / 2 - 0.25) + columns / 2 - 0.25
    assert_close(single.forward()[0][0, 0, 1:-1, 1:-1], ramp[1:-1, 1:-1], 1e-12)


CONVOLUTION_ERRORS = {
    "num_output is 0": "kernel_size: 3",
    "no kernel_size is given": "num_output: 2",
    "kernel_size and kernel_h are both given": "num_output: 2 kernel_size: 3 kernel_h: 3 kernel_w: 3",
    "kernel_h is given alone": "num_output: 2 kernel_h: 3",
    "stride_w is given alone": "num_output: 2 kernel_size: 3 stride_w: 3",
    "kernel_size is given 3 times": "num_output: 2 kernel_size: [1, 2, 3]",
    "kernel_size is 0, 0, expected at least 1": "num_output: 2 kernel_size: 0",
    "stride is 0, 0, expected at least 1": "num_output: 2 kernel_size: 2 stride: 0",
    "dilation is 1, 0, expected at least 1": "num_output: 2 kernel_size: 2 dilation: [1, 0]",
    "group is 0": "num_output: 2 kernel_size: 2 group: 0",
    "has 4 channels, expected a multiple of group 3": "num_output: 3 kernel_size: 2 group: 3",
    "num_output is 3, expected a multiple of group 2": "num_output: 3 kernel_size: 2 group: 2",
    "axis 4 is out of range": "num_output: 2 kernel_size: 2 axis: 4",
    "'bottom 0' has spatial sizes 5 x 6, too small for kernel 3 x 3 with dilation 3 x 3 and pad 0 x 0":
        "num_output: 2 kernel_size: 3 dilation: 3",
    "relu is an option of a fork": "num_output: 2 kernel_size: 3 relu: true",
}  # fmt: skip


@pytest.mark.parametrize("message", CONVOLUTION_ERRORS)
def test_convolution_refuses(message):
    text = f"name: 'c' type: 'Convolution' convolution_param {{ {CONVOLUTION_ERRORS[message]} }}"
    refused(message, text, random(2, 4, 5, 6))
    refused("layer 'c' (type 'Convolution')", text, random(2, 4, 5, 6))


def test_convolution_refuses_bottoms_that_change():
    text = "type: 'Convolution' convolution_param { num_output: 2 kernel_size: 2 }"
    refused("all bottoms must have one shape", text, random(2, 3, 4, 4), random(2, 3, 4, 5))
    refused("kernel_h is for 2 spatial axes", text.replace("kernel_size", "kernel_w: 2 kernel_h"), random(2, 3, 4))
    single = SingleLayer(text, [random(2, 3, 4, 4)])
    for shape, message in (((2, 5, 4, 4), "5 channels now, expected 3"), ((2, 3, 4), "1 spatial axes now, expected 2")):
        single.set_bottoms([random(*shape)])
        with pytest.raises(recaffe.RecaffeError, match=message):
            single.forward()


def test_deconvolution_refuses_a_pad_that_leaves_nothing():
    text = "type: 'Deconvolution' convolution_param { num_output: 2 kernel_size: 3 pad: 4 }"
    refused("the top would have sizes -2 x -2", text, random(1, 2, 4, 4))


POOLINGS = {
    "kernel_size: 2": ((2, 2), (1, 1), (0, 0), True),
    "kernel_size: 3 stride: 2": ((3, 3), (2, 2), (0, 0), True),
    "kernel_size: 3 stride: 2 round_mode: FLOOR": ((3, 3), (2, 2), (0, 0), False),
    "kernel_size: 3 stride: 2 ceil_mode: false": ((3, 3), (2, 2), (0, 0), False),
    "kernel_size: 3 stride: 2 pad: 2": ((3, 3), (2, 2), (2, 2), True),
    "kernel_size: 2 stride: 2 pad: 1": ((2, 2), (2, 2), (1, 1), True),
    "kernel_h: 1 kernel_w: 3 stride_h: 3 stride_w: 2 pad_h: 0 pad_w: 1": ((1, 3), (3, 2), (0, 1), True),
    "kernel_size: 7 stride: 3": ((7, 7), (3, 3), (0, 0), True),
    "kernel_size: 1 stride: 2": ((1, 1), (2, 2), (0, 0), True),
    "global_pooling: true": ((5, 6), (1, 1), (0, 0), True),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("options", POOLINGS)
def test_pooling(options, backend):
    x = rng.integers(-3, 4, size=(2, 2, 5, 6)).astype(float)  # with many ties
    kernel, stride, pad, ceil = POOLINGS[options]
    text = f"type: 'Pooling' top: 'y' top: 'mask' pooling_param {{ {options} }}"
    y, mask = SingleLayer(text, [x], backend=backend()).forward()
    assert_close(y, pooling(x, largest, kernel, stride, pad, ceil), 0)
    assert_close(mask, pooling(x, place_of_largest, kernel, stride, pad, ceil), 0)
    (y,) = SingleLayer(f"type: 'Pooling' pooling_param {{ pool: AVE {options} }}", [x], backend=backend()).forward()
    assert_close(y, pooling(x, average, kernel, stride, pad, ceil), 1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_max_pooling_gradient_goes_to_the_first_of_equal_values(backend):
    single = SingleLayer("type: 'Pooling' pooling_param { kernel_size: 2 stride: 1 }", [np.ones((1, 1, 3, 3))],
                         backend=backend())  # fmt: skip
    single.forward()
    backward(single, [np.array([[[[1.0, 2.0], [4.0, 8.0]]]])], [True])
    assert_close(single.bottom_diffs()[0], np.array([[[[1, 2, 0], [4, 8, 0], [0, 0, 0]]]]), 0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_max_pooling_of_infinities_and_nan(backend):
    x = np.full((1, 1, 2, 4), -np.inf)
    x[0, 0, 1, 3] = np.nan
    text = "type: 'Pooling' top: 'y' top: 'mask' pooling_param { kernel_size: 2 stride: 2 }"
    y, mask = SingleLayer(text, [x], backend=backend()).forward()
    assert y[0, 0, 0, 0] == -np.inf and np.isnan(y[0, 0, 0, 1])
    assert mask.ravel().tolist() == [0, 7]


def test_stochastic_pooling_in_test_is_the_expected_draw():
    x = np.maximum(random(2, 2, 5, 6), 0)
    x[0, 0, :2, :2] = 0
    text = "type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 }"
    (y,) = SingleLayer(text, [x], phase=recaffe.TEST).forward()
    assert_close(y, pooling(x, expected_draw, (2, 2), (2, 2)), 1e-12)


def test_stochastic_pooling_in_train_draws_in_proportion():
    x = np.tile(np.array([[1.0, 0.0], [2.0, 5.0]]), (1, 1, 64, 64))
    single = SingleLayer("type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 }", [x])
    (y,) = single.forward()
    for value, chance in ((1, 1 / 8), (2, 2 / 8), (5, 5 / 8)):
        assert abs((y == value).mean() - chance) < 0.03
    backward(single, [np.ones(y.shape)], [True])
    (dx,) = single.bottom_diffs()
    assert dx.sum() == y.size
    assert_close((dx * x).reshape(64, 2, 64, 2).sum(axis=(1, 3)), y[0, 0], 0)


POOLING_ERRORS = {
    "no kernel is given": "",
    "kernel_size and kernel_w are both given": "kernel_size: 2 kernel_w: 2",
    "kernel_h is given alone": "kernel_h: 2",
    "pad_w is given alone": "kernel_size: 2 pad_w: 1",
    "stride and stride_h are both given": "kernel_size: 2 stride: 2 stride_h: 2 stride_w: 2",
    "kernel is 0 x 0, expected at least 1": "kernel_size: 0",
    "stride is 0 x 0, expected at least 1": "kernel_size: 2 stride: 0",
    "pad is 2 x 2, expected less than the kernel, 2 x 2": "kernel_size: 2 pad: 2",
    "give no kernel": "global_pooling: true kernel_size: 2",
    "give no pad and no stride": "global_pooling: true stride: 2",
    "has spatial sizes 5 x 6, too small for kernel 7 x 7 with pad 0 x 0": "kernel_size: 7",
    "STOCHASTIC works without padding only": "pool: STOCHASTIC kernel_size: 2 pad: 1",
    "pool is AVE_EXC_PAD, expected MAX, AVE or STOCHASTIC": "pool: AVE_EXC_PAD kernel_size: 2",
    "round_mode and ceil_mode are both given": "kernel_size: 2 round_mode: FLOOR ceil_mode: false",
    "avg_include_pad is an option of a fork": "pool: AVE kernel_size: 2 avg_include_pad: false",
}


@pytest.mark.parametrize("message", POOLING_ERRORS)
def test_pooling_refuses(message):
    refused(message, f"type: 'Pooling' pooling_param {{ {POOLING_ERRORS[message]} }}", random(1, 2, 5, 6))


def test_pooling_refuses_a_mask_of_averages_and_bottoms_of_other_axes():
    text = "type: 'Pooling' top: 'y' top: 'mask' pooling_param { kernel_size: 2 pool: AVE }"
    refused("a second top (the mask) is for pool MAX, but pool is AVE", text, random(1, 2, 5, 6))
    refused("expected 4 axes", "type: 'Pooling' pooling_param { kernel_size: 2 }", random(2, 5, 6))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("size", [1, 3, 5, 15])
def test_lrn(size, within, backend):
    x = random(2, 6, 4, 3)
    region = "WITHIN_CHANNEL" if within else "ACROSS_CHANNELS"
    text = f"type: 'LRN' lrn_param {{ local_size: {size} alpha: 0.5 beta: 0.7 k: 2 norm_region: {region} }}"
    (y,) = SingleLayer(text, [x], backend=backend()).forward()
    assert_close(y, lrn(x, size, 0.5, 0.7, 2, within), 1e-6)  # float32 options


def test_lrn_refuses():
    refused("local_size is 4, expected an odd number", "type: 'LRN' lrn_param { local_size: 4 }", random(1, 2, 3, 3))
    refused("expected 4 axes", "type: 'LRN'", random(2, 3))
