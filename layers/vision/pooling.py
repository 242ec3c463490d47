"""Pooling: one value for each window of a map."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.checks import shape_text
from ...framework.layer import Layer, register
from ...proto import TRAIN, PoolingParameter
from ..fork_options import refuse_fork_options
from . import stochastic_pool2d
from .pool2d import ave_pool2d_backward, ave_pool2d_forward, max_pool2d_backward, max_pool2d_forward
from .window import Sizes

MAX, AVE, STOCHASTIC = PoolingParameter.MAX, PoolingParameter.AVE, PoolingParameter.STOCHASTIC
FORK_OPTIONS = (
    "pad_l", "pad_r", "pad_t", "pad_b", "pad_type", "pad_3d", "kernel_size_3d", "stride_3d", "axis",
    "avg_include_pad", "output_shift_instead_division",
)  # fmt: skip


@register
class Pooling(Layer):
    """MAX: y = max of x over the window; AVE: y = sum of x over the window / its area

    STOCHASTIC (Zeiler and Fergus, ICLR 2013; for x >= 0): in TRAIN, y is a value of the window drawn with
    probability x / sum x; in TEST, y = sum x^2 / sum x.

    Window (i, j) starts at (i, j) * stride - pad.  There are round((size + 2 pad - kernel) / stride) + 1 of
    them on an axis, rounded up (round_mode CEIL) or down; a last one that would start beyond the map and
    its padding in front is left out.  Windows are cut at the edges of the map; the area that AVE divides by
    includes the padding.  Of equal values the first is the largest.

    - bottom: x (N, C, H, W)
    - tops: y (N, C, H', W'); for MAX also, if asked for, mask (N, C, H', W'): the place h * W + w of y in x

    Options (``pooling_param``): pool (MAX); kernel_size, stride (1) and pad (0), or kernel_h, kernel_w, ...;
    global_pooling (the window is the whole map); round_mode (CEIL), or ceil_mode as forks name it.

    Errors: no kernel, or one given twice; a pad as large as the kernel; a map smaller than the kernel; a
    second top with AVE or STOCHASTIC; padding with STOCHASTIC.
    """

    type = "Pooling"
    bottoms, tops = (1, 1), (1, 2)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.pooling_param
        refuse_fork_options(self, param, FORK_OPTIONS)
        self.method = param.pool
        name = PoolingParameter.PoolMethod.Name(self.method)
        if self.method not in (MAX, AVE, STOCHASTIC):
            self.fail(f"pool is {name}, expected MAX, AVE or STOCHASTIC")
        if len(top) > 1 and self.method != MAX:
            self.fail(f"a second top (the mask) is for pool MAX, but pool is {name}")
        if param.HasField("round_mode") and param.HasField("ceil_mode"):
            self.fail("round_mode and ceil_mode are both given; give one")
        self.rounds_up = param.ceil_mode if param.HasField("ceil_mode") else param.round_mode == param.CEIL
        self.stride = self._pair("stride", (param.stride, param.stride))
        self.pad = self._pair("pad", (param.pad, param.pad))
        if any(step < 1 for step in self.stride):
            self.fail(f"stride is {shape_text(self.stride)}, expected at least 1")
        self.is_global = param.global_pooling
        if self.is_global:
            if param.HasField("kernel_size") or param.HasField("kernel_h") or param.HasField("kernel_w"):
                self.fail("global_pooling takes the whole map as its window; give no kernel")
            if any(self.pad) or self.stride != (1, 1):
                self.fail("global_pooling has one window; give no pad and no stride")
        else:
            self.kernel = self._pair("kernel", (param.kernel_size,) * 2 if param.HasField("kernel_size") else None)
            if any(size < 1 for size in self.kernel):
                self.fail(f"kernel is {shape_text(self.kernel)}, expected at least 1")
            if any(pad >= size for pad, size in zip(self.pad, self.kernel, strict=True)):
                self.fail(f"pad is {shape_text(self.pad)}, expected less than the kernel, {shape_text(self.kernel)}")
        if any(self.pad) and self.method == STOCHASTIC:
            self.fail("pool STOCHASTIC works without padding only; remove pad")

    def _pair(self, name: str, both: tuple[int, int] | None) -> Sizes:
        """The option for height and width: ``name``_h and ``name``_w, or ``both``."""
        param, single = self.param.pooling_param, "kernel_size" if name == "kernel" else name
        given = [field for field in (f"{name}_h", f"{name}_w") if param.HasField(field)]
        if given and param.HasField(single):
            self.fail(f"{single} and {given[0]} are both given; give {single}, or {name}_h and {name}_w")
        if len(given) == 1:
            self.fail(f"{given[0]} is given alone; give both {name}_h and {name}_w")
        if given:
            return getattr(param, given[0]), getattr(param, given[1])
        if both is None:
            self.fail("no kernel is given; give kernel_size, kernel_h and kernel_w, or global_pooling")
        return both

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        if bottom[0].ndim != 4:
            self.fail(f"bottom {bottom[0].name!r} has shape {bottom[0].shape}, expected 4 axes (N, C, H, W)")
        sizes = bottom[0].shape[2:]
        if self.is_global:
            self.kernel = sizes
        windows = tuple(map(self._count, sizes, self.kernel, self.stride, self.pad))
        if any(count < 1 for count in windows) or 0 in sizes:
            self.fail(
                f"bottom {bottom[0].name!r} has spatial sizes {shape_text(sizes)}, too small for"
                f" kernel {shape_text(self.kernel)} with pad {shape_text(self.pad)}"
            )
        for blob in top:
            blob.reshape(*bottom[0].shape[:2], *windows)
        shape = top[0].shape
        if self.method == MAX or (self.method == STOCHASTIC and self.phase == TRAIN):
            self.mask = self.xp.empty(shape, self.xp.int32)
        if self.method == STOCHASTIC:
            self.chance = self.total = self.xp.empty(shape, self.dtype)

    def _count(self, size: int, kernel: int, stride: int, pad: int) -> int:
        room = size + 2 * pad - kernel
        count = (-(-room // stride) if self.rounds_up else room // stride) + 1
        return count - 1 if (count - 1) * stride >= size + pad else count

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, y = bottom[0].data, top[0].data
        if self.method == MAX:
            max_pool2d_forward(self.backend, x, y, self.mask, self.kernel, self.stride, self.pad)
            if len(top) > 1:
                top[1].data[...] = self.mask
        elif self.method == AVE:
            ave_pool2d_forward(self.backend, x, y, self.kernel, self.stride, self.pad)
        elif self.phase == TRAIN:
            self.backend.uniform(self.chance)
            stochastic_pool2d.pick(self.backend, x, self.chance, y, self.mask, self.kernel, self.stride)
        else:
            stochastic_pool2d.expect(self.backend, x, self.total, y, self.kernel, self.stride)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if not propagate_down[0]:
            return
        dy, dx = top[0].diff, bottom[0].diff
        if self.method == AVE:
            ave_pool2d_backward(self.backend, dy, dx, self.kernel, self.stride, self.pad)
        elif self.method == MAX or self.phase == TRAIN:
            max_pool2d_backward(self.backend, dy, self.mask, dx)
        else:
            x, y = bottom[0].data, top[0].data
            stochastic_pool2d.expect_backward(self.backend, x, self.total, y, dy, dx, self.kernel, self.stride)
