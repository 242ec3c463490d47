"""BatchNorm: every channel with mean 0 and variance 1."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import Layer, register
from ...proto import TEST
from ..channel_sums import channel_dots, channel_sums
from ..fork_options import refuse_fork_options

FORK_OPTIONS = (
    "disable_mean", "disable_variance", "add_eps_before_sqrt", "stats_batch_size", "relu",
    "filler", "scale_filler", "bias_filler",
)  # fmt: skip


@fusable
def batch_norm_statistics(backend: Any, x: Any, mean: Any, variance: Any) -> None:
    """mean, variance (C,) = those of each channel of x (N, C, P)."""
    xp = backend.xp
    channel_sums(backend, x, mean)
    mean /= x.shape[0] * x.shape[2]
    centred = backend.scratch("batch_norm.centred", x.shape, x.dtype)
    xp.subtract(x, mean[:, None], out=centred)
    channel_dots(backend, centred, centred, variance)
    variance /= x.shape[0] * x.shape[2]


@fusable
def batch_norm_forward(backend: Any, x: Any, mean: Any, inverse_std: Any, out: Any) -> None:
    """out = (x - mean) * inverse_std, for x, out (N, C, P); out may be x."""
    backend.xp.subtract(x, mean[:, None], out=out)
    out *= inverse_std[:, None]


@fusable
def batch_norm_backward(backend: Any, y: Any, inverse_std: Any, dy: Any, dx: Any) -> None:
    """dx = inverse_std * (dy - mean(dy) - y * mean(dy * y)); means are over n and p of (N, C, P); dx may be dy."""
    xp = backend.xp
    count = y.shape[0] * y.shape[2]
    dy_mean, dot_mean = xp.empty_like(inverse_std), xp.empty_like(inverse_std)
    channel_sums(backend, dy, dy_mean)
    channel_dots(backend, dy, y, dot_mean)
    dy_mean /= count
    dot_mean /= count
    through = backend.scratch("batch_norm.through", y.shape, y.dtype)
    xp.multiply(y, dot_mean[:, None], out=through)
    through += dy_mean[:, None]
    xp.subtract(dy, through, out=dx)
    dx *= inverse_std[:, None]


@register
class BatchNorm(Layer):
    """y = (x - mean) / sqrt(variance + eps), with the mean and variance of each channel

    Ioffe and Szegedy, "Batch normalization", ICML 2015; the learnt scale and shift are a Scale layer after it.
    In TRAIN, dx = (dy - mean(dy) - y mean(dy y)) / sqrt(variance + eps).
    In TRAIN they are those of the batch, and running sums of them are kept: at each forward pass, with
    f = moving_average_fraction and m values per channel,
    mean_sum = f mean_sum + mean, variance_sum = f variance_sum + variance m / (m - 1), factor = f factor + 1.
    With ``use_global_stats`` (by default in TEST) mean and variance are the sums / factor (0 where
    factor is 0).

    - bottom: x (N, C, ...), or (N) as one channel
    - top: y like x; in place if it is the bottom
    - parameters: mean_sum (C), variance_sum (C), factor (1); never learnt (lr_mult 0)

    Options (``batch_norm_param``): use_global_stats, moving_average_fraction (0.999), eps (1e-5).

    Errors: a lr_mult other than 0; another number of channels than before.
    """

    type = "BatchNorm"
    bottoms, tops = (1, 1), (1, 1)
    in_place = True

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.batch_norm_param
        refuse_fork_options(self, param, FORK_OPTIONS)
        for name in ("use_weight_bias", "bias_term"):
            if param.HasField(name) and getattr(param, name):
                self.fail(f"{name}: true is an option of a fork of Caffe; let a Scale layer follow instead")
        self.uses_global = param.use_global_stats if param.HasField("use_global_stats") else self.phase == TEST
        self.fraction, self.eps = param.moving_average_fraction, param.eps
        if bottom[0].ndim == 0:
            self.fail(f"bottom {bottom[0].name!r} is a scalar, expected shape (N, C, ...)")
        self.channels = bottom[0].shape[1] if bottom[0].ndim > 1 else 1
        self.mean_sum = self.add_blob("mean", (self.channels,))
        self.variance_sum = self.add_blob("variance", (self.channels,))
        self.factor = self.add_blob("factor", (1,))
        self._forbid_learning()
        self.mean = self.xp.empty(self.channels, self.dtype)
        self.inverse_std = self.xp.empty(self.channels, self.dtype)

    def _forbid_learning(self) -> None:
        for i, spec in enumerate(self.param.param):
            if spec.lr_mult != 0:
                self.fail(f"param {i} has lr_mult {spec.lr_mult:g}, expected 0: statistics are not learnt")
        for _ in range(len(self.blobs) - len(self.param.param)):
            self.param.param.add(lr_mult=0)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        shape = bottom[0].shape
        channels = shape[1] if len(shape) > 1 else 1
        if channels != self.channels:
            self.fail(f"bottom {bottom[0].name!r} has shape {shape}, expected {self.channels} channels")
        top[0].reshape_like(bottom[0])
        self.shape = (shape[0], channels, bottom[0].count // max(1, shape[0] * channels))

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, y = bottom[0].data.reshape(self.shape), top[0].data.reshape(self.shape)
        variance = self.inverse_std
        if self.uses_global:
            factor = self.factor.data
            inverse = self.xp.where(factor == 0, 0, 1 / self.xp.where(factor == 0, 1, factor))
            self.xp.multiply(self.mean_sum.data, inverse, out=self.mean)
            self.xp.multiply(self.variance_sum.data, inverse, out=variance)
        else:
            batch_norm_statistics(self.backend, x, self.mean, variance)
            self._add_to_sums(variance)
        variance += self.eps
        self.xp.sqrt(variance, out=variance)
        self.xp.reciprocal(variance, out=self.inverse_std)
        batch_norm_forward(self.backend, x, self.mean, self.inverse_std, y)
        self.kept = self.keep(top[0])

    def _add_to_sums(self, variance: Any) -> None:
        count = self.shape[0] * self.shape[2]
        unbiased = count / (count - 1) if count > 1 else 1.0
        for blob, value in (
            (self.mean_sum, self.mean),
            (self.variance_sum, variance * unbiased),
            (self.factor, 1),
        ):
            blob.data[...] *= self.fraction
            blob.data[...] += value

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if not propagate_down[0]:
            return
        dy, dx = top[0].diff.reshape(self.shape), bottom[0].diff.reshape(self.shape)
        if self.uses_global:
            self.xp.multiply(dy, self.inverse_std[:, None], out=dx)
        else:
            y = self.kept.data.reshape(self.shape)
            batch_norm_backward(self.backend, y, self.inverse_std, dy, dx)
