"""What tests of fused functions make their arguments with, and how close to the plain versions results must be."""

import numpy as np

TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}


class Arrays:
    """Makes the arguments of one call; ``empty`` arrays hold NaN, so that what is not overwritten shows."""

    def __init__(self, dtype, seed=0):
        self.dtype, self.random = dtype, np.random.default_rng(seed)

    def normal(self, *shape):
        return self.random.standard_normal(shape).astype(self.dtype)

    def positive(self, *shape):
        return self.random.uniform(0.5, 2, shape).astype(self.dtype)

    def empty(self, *shape):
        return np.full(shape, np.nan, self.dtype)
