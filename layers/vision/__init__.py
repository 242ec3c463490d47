"""Vision layers: filters, pooling and normalization over the axes of images; importing registers them."""

from . import convolution, deconvolution, im2col, lrn, pooling, spp

__all__ = ["convolution", "deconvolution", "im2col", "lrn", "pooling", "spp"]
