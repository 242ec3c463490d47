"""One peer in a process of its own: reads how many iterations to run, answers with their times.

``python -m benchmarks.worker PEER NET MODE`` builds the net and answers as ``serve`` does.
"""

import sys
from collections.abc import Callable

import numpy as np

from . import recurrent, recurrent_step, training, transformer
from .nets import NETS, inference_net, training_net
from .serve import serve

LAYERS = (recurrent, recurrent_step, training, transformer)  # what has no net in nets.py, by name
BASE_LR, MOMENTUM, WEIGHT_DECAY = 1e-4, 0.9, 5e-4


def recaffe_iteration(name: str, mode: str) -> Callable[[], object]:
    """One training (or inference) iteration in recaffe."""
    for layers in LAYERS:
        if name in layers.names():
            return layers.recaffe_passes(name)
    import recaffe
    from recaffe.proto import SolverParameter

    data, label = example(name)
    recaffe.set_random_seed(1)
    if mode == "test":
        net = recaffe.Net(inference_net(name), recaffe.TEST)
        net.blobs["data"].data[...] = data
        return lambda: net.forward_from_to(0, len(net.layers) - 1)
    param = SolverParameter(
        base_lr=BASE_LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY, lr_policy="fixed", max_iter=1 << 30
    )
    param.net_param.CopyFrom(training_net(name))
    solver = recaffe.get_solver(param)
    solver.net.keeps_diffs = False  # as the command line trains
    solver.net.blobs["data"].data[...] = data
    solver.net.blobs["label"].data[...] = label
    return lambda: solver.step(1)


def torch_iteration(name: str, mode: str) -> Callable[[], object]:
    """One training (or inference) iteration in PyTorch."""
    import torch
    from recaffe.framework.threads import thread_count

    from .torch_net import TorchNet

    torch.set_num_threads(thread_count())
    torch.manual_seed(1)
    for layers in LAYERS:
        if name in layers.names():
            return layers.torch_passes(name)
    data, label = (torch.from_numpy(array) for array in example(name))
    net = TorchNet(inference_net(name) if mode == "test" else training_net(name), tuple(data.shape))
    if mode == "test":
        net.eval()

        def infer() -> None:
            with torch.inference_mode():
                net(data)

        return infer
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), BASE_LR, MOMENTUM, weight_decay=WEIGHT_DECAY)

    def train() -> float:
        optimizer.zero_grad()
        loss = net(data, label)
        loss.backward()
        optimizer.step()
        return loss.item()

    return train


def example(name: str) -> tuple[np.ndarray, np.ndarray]:
    """One batch of noise and labels, the same for every peer."""
    batch, shape, classes = NETS[name]
    rng = np.random.default_rng(0)
    return rng.random((batch, *shape), np.float32), rng.integers(classes, size=batch)


PEERS = {"recaffe": recaffe_iteration, "torch": torch_iteration}


def main() -> None:
    """Serve the parent process."""
    peer, name, mode = sys.argv[1:]
    serve(PEERS[peer](name, mode))


if __name__ == "__main__":
    main()
