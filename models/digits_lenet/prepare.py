"""Write scikit-learn's handwritten digits (1,797 scans of 8 x 8 pixels, 0 to 16) as two LMDBs of Datum.

Every fifth digit goes to the test set, so both sets hold all writers and classes.
"""

from pathlib import Path

import numpy as np
from recaffe.layers.data.lmdb_writer import write_lmdb
from sklearn.datasets import load_digits

FOLDER = Path(__file__).parent
SEED = 0
TEST_COUNT = 360


def main() -> None:
    """Write train_lmdb and test_lmdb beside this file."""
    digits = load_digits()
    images = digits.images.astype(np.uint8)[:, None]
    order = np.random.default_rng(SEED).permutation(len(images))
    for name, indices in (("test_lmdb", order[:TEST_COUNT]), ("train_lmdb", order[TEST_COUNT:])):
        write_lmdb(FOLDER / name, ((images[i], int(digits.target[i])) for i in indices))
        print(f"{FOLDER / name}: {len(indices)} digits")


if __name__ == "__main__":
    main()
