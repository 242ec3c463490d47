"""Write scikit-learn's digits (1,797 scans of 8 x 8 pixels) as two HDF5 files of sequences: rows from top to bottom.

``data`` is digits x 8 steps x 8 pixels from 0 to 1, ``label`` the digit.
"""

from pathlib import Path

import h5py
import numpy as np
from sklearn.datasets import load_digits

FOLDER = Path(__file__).parent
SEED = 0
TEST_COUNT = 360


def main() -> None:
    """Write train.h5 and test.h5 beside this file."""
    digits = load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.images))
    for name, indices in (("test", order[:TEST_COUNT]), ("train", order[TEST_COUNT:])):
        path = FOLDER / f"{name}.h5"
        with h5py.File(path, "w") as file:
            file["data"] = (digits.images[indices] / 16).astype(np.float32)
            file["label"] = digits.target[indices]
        print(f"{path}: {len(indices)} digits")


if __name__ == "__main__":
    main()
