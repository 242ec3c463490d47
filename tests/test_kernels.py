"""Every fused CPU function against the plain version of its name: values, both precisions, odd sizes, NaN."""

import copy

import numpy as np
import pytest
import recaffe
from recaffe.framework import threads
from recaffe.framework.backend import CpuBackend
from recaffe.framework.fusable import fusables

from tests import attention_kernels, recurrent_kernels
from tests.kernel_arrays import TOLERANCE, Arrays

pytest.importorskip("numba")
if not CpuBackend().fused:
    pytest.skip("RECAFFE_PLAIN asks for the plain code alone", allow_module_level=True)
recaffe.registered_types()  # imports the layers, which bring the plain versions


def windows_out(size, kernel, stride, pad, dilation=(1, 1)):
    return tuple(
        (s + 2 * p - d * (k - 1) - 1) // t + 1
        for s, k, t, p, d in zip(size, kernel, stride, pad, dilation, strict=True)
    )


# (N, C, H, W), O, kernel, pad, stride, dilation, group
CONVOLUTIONS = [
    ((3, 1, 13, 12), 5, (5, 5), (0, 0), (1, 1), (1, 1), 1),
    ((2, 3, 9, 11), 8, (3, 5), (1, 2), (1, 1), (1, 1), 1),
    ((3, 4, 17, 19), 6, (3, 5), (1, 2), (2, 3), (1, 1), 2),
    ((1, 3, 31, 30), 9, (7, 7), (3, 3), (2, 2), (1, 1), 1),
    ((2, 8, 9, 11), 6, (3, 3), (2, 2), (1, 1), (2, 2), 1),
    ((2, 4, 10, 11), 8, (3, 3), (2, 1), (2, 3), (3, 2), 2),
    ((4, 5, 7, 7), 6, (1, 1), (0, 0), (1, 1), (1, 1), 1),
    ((3, 6, 5, 7), 4, (1, 1), (0, 0), (1, 1), (1, 1), 2),
    ((2, 4, 10, 9), 5, (1, 1), (0, 0), (2, 2), (1, 1), 1),
    ((2, 4, 9, 9), 5, (2, 2), (0, 0), (3, 3), (1, 1), 1),
    ((2, 6, 13, 15), 6, (3, 3), (1, 1), (1, 1), (1, 1), 6),
    ((2, 6, 13, 15), 12, (3, 5), (1, 1), (2, 2), (1, 2), 6),
    ((1, 32, 40, 200), 12, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((64, 2, 6, 6), 7, (3, 3), (1, 1), (1, 1), (1, 1), 1),
]
POOLS = [
    ((2, 3, 8, 8), (4, 4), (2, 2), (2, 2), (0, 0)),
    ((2, 3, 9, 9), (5, 5), (3, 3), (2, 2), (1, 1)),
    ((1, 2, 7, 40), (3, 20), (3, 2), (3, 2), (1, 0)),
    ((2, 2, 6, 7), (6, 7), (3, 3), (1, 1), (1, 1)),
    ((1, 3, 32, 33), (16, 16), (3, 3), (2, 2), (0, 0)),
    ((2, 5, 7, 7), (1, 1), (7, 7), (1, 1), (0, 0)),
    ((1, 2, 11, 10), (4, 3), (2, 3), (3, 4), (1, 1)),
]


def forward_convolutions(a):
    for shape, outputs, kernel, pad, stride, dilation, group in CONVOLUTIONS:
        x, weight = a.normal(*shape), a.normal(outputs, shape[1] // group, *kernel)
        out = a.empty(shape[0], outputs, *windows_out(shape[2:], kernel, stride, pad, dilation))
        yield x, weight, a.normal(outputs), out, pad, stride, dilation, group
        yield x, weight, None, out, pad, stride, dilation, group


def backward_convolutions(a):
    for shape, outputs, kernel, pad, stride, dilation, group in CONVOLUTIONS:
        dy = a.normal(shape[0], outputs, *windows_out(shape[2:], kernel, stride, pad, dilation))
        yield dy, a.normal(outputs, shape[1] // group, *kernel), a.empty(*shape), pad, stride, dilation, group


def weight_convolutions(a):
    for shape, outputs, kernel, pad, stride, dilation, group in CONVOLUTIONS:
        dy = a.normal(shape[0], outputs, *windows_out(shape[2:], kernel, stride, pad, dilation))
        yield a.normal(*shape), dy, a.empty(outputs, shape[1] // group, *kernel), pad, stride, dilation, group


def max_pools(a):
    for shape, out, kernel, stride, pad in POOLS:
        x = np.round(a.normal(*shape) * 2).astype(a.dtype)  # with ties
        if pad == (0, 0):
            x[0] = -np.inf
        yield x, a.empty(*shape[:2], *out), np.full(shape[:2] + out, -7, np.int32), kernel, stride, pad


def max_pool_slopes(a):
    for shape, out, *_ in POOLS:
        mask = a.random.integers(0, shape[2] * shape[3], shape[:2] + out).astype(np.int32)
        yield a.normal(*shape[:2], *out), mask, a.empty(*shape)


def ave_pools(a):
    for shape, out, kernel, stride, pad in POOLS:
        yield a.normal(*shape), a.empty(*shape[:2], *out), kernel, stride, pad


def ave_pool_slopes(a):
    for shape, out, kernel, stride, pad in POOLS:
        yield a.normal(*shape[:2], *out), a.empty(*shape), kernel, stride, pad


def lrn_inputs(a):
    for axes, size, beta in (((1,), 5, 0.75), ((1,), 3, 0.6), ((1,), 17, 0.75), ((2, 3), 3, 0.75)):
        yield a.normal(3, 7, 5, 6), a.empty(3, 7, 5, 6), a.empty(3, 7, 5, 6), axes, size, 0.3, beta, 1.5


def lrn_slopes(a):
    for axes, size, beta in (((1,), 5, 0.75), ((1,), 3, 0.6), ((1,), 17, 0.75), ((2, 3), 3, 0.75)):
        yield (
            a.normal(3, 7, 5, 6),
            a.positive(3, 7, 5, 6),
            a.normal(3, 7, 5, 6),
            a.empty(3, 7, 5, 6),
            axes,
            size,
            0.3,
            beta,
        )


def relus(a):
    for slope in (0.0, 0.1):
        x = a.normal(5, 37)
        yield x, a.empty(5, 37), slope
        yield x, x, slope


def relu_slopes(a):
    for slope in (0.0, 0.1):
        dy = a.normal(5, 37)
        yield a.normal(5, 37), dy, a.empty(5, 37), slope
        yield a.normal(5, 37), dy, dy, slope


def dropouts(a):
    for ratio in (0.0, 0.3, 0.5):
        x = a.normal(7, 23)
        yield x, a.random.uniform(0, 1, (7, 23)).astype(a.dtype), a.empty(7, 23), ratio
        yield x, a.random.uniform(0, 1, (7, 23)).astype(a.dtype), x, ratio


def uniform_fills(a):
    yield a.empty(1001), 12345678901234567890, 17
    yield a.empty(7, 3), 1, 1 << 40


def sums(a):
    for count, weights in ((1, [2.0]), (2, [1.0, 1.0]), (3, [1.0, 1.0, 1.0]), (3, [1.0, -2.0, 0.5])):
        arrays = [a.normal(3, 31) for _ in range(count)]
        yield arrays, weights, a.empty(3, 31)
        yield arrays, weights, arrays[0]


def row_additions(a):
    yield a.normal(5), a.normal(7, 5)


def picked_rows(a):
    yield a.normal(4, 5), a.random.integers(0, 4, 7), a.empty(7, 5)


def added_rows(a):
    for M, K, N in ((7, 3, 5), (40, 4, 33)):
        yield a.normal(M, N), a.random.integers(0, K, M), a.normal(K, N)


def products(a):
    for m, k, n in (
        (3, 5, 40),
        (70, 9, 20),
        (1, 1, 1),
        (33, 64, 33),
        (131, 40, 80),
        (200, 530, 1100),
        (1, 70, 37),
        (4, 650, 11),
        (0, 70, 37),
    ):
        yield a.normal(m, k), a.normal(k, n), a.empty(m, n)
        yield a.normal(k, m).T, a.normal(n, k).T, a.empty(m, n)
        yield a.normal(m, k), a.normal(n, k).T, a.empty(m, n)
    yield a.normal(2, 3, 5), a.normal(7, 2, 5, 4), a.empty(7, 2, 3, 4)


def affine_maps(a):
    for left, right, out in products(a):
        if out.ndim == 2:
            yield left, right, a.normal(out.shape[1]), out
            yield left, right, a.normal(2 * out.shape[1])[::-2], out
            yield left, right, None, out


def channel_arrays(a, *others):
    for shape in ((3, 5, 17), (1, 2, 1), (4, 3, 64)):
        yield shape, a.normal(*shape), a.positive(shape[1]), a.normal(shape[1])


def scalings(a):
    for shape, x, scale, bias in channel_arrays(a):
        yield x, scale, bias, a.empty(*shape)
        yield x, scale, None, a.empty(*shape)
        yield x, scale, bias, x


def normalizations(a):
    for shape, x, inverse_std, mean in channel_arrays(a):
        yield x, mean, inverse_std, a.empty(*shape)
        yield x, mean, inverse_std, x


def normalization_slopes(a):
    for shape, y, inverse_std, _ in channel_arrays(a):
        dy = a.normal(*shape)
        yield y, inverse_std, dy, a.empty(*shape)
        yield y, inverse_std, dy, dy


def softmax_shapes(a):
    return ((5, 10, 1), (3, 70, 1), (2, 3, 7), (1, 1, 1))


def softmaxes(a):
    for shape in softmax_shapes(a):
        x = a.normal(*shape) * 50
        yield x, a.empty(*shape)
        yield x, x


def softmax_slopes(a):
    for shape in softmax_shapes(a):
        dy = a.normal(*shape)
        yield a.positive(*shape), dy, a.empty(*shape)
        yield a.positive(*shape), dy, dy


def labels_of(a, shape):
    return a.random.integers(-1, shape[1], (shape[0], shape[2])).astype(np.int64)


def softmax_losses(a):
    for shape in softmax_shapes(a):
        for smoothing in (0.0, 0.1):
            yield a.normal(*shape) * 50, labels_of(a, shape), smoothing, a.empty(*shape)


def softmax_loss_slopes(a):
    for shape in softmax_shapes(a):
        for smoothing in (0.0, 0.1):
            yield a.positive(*shape), labels_of(a, shape), smoothing, 0.25, a.empty(*shape)


def neurons(*numbers):
    def arguments(a):
        for size in (1, 37, 2500):
            x = 3 * a.normal(size)
            yield x, *numbers, a.empty(size), a.empty(size)
            yield x, *numbers, a.empty(size), None
            yield x, *numbers, x, a.empty(size)

    return arguments


def slope_products(a):
    dy = a.normal(5, 37)
    yield dy, a.normal(5, 37), a.empty(5, 37)
    yield dy, a.normal(5, 37), dy


def norm_shapes(a):
    return ((7, 5), (1, 1), (4, 100))


def layer_norms(a):
    for M, K in norm_shapes(a):
        yield 3 + a.normal(M, K), a.normal(K), a.normal(K), 0.1, a.empty(M), a.empty(M), a.empty(M, K)


def layer_norm_slopes(a):
    for M, K in norm_shapes(a):
        x, mean, inverse_std, dy = a.normal(M, K), a.normal(M), a.positive(M), a.normal(M, K)
        yield x, mean, inverse_std, a.normal(K), dy, a.empty(M, K), a.empty(K), a.empty(K)
        yield x, mean, inverse_std, a.normal(K), dy, dy, a.empty(K), a.empty(K)


def rms_norms(a):
    for M, K in norm_shapes(a):
        yield 3 + a.normal(M, K), a.normal(K), 0.1, a.empty(M), a.empty(M, K)


def rms_norm_slopes(a):
    for M, K in norm_shapes(a):
        x, inverse_rms, dy = a.normal(M, K), a.positive(M), a.normal(M, K)
        yield x, inverse_rms, a.normal(K), dy, a.empty(M, K), a.empty(K)
        yield x, inverse_rms, a.normal(K), dy, dy, a.empty(K)


def steps(histories, *numbers):
    def arguments(a):
        for scale, l2, l1 in ((1.0, 0.0, 0.0), (0.5, 0.01, 0.0), (2.0, 0.0, 0.02)):
            arrays = [a.positive(101) for _ in range(histories)]
            yield a.normal(101), a.normal(101), *arrays, *numbers, scale, l2, l1

    return arguments


CASES = {
    # name: (what makes the arguments, which of them are results; () for a returned value alone)
    "adadelta_step": (steps(2, 0.1, 0.9, 1e-6), (0, 2, 3)),
    "adagrad_step": (steps(1, 0.1, 1e-6), (0, 2)),
    "adam_step": (steps(2, 0.1, 0.9, 0.99, 1e-6, 0.01), (0, 2, 3)),
    "add_row": (row_additions, (1,)),
    "add_rows": (added_rows, (2,)),
    "affine": (affine_maps, (3,)),
    "ave_pool2d_backward": (ave_pool_slopes, (1,)),
    "ave_pool2d_forward": (ave_pools, (1,)),
    "batch_norm_backward": (normalization_slopes, (3,)),
    "batch_norm_forward": (normalizations, (3,)),
    "batch_norm_statistics": (
        lambda a: ((x, a.empty(shape[1]), a.empty(shape[1])) for shape, x, *_ in channel_arrays(a)), (1, 2),
    ),
    "channel_dots": (
        lambda a: ((x, a.normal(*shape), a.empty(shape[1])) for shape, x, *_ in channel_arrays(a)), (2,),
    ),
    "channel_sums": (lambda a: ((x, a.empty(shape[1])) for shape, x, *_ in channel_arrays(a)), (1,)),
    "conv2d_backward_data": (backward_convolutions, (2,)),
    "conv2d_backward_weights": (weight_convolutions, (2,)),
    "conv2d_forward": (forward_convolutions, (3,)),
    "dropout_forward": (dropouts, (1, 2)),
    "gelu_forward": (neurons(), (1, 2)),
    "gelu_tanh_forward": (neurons(), (1, 2)),
    "layer_norm_backward": (layer_norm_slopes, (5, 6, 7)),
    "layer_norm_forward": (layer_norms, (4, 5, 6)),
    "lrn_backward": (lrn_slopes, (3,)),
    "lrn_forward": (lrn_inputs, (1, 2)),
    "matmul": (products, (2,)),
    "max_pool2d_backward": (max_pool_slopes, (2,)),
    "max_pool2d_forward": (max_pools, (1, 2)),
    "nesterov_step": (steps(1, 0.1, 0.9), (0, 2)),
    "relu_backward": (relu_slopes, (2,)),
    "relu_forward": (relus, (1,)),
    "rms_norm_backward": (rms_norm_slopes, (4, 5)),
    "rms_norm_forward": (rms_norms, (3, 4)),
    "rmsprop_step": (steps(1, 0.1, 0.9, 1e-6), (0, 2)),
    "scale_channels": (scalings, (3,)),
    "sgd_step": (steps(1, 0.1, 0.9), (0, 2)),
    "slope_backward": (slope_products, (2,)),
    "softmax_backward": (softmax_slopes, (2,)),
    "softmax_forward": (softmaxes, (1,)),
    "softmax_loss_backward": (softmax_loss_slopes, (4,)),
    "softmax_loss_forward": (softmax_losses, (3,)),
    "sum_of_squares": (lambda a: ((a.normal(n),) for n in (1, 1001)), ()),
    "swish_forward": (neurons(1.5), (2, 3)),
    "take_rows": (picked_rows, (2,)),
    "uniform_numbers": (uniform_fills, (0,)),
    "weighted_sum": (sums, (2,)),
    **attention_kernels.CASES,
    **recurrent_kernels.CASES,
}  # fmt: skip


@pytest.fixture(params=[1, 3], ids=["1 thread", "3 threads"])
def backend(request, monkeypatch):
    monkeypatch.setattr(threads, "WORTH_SPLITTING", 0)
    monkeypatch.setattr(threads, "WORTH_SHARING", 0)
    return CpuBackend(threads=request.param)


def both(backend, name, arguments):
    """Results of the plain and of the fused version, which get the same arguments."""
    for_plain, for_fused = copy.deepcopy(arguments), copy.deepcopy(arguments)
    outputs = [i for i in CASES[name][1] if arguments[i] is not None]
    with backend.computing():
        plain = fusables[name].plain(backend, *for_plain)
        fused = backend.fused[name](backend, *for_fused)
    if not outputs:
        return [np.asarray(plain)], [np.asarray(fused)]
    returned = ([np.asarray(plain)], [np.asarray(fused)]) if plain is not None else ([], [])
    return [for_plain[i] for i in outputs] + returned[0], [for_fused[i] for i in outputs] + returned[1]


def test_every_fused_function_has_a_case():
    assert set(CpuBackend().fused) == set(CASES)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_fused_equals_plain(backend, name, dtype):
    for arguments in CASES[name][0](Arrays(dtype)):
        for expected, got in zip(*both(backend, name, list(arguments)), strict=True):
            largest = np.abs(expected[np.isfinite(expected)]).max(initial=1e-30)
            np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE[dtype] * largest)


# attention_backward leaves out keys that no query sees, where the plain version multiplies a NaN with 0
@pytest.mark.parametrize("name", sorted(set(CASES) - {"attention_backward"}))
def test_nan_stays_visible(backend, name):
    for arguments in CASES[name][0](Arrays(np.float32)):
        arguments = list(arguments)
        for array in [v for v in arguments if isinstance(v, np.ndarray) and v.dtype == np.float32 and v.size]:
            if not np.isnan(array).all():
                array.reshape(-1)[array.size // 2] = np.nan
                break
        for expected, got in zip(*both(backend, name, arguments), strict=True):
            assert np.isnan(got)[np.isnan(expected)].all()


@pytest.mark.parametrize(
    "name",
    [
        "add_rows",
        "conv2d_forward",
        "conv2d_backward_data",
        "conv2d_backward_weights",
        "layer_norm_backward",
        "matmul",
        "rms_norm_backward",
    ],
)
def test_a_repeated_call_gives_the_same_bits(backend, name):
    for arguments in CASES[name][0](Arrays(np.float32)):
        first = both(backend, name, list(arguments))[1]
        again = both(backend, name, list(arguments))[1]
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
