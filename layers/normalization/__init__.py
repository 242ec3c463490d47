"""Normalization layers: by the statistics of batches, or of each row; importing registers them."""

from . import batch_norm, layer_norm, mvn, rms_norm

__all__ = ["batch_norm", "layer_norm", "mvn", "rms_norm"]
