"""Draw how much the answer depends on the input of each step, for the four trained nets, as gradient_norms.png.

For the first batch of test.h5 it is the norm of d(sum) / dx_t, the mean over the sequences, before and after training.
"""

from pathlib import Path

import matplotlib
import numpy as np
import recaffe
from recaffe.proto import read_net

matplotlib.use("Agg")
from matplotlib import pyplot as plt

FOLDER = Path(__file__).parent
NETS = {"rnn": "RNN (tanh)", "relu_rnn": "RNN (ReLU)", "lstm": "LSTM", "gru": "GRU"}
ITERATIONS = 2500
SMALLEST = 1e-12


def gradient_norms(stage: str, weights: Path | None) -> np.ndarray:
    """The norm for each step t; without ``weights`` for first weights as they are drawn."""
    param = read_net(FOLDER / "train_val.prototxt")
    param.force_backward = True  # to the data too
    recaffe.set_random_seed(1)
    net = recaffe.Net(param, recaffe.TEST, stages=[stage], weights=weights)
    net.forward()
    net.backward(start="sum", sum=np.ones(net.blobs["sum"].shape))
    norms = np.linalg.norm(net.blobs["data"].diff, axis=2).mean(axis=1)
    net.close()
    return norms


def main() -> None:
    """Draw both pictures."""
    figure, both = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for axes, title in zip(both, ("before training", "after training"), strict=True):
        for stage, name in NETS.items():
            weights = FOLDER / f"{stage}_iter_{ITERATIONS}.caffemodel" if title == "after training" else None
            norms = gradient_norms(stage, weights)
            print(f"{title}, {name}: first step {norms[0]:.1e}, last step {norms[-1]:.1e}")
            axes.semilogy(np.maximum(norms, SMALLEST), label=name, linewidth=1.2)
        axes.set(title=title, xlabel="time step t")
    both[0].set_ylabel("norm of d(sum) / dx_t")
    both[1].legend(loc="center left", fontsize=8)
    figure.savefig(FOLDER / "gradient_norms.png", dpi=80)


if __name__ == "__main__":
    main()
