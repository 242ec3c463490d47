"""Normalization layers: by the statistics of batches; importing registers them."""

from . import batch_norm, mvn

__all__ = ["batch_norm", "mvn"]
