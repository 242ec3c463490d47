"""Print the share of the test dates that a trained net writes right in every character, the best one at each step.

    python models/dates/exact_match.py [deploy.prototxt weights.caffemodel]

Without arguments it is the net of this folder.
"""

import sys
from pathlib import Path

import numpy as np
import recaffe
from recaffe.framework.translation import Translator
from recaffe.layers.data.texts import read_pairs
from recaffe.layers.data.vocabulary import Vocabulary

FOLDER = Path(__file__).parent
NET = (FOLDER / "deploy.prototxt", FOLDER / "dates_iter_2000.caffemodel")


def translator(model: Path, weights: Path) -> Translator:
    """The net with the vocabularies of dates."""
    net = recaffe.Net(model, weights, recaffe.TEST)
    return Translator(net, *(Vocabulary.load(FOLDER / name) for name in ("written.json", "iso.json")))


def exact_match(translator: Translator, path: Path) -> float:
    """The share of the pairs in ``path`` whose target is written right."""
    sources, targets = zip(*(pair.texts for pair in read_pairs(str(path))), strict=True)
    found = translator.translate([translator.source.encode(text) for text in sources], translator.search(beam=1))
    return float(np.mean([best.text == target for (best,), target in zip(found, targets, strict=True)]))


if __name__ == "__main__":
    model, weights = map(Path, sys.argv[1:3] or NET)
    print(f"exact match: {exact_match(translator(model, weights), FOLDER / 'test.tsv'):.2%}")
