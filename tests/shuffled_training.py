"""A training with everything that a resumed run must find again: shuffled data, dropout, a test net, momentum.

As a program it trains in the folder it is given, on from the newest whole snapshot there:

    python shuffled_training.py FOLDER [DIE_AT]

DIE_AT: kill the process (SIGKILL) before its DIE_AT-th call that makes files last (fsync, rename).
"""

import itertools
import os
import signal
import sys
from pathlib import Path

import numpy as np
import recaffe
from recaffe.framework.snapshot import latest_snapshot
from recaffe.proto import SolverParameter, parse_text

ROWS = 12


@recaffe.register
class ShuffledRows(recaffe.Layer):
    """Rows of a fixed table in an order drawn anew for every pass over them, and their targets."""

    type = "ShuffledRows"
    bottoms, tops = (0, 0), (2, 2)

    def layer_setup(self, bottom, top):
        table = np.random.default_rng(1)
        self.rows = table.standard_normal((ROWS, 6)).astype(self.dtype)
        self.targets = (self.rows[:, :2] ** 2).astype(self.dtype)
        self.order, self.position = self.backend.host_rng.permutation(ROWS), 0

    def reshape(self, bottom, top):
        top[0].reshape(5, 6)
        top[1].reshape(5, 2)

    def forward(self, bottom, top):
        chosen = []
        for _ in range(5):
            if self.position == ROWS:
                self.order, self.position = self.backend.host_rng.permutation(ROWS), 0
            chosen.append(self.order[self.position])
            self.position += 1
        top[0].data[...] = self.rows[chosen]
        top[1].data[...] = self.targets[chosen]

    def backward(self, top, propagate_down, bottom):
        """There is nothing below."""

    def get_state(self):
        return {"order": self.order.copy(), "position": self.position}

    def set_state(self, state):
        self.order, self.position = state["order"].copy(), state["position"]


SOLVER = """
max_iter: 60 snapshot: 3 display: 0 snapshot_after_train: false random_seed: 7
average_loss: 4 iter_size: 2 test_iter: 2 test_interval: 4 weight_decay: 0.01 clip_gradients: 2
lr_policy: "multistep" gamma: 0.7 stepvalue: 5 stepvalue: 20
net_param { name: "shuffled"
  layer { name: "rows" type: "ShuffledRows" top: "x" top: "t" }
  layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "h"
          inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
  layer { name: "tanh" type: "TanH" bottom: "h" top: "h" }
  layer { name: "drop" type: "Dropout" bottom: "h" top: "h" }
  layer { name: "ip2" type: "InnerProduct" bottom: "h" top: "y"
          inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
}
"""

TYPES = {
    "SGD": "base_lr: 0.05 momentum: 0.9",
    "Nesterov": "base_lr: 0.05 momentum: 0.9",
    "AdaGrad": "base_lr: 0.1",
    "RMSProp": "base_lr: 0.02 rms_decay: 0.9",
    "AdaDelta": "base_lr: 1 momentum: 0.95 delta: 1e-6",
    "Adam": "base_lr: 0.02 momentum: 0.9",
    "AdamW": "base_lr: 0.02 momentum: 0.9",
}


def solver_param(solver_type: str, prefix: Path, snapshot_format: str = "BINARYPROTO") -> SolverParameter:
    """The solver of this training."""
    text = f'type: "{solver_type}" {TYPES[solver_type]} snapshot_format: {snapshot_format} {SOLVER}'
    param = parse_text(text, SolverParameter)
    param.snapshot_prefix = str(prefix)
    return param


def result(solver: recaffe.Solver) -> np.ndarray:
    """All parameters and histories in one array."""
    params = [blob.data.ravel() for blob in solver.net.learnable_params]
    return np.concatenate([*params, *itertools.chain(*solver.history)])


def die_at(number: int) -> None:
    """Kill this process before the call ``number`` (from 1) of fsync and rename."""
    calls = itertools.count(1)

    def watched(function):
        def call(*args, **kwargs):
            if next(calls) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return call

    os.fsync = watched(os.fsync)
    Path.replace = watched(Path.replace)


def main() -> None:
    folder = Path(sys.argv[1])
    if len(sys.argv) > 2:
        die_at(int(sys.argv[2]))
    solver = recaffe.get_solver(solver_param("Adam", folder / "run"))
    print("ready", flush=True)
    solver.solve(latest_snapshot(str(folder / "run")))
    np.save(folder / "result.npy", result(solver))


if __name__ == "__main__":
    main()
