"""The sequence models of models/ trained by PyTorch: same data, batches, first weights, budget and update rule.

    python -m benchmarks.sequence_models models/digits_rows/solver.prototxt

The net is built from the prototxt with PyTorch's own layers, and reads the batches of recaffe's data layer.  What it
has learnt is put back into recaffe's net, which is scored as ``recaffe train`` does and written as
PREFIX_torch.caffemodel.
"""

import logging
import math
import sys
from time import perf_counter
from typing import Any

import recaffe
import torch
from recaffe.framework.learning_rate import create_learning_rate
from torch import nn

from .torch_layers import LAYERS, Weighted


class TorchNet(nn.Module):
    """The layers of ``net`` behind its data layer, with its parameters."""

    def __init__(self, net: recaffe.Net):
        super().__init__()
        self.net, self.steps, self.weighted = net, [], nn.ModuleDict()
        decay = {address(blob): mult for blob, mult in zip(net.learnable_params, net.params_weight_decay, strict=True)}
        owners: dict[int, nn.Parameter] = {}
        self.decay_mults: dict[nn.Parameter, float] = {}  # those that are not 1
        for layer in net.layers[1:]:
            run = LAYERS[layer.type](layer)
            if isinstance(run, nn.Module):
                self.weighted[layer.name] = run
            if isinstance(run, Weighted):
                for i, (blob, learns) in enumerate(zip(layer.blobs, layer.param_propagate_down, strict=True)):
                    run.weights[i] = shared = owners.setdefault(address(blob), run.weights[i])
                    shared.requires_grad_(learns)
                    self.decay_mults[shared] = decay[address(blob)]
            self.steps.append((run, net.bottom_names[layer.name], net.top_names[layer.name]))

    def forward(self) -> torch.Tensor:
        """The loss of the next batch."""
        first = self.net.layers[0].name
        blobs = {name: torch.tensor(values) for name, values in self.net.forward(end=first).items()}
        for run, bottoms, tops in self.steps:
            blobs.update(zip(tops, run(*[blobs[name] for name in bottoms]), strict=True))
        return blobs["loss"]

    def put_back(self) -> None:
        """Let recaffe's net have the parameters."""
        for name, part in self.weighted.items():
            for blob, values in zip(self.net.params[name], part.arrays(), strict=True):
                blob.data[...] = values.detach().numpy()


def address(blob: Any) -> int:
    """Where the values are: the same for parameters that are shared."""
    return blob.data.ctypes.data


class TorchTraining:
    """What the solver does with Adam or AdamW, done by PyTorch on the batches of the solver's net."""

    def __init__(self, solver: recaffe.Solver):
        self.param = param = solver.param
        self.model, self.iteration = TorchNet(solver.net), 0
        self.learnt = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        kind = {"Adam": torch.optim.Adam, "AdamW": torch.optim.AdamW}[param.type]
        groups: dict[float, list[nn.Parameter]] = {}
        for parameter in self.learnt:
            groups.setdefault(self.model.decay_mults.get(parameter, 1.0), []).append(parameter)
        self.adam = kind(
            [{"params": part, "weight_decay": mult * param.weight_decay} for mult, part in groups.items()],
            betas=(param.momentum, param.momentum2),
        )
        self.learning_rate = create_learning_rate(param)

    def step(self) -> float:
        """One update; gives the loss before it."""
        param, delta = self.param, self.param.delta
        if param.type == "Adam":  # Caffe adds delta before the correction of the zero start, PyTorch behind it
            delta /= math.sqrt(1 - param.momentum2 ** (self.iteration + 1))
        for group in self.adam.param_groups:
            group.update(lr=self.learning_rate(self.iteration), eps=delta)
        loss = self.model()
        self.adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.learnt, param.clip_gradients)
        self.adam.step()
        self.iteration += 1
        return loss.item()


def main(path: str) -> None:
    """Train the net of the solver at ``path``; print its scores."""
    torch.set_num_threads(2)
    solver = recaffe.get_solver(path)
    param, training = solver.param, TorchTraining(solver)
    start = perf_counter()
    for _ in range(param.max_iter):
        training.step()
    print(f"{solver.net.name} in PyTorch: {param.max_iter} iterations, {perf_counter() - start:.0f} s")
    training.model.put_back()
    solver.iter = param.max_iter
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    solver.test_all()
    solver.net.save(f"{param.snapshot_prefix}_torch.caffemodel")


if __name__ == "__main__":
    main(sys.argv[1])
