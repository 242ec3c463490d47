"""ContinuationIndicator: cont for batches of whole sequences."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...framework.blob import Blob
from ...framework.layer import Layer, register


@dataclass
class ContinuationIndicatorOptions:
    """The sizes of cont, where no bottom gives them."""

    time_step: int = 0
    batch_size: int = 0


@register
class ContinuationIndicator(Layer):
    """cont[0] = 0 and cont[t] = 1 for t > 0: every stream holds one sequence, which starts with the batch.

    From the fork crnn.caffe.

    Shapes
        bottom (optional) x: T x N x ..., for its sizes alone
        top cont: T x N

    Options (continuation_indicator_param)
        time_step: T; batch_size: N; both needed without a bottom, neither with one.
    """

    type = "ContinuationIndicator"
    bottoms, tops = (0, 1), (1, 1)
    options_type = ContinuationIndicatorOptions

    def allow_force_backward(self, bottom_index: int) -> bool:
        return False

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        sizes: tuple[int, ...] = (self.options.time_step, self.options.batch_size)
        if bottom and sizes != (0, 0):
            self.fail("give a bottom, or time_step and batch_size, not both")
        if bottom:
            if bottom[0].ndim < 2:
                self.fail(f"bottom {bottom[0].name!r} has shape {bottom[0].shape}, expected T x N x ...")
            sizes = bottom[0].shape[:2]
        elif min(sizes) < 1:
            self.fail(f"time_step is {sizes[0]} and batch_size {sizes[1]}, expected 1 or more each")
        top[0].reshape(*sizes)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        top[0].data[0] = 0
        top[0].data[1:] = 1

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if any(propagate_down):
            self.fail(f"bottom {bottom[0].name!r} gives its sizes alone; it has no gradient")
