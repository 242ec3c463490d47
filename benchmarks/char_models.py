"""The character models of models/ trained by PyTorch: same text, batches, first weights, budget and update rule.

    python benchmarks/char_models.py char_lstm

Prints the bits per character of the held-out files; models/char_*/README.md has them beside recaffe's.
"""

import math
import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np
import recaffe
import torch
from torch.nn import functional

State = tuple[torch.Tensor, ...] | None


class TorchModel(torch.nn.Module):
    """Embedding, recurrent layer, scores; filled from recaffe's net."""

    def __init__(self, net: recaffe.Net):
        super().__init__()
        name = net.name.removeprefix("char_")
        arrays = {key: [torch.tensor(blob.data) for blob in blobs] for key, blobs in net.params.items()}
        self.embed = torch.nn.Parameter(arrays["embed"][0])
        self.scores = torch.nn.ParameterList(arrays["scores"])
        self.recurrent = {"lstm": lstm, "rnn": rnn, "gru": GRU}[name](*arrays[name])

    def forward(self, tokens: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        h, state = self.recurrent(functional.embedding(tokens, self.embed), state)
        return functional.linear(h, *self.scores), state


def lstm(W_x: torch.Tensor, b: torch.Tensor, W_h: torch.Tensor) -> torch.nn.Module:
    """nn.LSTM, whose gates are i, f, g, o."""

    def reorder(rows: torch.Tensor) -> torch.Tensor:
        i, f, o, g = rows.chunk(4)
        return torch.cat([i, f, g, o])

    return filled(torch.nn.LSTM, *map(reorder, (W_x, b, W_h)))


def rnn(W_x: torch.Tensor, b: torch.Tensor, W_h: torch.Tensor) -> torch.nn.Module:
    """nn.RNN."""
    return filled(torch.nn.RNN, W_x, b, W_h)


def filled(kind: type, W_x: torch.Tensor, b: torch.Tensor, W_h: torch.Tensor) -> torch.nn.Module:
    """A module with these weights; its second bias stays zero."""
    module = kind(W_x.shape[1], W_h.shape[1])
    with torch.no_grad():
        for own, given in ((module.weight_ih_l0, W_x), (module.weight_hh_l0, W_h), (module.bias_ih_l0, b)):
            own.copy_(given)
        module.bias_hh_l0.zero_().requires_grad_(False)
    return module


class GRU(torch.nn.Module):
    """z, r, h~ = tanh(W_x x + W_h [r h] + b): the reset before the product, which nn.GRU does not have."""

    def __init__(self, W_x: torch.Tensor, b: torch.Tensor, W_h: torch.Tensor):
        super().__init__()
        self.W_x, self.b, self.W_h = map(torch.nn.Parameter, (W_x, b, W_h))

    def forward(self, x: torch.Tensor, state: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        H = self.W_h.shape[1]
        h = x.new_zeros(x.shape[1], H) if state is None else state
        outputs = []
        for gates in functional.linear(x, self.W_x, self.b):
            z, r = torch.sigmoid(gates[:, : 2 * H] + h @ self.W_h[: 2 * H].T).chunk(2, dim=1)
            candidate = torch.tanh(gates[:, 2 * H :] + (r * h) @ self.W_h[2 * H :].T)
            h = (1 - z) * h + z * candidate
            outputs.append(h)
        return torch.stack(outputs), h


def detached(state: State) -> State:
    """The state without its history."""
    if state is None or isinstance(state, torch.Tensor):
        return state if state is None else state.detach()
    return tuple(part.detach() for part in state)


def batches(net: recaffe.Net) -> Callable[[], tuple[torch.Tensor, torch.Tensor, bool]]:
    """The batches of the net's first layer: tokens, targets, and whether the streams start anew in them."""

    def read() -> tuple[torch.Tensor, torch.Tensor, bool]:
        net.forward(end=net.layers[0].name)
        data, cont, target = (np.array(net.blobs[name].data) for name in ("data", "cont", "target"))
        return torch.tensor(data).long(), torch.tensor(target).long(), bool(cont[0, 0] == 0)

    return read


def loss_of(model: TorchModel, batch: tuple, state: State) -> tuple[torch.Tensor, State]:
    """The mean loss of a batch, and the state behind it."""
    tokens, target, is_start = batch
    scores, state = model(tokens, None if is_start else detached(state))
    return functional.cross_entropy(scores.flatten(0, 1), target.flatten()), state


class TorchTraining:
    """What the solver does, done by PyTorch on the solver's batches; the solver's net gives the first weights."""

    def __init__(self, solver: recaffe.Solver):
        self.param = param = solver.param
        self.model = TorchModel(solver.net)
        self.learnt = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.adam = torch.optim.Adam(self.learnt, betas=(param.momentum, param.momentum2))
        self.read, self.state, self.iteration = batches(solver.net), None, 0

    def step(self) -> float:
        """One update; gives the loss before it."""
        param, group = self.param, self.adam.param_groups[0]
        group["lr"] = param.base_lr * (1 - self.iteration / param.max_iter) ** param.power
        # Caffe adds delta before the correction of the zero start, PyTorch behind it
        group["eps"] = param.delta / math.sqrt(1 - param.momentum2 ** (self.iteration + 1))
        loss, self.state = loss_of(self.model, self.read(), self.state)
        self.adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.learnt, param.clip_gradients)
        self.adam.step()
        self.iteration += 1
        return loss.item()


def main(name: str) -> None:
    """Train the model ``name`` as its solver says; print the held-out bits per character."""
    torch.set_num_threads(2)
    solver = recaffe.get_solver(f"models/{name}/solver.prototxt")
    training = TorchTraining(solver)
    start = perf_counter()
    for _ in range(solver.param.max_iter):
        training.step()
    seconds, total, state = perf_counter() - start, 0.0, None
    read, count = batches(solver.test_nets[0]), solver.param.test_iter[0]
    with torch.no_grad():
        for _ in range(count):
            loss, state = loss_of(training.model, read(), state)
            total += float(loss) / count
    print(f"{name} in PyTorch: {total / math.log(2):.4f} bits per character, {seconds:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1])
