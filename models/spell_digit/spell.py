"""Let a trained spell_digit spell the test digits, each letter fed back for the next; print the share that is right.

python models/spell_digit/spell.py models/spell_digit/spell_digit_iter_1200.caffemodel
"""

import sys
from pathlib import Path

import h5py
import numpy as np
import recaffe
from recaffe.layers.data.vocabulary import END, START, Vocabulary

FOLDER = Path(__file__).parent


def spell(net: recaffe.Net, images: np.ndarray, vocabulary: Vocabulary, steps: int) -> list[str]:
    """The name that the net gives to each image (N x 64), of at most ``steps`` letters."""
    N = len(images)
    net.blobs["letter"].reshape(1, N)
    net.blobs["image"].reshape(*images.shape)
    net.reset_states()
    letters, written = np.full((1, N), vocabulary.need(START)), []
    for _ in range(steps):
        letters = net.forward(letter=letters, image=images)["prob"].argmax(axis=2)
        written.append(letters[0])
    return [text_before_end(column, vocabulary) for column in np.transpose(written)]


def text_before_end(letters: np.ndarray, vocabulary: Vocabulary) -> str:
    """The letters (numbers) up to the end, as text."""
    ends = np.flatnonzero(letters == vocabulary.need(END))
    return vocabulary.decode(letters[: ends[0]] if len(ends) else letters)


def main(weights: str) -> None:
    """Spell the digits of test.h5."""
    net = recaffe.Net(FOLDER / "deploy.prototxt", weights, recaffe.TEST)
    vocabulary = Vocabulary.load(FOLDER / "vocabulary.json")
    with h5py.File(FOLDER / "test.h5") as file:
        images, targets = file["image"][()], file["target"][()]
    names = [text_before_end(target, vocabulary) for target in targets]
    spelled = spell(net, images, vocabulary, targets.shape[1])
    wrong = [f"{right} as {given}" for right, given in zip(names, spelled, strict=True) if right != given]
    print(f"spelled exactly: {1 - len(wrong) / len(names):.4f} of {len(names)}")
    print("wrong:", ", ".join(wrong) or "none")


if __name__ == "__main__":
    main(sys.argv[1])
