"""Write sequences of the adding problem (Hochreiter and Schmidhuber, Neural Computation 1997) as train.h5 and test.h5.

    python models/adding_problem/prepare.py 200

A sequence has as many steps as the argument says (200 by default) of two numbers: a value drawn from 0 to 1, and a
mark, which is 1 at one step of each half and 0 elsewhere.  The label is the sum of the two values that are marked.
Always to say 1 gives a mean squared error of 1/6.
"""

import sys
from pathlib import Path

import h5py
import numpy as np

FOLDER = Path(__file__).parent
SEED = 0
COUNTS = {"train": 20000, "test": 1000}


def adding_problem(count: int, steps: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sequences (count x steps x 2) and their labels (count)."""
    half = steps // 2
    data = np.zeros((count, steps, 2), np.float32)
    data[:, :, 0] = rng.random((count, steps))
    marked = np.stack([rng.integers(0, half, count), rng.integers(half, steps, count)], axis=1)
    np.put_along_axis(data[:, :, 1], marked, 1, axis=1)
    return data, np.take_along_axis(data[:, :, 0], marked, axis=1).sum(axis=1)


def main(steps: int) -> None:
    """Write the two files beside this one."""
    rng = np.random.default_rng(SEED)
    for name, count in COUNTS.items():
        path = FOLDER / f"{name}.h5"
        with h5py.File(path, "w") as file:
            file["data"], file["label"] = adding_problem(count, steps, rng)
        print(f"{path}: {count} sequences of {steps} steps")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
