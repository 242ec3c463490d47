"""CTCLoss under the names that other forks of Caffe gave it."""

from ...framework.layer import register
from .ctc_loss import CTCLoss


@register
class CtcLoss(CTCLoss):
    """CTCLoss, as the fork crnn.caffe spells it."""

    type = "CtcLoss"


@register
class WarpCTC(CTCLoss):
    """CTCLoss, as forks around the library warp-ctc spell it."""

    type = "WarpCTC"


@register
class WarpCTCLoss(CTCLoss):
    """CTCLoss, as the fork caffe_ocr spells it."""

    type = "WarpCTCLoss"
