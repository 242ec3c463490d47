"""The base of losses, and what their values are divided by."""

from collections.abc import Sequence
from typing import ClassVar

from ...framework.blob import Blob
from ...framework.layer import Layer, LayerContext
from ...proto import LayerParameter, LossParameter
from ..fork_options import refuse_fork_options

LOG_THRESHOLD = 1e-20  # smaller probabilities count as this, so that their logarithm is finite


class LossLayer(Layer):
    """top[0] is one number, with loss weight 1 by default, from predictions and labels.

    Bottom 0 has the gradient; the labels, bottom 1, have none.  A net may leave out the names of tops.
    """

    bottoms, tops = (2, 2), (1, 1)
    auto_tops = True
    smooths_labels: ClassVar[bool] = False

    def __init__(self, param: LayerParameter, context: LayerContext | None = None):
        super().__init__(param, context)
        if param.loss_param.label_smoothing and not self.smooths_labels:
            self.fail("label_smoothing is an option of type 'SoftmaxWithLoss' alone; remove it")

    def default_loss_weight(self, top_index: int) -> float:
        return 1.0 if top_index == 0 else 0.0

    def allow_force_backward(self, bottom_index: int) -> bool:
        return bottom_index != 1

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        if bottom[0].shape[:1] != bottom[1].shape[:1]:
            self.fail(
                f"bottom {bottom[0].name!r} has shape {bottom[0].shape} and bottom {bottom[1].name!r}"
                f" {bottom[1].shape}; expected the same first size"
            )
        top[0].reshape()

    def no_gradient_for(self, propagate_down: Sequence[bool], bottom: Sequence[Blob], index: int) -> None:
        """Raise LayerError if the gradient of bottom ``index`` is asked for."""
        if propagate_down[index]:
            self.fail(f"bottom {bottom[index].name!r} has no gradient; it must not depend on what is learnt")


class Normaliser:
    """What a loss that is summed over labels is divided by, as ``loss_param`` says.

    VALID: the labels that count; FULL: all labels; BATCH_SIZE: the first size; NONE: 1.  The old ``normalize``
    means VALID if true, else BATCH_SIZE.  Never less than 1.
    """

    def __init__(self, layer: Layer, default: int = LossParameter.VALID):
        param = layer.param.loss_param
        refuse_fork_options(layer, param, ("pre_fixed_normalizer", "class_weighting", "weight_by_label_freqs"))
        self.mode = param.normalization if param.HasField("normalization") else default
        if self.mode == LossParameter.PRE_FIXED:
            layer.fail("normalization PRE_FIXED is a fork's; expected VALID, FULL, BATCH_SIZE or NONE")
        if not param.HasField("normalization") and param.HasField("normalize"):
            self.mode = LossParameter.VALID if param.normalize else LossParameter.BATCH_SIZE

    @property
    def counts_valid(self) -> bool:
        """Whether the number of labels that count matters."""
        return self.mode == LossParameter.VALID

    def __call__(self, outer: int, inner: int, valid: int) -> float:
        """The divisor, for ``outer`` x ``inner`` labels of which ``valid`` count."""
        if self.mode == LossParameter.NONE:
            return 1.0
        if self.mode == LossParameter.VALID:
            return max(1.0, valid)
        return max(1.0, outer * inner if self.mode == LossParameter.FULL else outer)
