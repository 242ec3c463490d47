"""Write dates in their ISO form with the trained nets: encoder.prototxt reads a date, decoder.prototxt writes it.

    python models/dates/decode.py "3rd of March, 1994"

Without arguments it decodes test.tsv and prints the share of dates that are right in every character.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import recaffe
from recaffe.layers.data.example_source import put_columns
from recaffe.layers.data.texts import read_pairs
from recaffe.layers.data.vocabulary import END, PAD, START, Vocabulary

FOLDER = Path(__file__).parent
WEIGHTS = "dates_iter_2000.caffemodel"
LONGEST = 20  # steps after which a date that has not ended is left as it is


class Decoder:
    """Greedy decoding: each step takes the best character and reads it at the next step, the states carried on.

    The encoder's outputs are the decoder's first states, under the same names.
    """

    def __init__(self, folder: Path, weights: Path):
        self.encoder = recaffe.Net(folder / "encoder.prototxt", weights, recaffe.TEST)
        self.decoder = recaffe.Net(folder / "decoder.prototxt", weights, recaffe.TEST)
        self.source = Vocabulary.load(folder / "written.json")
        self.target = Vocabulary.load(folder / "iso.json")

    def decode(self, texts: Sequence[str]) -> list[str]:
        """The target of each text."""
        states = self.read(texts)
        start, end = self.target.need(START), self.target.need(END)
        rows = [np.full(len(texts), start)]
        ended = np.zeros(len(texts), bool)
        while not ended.all() and len(rows) <= LONGEST:
            out = run(self.decoder, target_input=rows[-1][None], **states)
            rows.append(out["scores"][0].argmax(axis=1))
            ended |= rows[-1] == end
            states = {"h_source": out["h_end"], "c_source": out["c_end"]}
        return [self.text(column) for column in np.transpose(rows[1:])]

    def read(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """The decoder's first states."""
        sources = [self.source.encode(text) for text in texts]
        lengths = np.array([len(source) for source in sources])
        tokens = np.empty((lengths.max(), len(texts)))
        put_columns(tokens, sources, self.source.need(PAD))
        H = self.encoder.blobs["h_start"].shape[-1]
        zeros = np.zeros((1, len(texts), H))
        return run(self.encoder, source=tokens, source_lengths=lengths, h_start=zeros, c_start=zeros)

    def text(self, tokens: np.ndarray) -> str:
        """The tokens before the end."""
        return self.target.decode(tokens).partition(END)[0]


def run(net: recaffe.Net, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    """The outputs of ``net`` for inputs of any shape."""
    for name, values in inputs.items():
        net.blobs[name].reshape(*values.shape)
    return {name: values.copy() for name, values in net.forward(**inputs).items()}


def exact_match(decoder: Decoder, path: Path) -> float:
    """The share of the pairs in ``path`` that are decoded right."""
    sources, targets = zip(*(pair.texts for pair in read_pairs(str(path))), strict=True)
    return float(np.mean([guess == target for guess, target in zip(decoder.decode(sources), targets, strict=True)]))


def main(texts: Sequence[str]) -> None:
    """Print the dates, or without any how many of the test set are right."""
    decoder = Decoder(FOLDER, FOLDER / WEIGHTS)
    if texts:
        print("\n".join(decoder.decode(texts)))
    else:
        print(f"exact match: {exact_match(decoder, FOLDER / 'test.tsv'):.2%}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except recaffe.RecaffeError as error:
        sys.exit(str(error))
