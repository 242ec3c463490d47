"""Transpose: the axes in another order."""

from ...framework.blob import Blob
from ...framework.layer import register
from .permute import AxisOrderLayer


@register
class Transpose(AxisOrderLayer):
    """y = x with its axes in another order: axis k of y is axis dim[k] of x.

    dx = dy with the axes put back.  From the forks that read text in images (CTPN, caffe_ocr).

    Shapes
        bottom x: any; top y: x's sizes in that order

    Options (transpose_param)
        dim: every axis of x, once.
    """

    type = "Transpose"

    def axis_order(self, bottom: Blob) -> list[int]:
        return [self.axis(axis, bottom) for axis in self.param.transpose_param.dim]
