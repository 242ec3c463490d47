"""The sequence models of models/ trained by PyTorch: same data, batches, first weights, budget and update rule.

    python -m benchmarks.sequence_models models/digits_rows/solver.prototxt

The net is built from the prototxt with PyTorch's own layers, and reads the batches of recaffe's data layer.  What it
has learnt is put back into recaffe's net, which is scored as ``recaffe train`` does and written as
PREFIX_torch.caffemodel.
"""

import logging
import sys
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import recaffe
import torch
from recaffe.proto import RecurrentParameter, SolverParameter, read_solver
from torch import nn
from torch.nn import functional as F  # noqa: N812

from .char_models import GRU, filled, lstm

Tensors = list[torch.Tensor]


class Recurrent(nn.Module):
    """An RNN, LSTM or GRU layer; a static input is joined to x at every step, first states are zeros."""

    def __init__(self, layer: Any):
        super().__init__()
        param = layer.param.recurrent_param
        nonlinearity = "relu" if param.nonlinearity == RecurrentParameter.RELU else "tanh"
        rnn = partial(filled, partial(nn.RNN, nonlinearity=nonlinearity))
        blobs = [torch.tensor(blob.data) for blob in layer.blobs]
        self.D, self.has_static, self.exposes = layer.D, layer.roles.static is not None, param.expose_hidden
        W_x, b, W_h = (torch.cat([blobs[0], blobs[2]], dim=1), blobs[1], blobs[3]) if self.has_static else blobs
        self.run = {"LSTM": lstm, "GRU": GRU, "RNN": rnn}[layer.type](W_x, b, W_h)

    def forward(self, x: torch.Tensor, *others: torch.Tensor) -> Tensors:
        if self.has_static:
            x = torch.cat([x, others[0].expand(len(x), -1, -1)], dim=2)
        h, last = self.run(x, None) if isinstance(self.run, GRU) else self.run(x)
        if not self.exposes:
            return [h]
        states = last if isinstance(last, tuple) else (last,)
        return [h, *(state.reshape(1, *h.shape[1:]) for state in states)]

    def arrays(self) -> Tensors:
        """The parameters in recaffe's order."""
        run = self.run
        if isinstance(run, GRU):
            return [run.W_x, run.b, run.W_h]
        W_x, b, W_h = run.weight_ih_l0, run.bias_ih_l0, run.weight_hh_l0
        if isinstance(run, nn.LSTM):
            W_x, b, W_h = (torch.cat([i, f, o, g]) for i, f, g, o in (rows.chunk(4) for rows in (W_x, b, W_h)))
        return [W_x[:, : self.D], b, W_x[:, self.D :], W_h] if self.has_static else [W_x, b, W_h]


class Weighted(nn.Module):
    """A layer that is a function of its bottom and its parameters."""

    def __init__(self, layer: Any, function: Any):
        super().__init__()
        self.weights = nn.ParameterList(torch.tensor(blob.data) for blob in layer.blobs)
        self.function = function

    def forward(self, x: torch.Tensor) -> Tensors:
        return [self.function(x, *self.weights)]

    def arrays(self) -> Tensors:
        """The parameters in recaffe's order."""
        return list(self.weights)


def embed(layer: Any) -> nn.Module:
    return Weighted(layer, lambda x, W: F.embedding(x.long(), W))


def inner_product(layer: Any) -> nn.Module:
    return Weighted(layer, F.linear)


def cut(layer: Any) -> Any:
    param = layer.param.slice_param
    return lambda x: torch.tensor_split(x, list(param.slice_point), param.axis)


def flatten(layer: Any) -> Any:
    param = layer.param.flatten_param
    return lambda x: [x.flatten(param.axis, param.end_axis)]


def transpose(layer: Any) -> Any:
    return lambda x: [x.permute(*layer.param.transpose_param.dim)]


def softmax_loss(layer: Any) -> Any:
    param = layer.param.loss_param
    ignored = param.ignore_label if param.HasField("ignore_label") else -100  # PyTorch's own
    return lambda x, label: [F.cross_entropy(x.flatten(0, -2), label.flatten().long(), ignore_index=ignored)]


LAYERS = {
    "DummyData": lambda layer: lambda: [torch.zeros(*shape.dim) for shape in layer.param.dummy_data_param.shape],
    "Eltwise": lambda layer: lambda a, b: [a + b],
    "Embed": embed,
    "EuclideanLoss": lambda layer: lambda a, b: [((a.flatten() - b.flatten()) ** 2).mean() / 2],
    "Flatten": flatten,
    "GRU": Recurrent,
    "InnerProduct": inner_product,
    "LSTM": Recurrent,
    "ReLU": lambda layer: lambda x: [F.relu(x)],
    "RNN": Recurrent,
    "Silence": lambda layer: lambda *bottoms: [],
    "Slice": cut,
    "SoftmaxWithLoss": softmax_loss,
    "Split": lambda layer: lambda x: [x] * len(layer.param.top),
    "Transpose": transpose,
}


class TorchNet(nn.Module):
    """The layers of ``net`` behind its data layer, with its parameters."""

    def __init__(self, net: recaffe.Net):
        super().__init__()
        self.net, self.steps, self.weighted = net, [], nn.ModuleDict()
        for layer in net.layers[1:]:
            run = LAYERS[layer.type](layer)
            if isinstance(run, nn.Module):
                self.weighted[layer.name] = run
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


def train(model: TorchNet, param: SolverParameter) -> float:
    """Train as the solver says (Adam, a rate that falls linearly); gives the seconds."""
    learnt = [parameter for parameter in model.parameters() if parameter.requires_grad]
    adam = torch.optim.Adam(learnt, param.base_lr, (param.momentum, param.momentum2), param.delta)
    start = perf_counter()
    for iteration in range(param.max_iter):
        for group in adam.param_groups:
            group["lr"] = param.base_lr * (1 - iteration / param.max_iter) ** param.power
        loss = model()
        if iteration == 0:
            check_first_loss(model.net, loss.item())
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(learnt, param.clip_gradients)
        adam.step()
    return perf_counter() - start


def check_first_loss(net: recaffe.Net, loss: float) -> None:
    """Raise AssertionError unless recaffe's net, on the same batch, gives this loss too."""
    own = net.forward(start=net.layers[1].name, blobs=["loss"])["loss"]
    np.testing.assert_allclose(loss, own, rtol=1e-4)


def main(path: str) -> None:
    """Train the net of the solver at ``path``; print its scores."""
    torch.set_num_threads(2)
    param, solver = read_solver(path), recaffe.get_solver(path)
    model = TorchNet(solver.net)
    print(f"{solver.net.name} in PyTorch: {param.max_iter} iterations, {train(model, param):.0f} s")
    model.put_back()
    solver.iter = param.max_iter
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    solver.test_all()
    solver.net.save(f"{param.snapshot_prefix}_torch.caffemodel")


if __name__ == "__main__":
    main(sys.argv[1])
