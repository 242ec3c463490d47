"""Write scikit-learn's handwritten digits (1,797 scans of 8 x 8 pixels) with their English names, letter by letter.

train.h5 and test.h5 have the datasets ``image`` (digits x 64, from 0 to 1), ``input`` and ``target`` (digits x 6): the
letters as the decoder reads them (``<s> s i x``) and is to give them (``s i x </s>``).  Behind the end the input has
``</s>`` and the target -1, which no loss counts.  train.txt and test.txt name the two files, as HDF5Data wants it, and
vocabulary.json has the letters by number.
"""

import string
from pathlib import Path

import h5py
import numpy as np
from recaffe.layers.data.vocabulary import END, START, Unit, Vocabulary
from sklearn.datasets import load_digits

FOLDER = Path(__file__).parent
SEED = 0
TEST_COUNT = 360
NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
STEPS = 1 + max(map(len, NAMES))  # the letters and the end
IGNORED = -1


def spell(vocabulary: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """The ten names as input and target."""
    start, end = vocabulary.need(START), vocabulary.need(END)
    inputs, targets = np.full((10, STEPS), end), np.full((10, STEPS), IGNORED)
    for digit, name in enumerate(NAMES):
        letters = vocabulary.encode(name)
        inputs[digit, : len(letters) + 1] = [start, *letters]
        targets[digit, : len(letters) + 1] = [*letters, end]
    return inputs, targets


def main() -> None:
    """Write the files beside this one."""
    vocabulary = Vocabulary(Unit.CHAR, [START, END, *(c for c in string.ascii_lowercase if c in "".join(NAMES))])
    vocabulary.save(FOLDER / "vocabulary.json")
    inputs, targets = spell(vocabulary)
    digits = load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.data))
    for name, indices in (("test", order[:TEST_COUNT]), ("train", order[TEST_COUNT:])):
        path = FOLDER / f"{name}.h5"
        with h5py.File(path, "w") as file:
            file["image"] = (digits.data[indices] / 16).astype(np.float32)
            file["input"] = inputs[digits.target[indices]]
            file["target"] = targets[digits.target[indices]]
        (FOLDER / f"{name}.txt").write_text(f"models/spell_digit/{name}.h5\n")
        print(f"{path}: {len(indices)} digits")


if __name__ == "__main__":
    main()
