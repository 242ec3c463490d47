"""python_tokens and dates of models/ trained by PyTorch: same data, batches, first weights, budget and update rule.

    python benchmarks/tagging_and_dates.py python_tokens      # or one_direction, or dates

Prints the share of held-out characters or dates that are right; the models' READMEs have it beside recaffe's.
"""

import sys
from collections.abc import Iterator, Mapping

import numpy as np
import recaffe
import torch
from recaffe.proto import SolverParameter, read_solver
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

SOLVERS = {
    "python_tokens": "models/python_tokens/solver.prototxt",
    "one_direction": "models/python_tokens/one_direction_solver.prototxt",
    "dates": "models/dates/solver.prototxt",
}
IGNORED = -1

Batch = Mapping[str, torch.Tensor]
States = tuple[torch.Tensor, torch.Tensor]
Params = Mapping[str, list[torch.Tensor]]


def lstm(W_x: torch.Tensor, b: torch.Tensor, W_h: torch.Tensor) -> torch.nn.LSTM:
    """nn.LSTM, whose gates are i, f, g, o; its second bias stays zero."""
    module = torch.nn.LSTM(W_x.shape[1], W_h.shape[1])
    with torch.no_grad():
        for name, blob in (("weight_ih_l0", W_x), ("bias_ih_l0", b), ("weight_hh_l0", W_h)):
            i, f, o, g = blob.chunk(4)
            getattr(module, name).copy_(torch.cat([i, f, g, o]))
        module.bias_hh_l0.zero_().requires_grad_(False)
    return module


class Tagger(torch.nn.Module):
    """Embedding, LSTM in one direction or both, scores of the class of each character.

    Each text is turned round by itself for the reverse direction: PyTorch takes seconds to go back through packed
    sequences of 256 steps.
    """

    def __init__(self, params: Params):
        super().__init__()
        self.embed = torch.nn.Parameter(params["embed"][0])
        self.scores = torch.nn.ParameterList(params["scores"])
        blobs = params["lstm"]
        self.runs = torch.nn.ModuleList(lstm(*blobs[start : start + 3]) for start in range(0, len(blobs), 3))

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores and labels."""
        x, steps = functional.embedding(batch["data"], self.embed), torch.arange(len(batch["data"]))[:, None]
        turned = torch.where(steps < batch["lengths"], batch["lengths"] - 1 - steps, steps)[:, :, None]
        h = [self.runs[0](x)[0]]
        if len(self.runs) == 2:
            reverse, _ = self.runs[1](x.take_along_dim(turned, 0))
            h.append(reverse.take_along_dim(turned, 0))
        return functional.linear(torch.cat(h, 2), *self.scores), batch["label"]

    def right(self, batch: Batch) -> float:
        """The share of the labels that are right."""
        scores, label = self(batch)
        return float((scores.argmax(2) == label).sum() / (label != IGNORED).sum())


class EncoderDecoder(torch.nn.Module):
    """Two LSTMs; the second starts from the last states of the first."""

    def __init__(self, params: Params):
        super().__init__()
        self.embed_source = torch.nn.Parameter(params["embed_source"][0])
        self.embed_target = torch.nn.Parameter(params["embed_target"][0])
        self.scores = torch.nn.ParameterList(params["scores"])
        self.encoder, self.decoder = lstm(*params["encoder"]), lstm(*params["decoder"])

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores and target, behind a true input."""
        scores, _ = self.step(batch["target_input"], self.read(batch))
        return scores, batch["target"]

    def read(self, batch: Batch) -> States:
        """The states behind the source."""
        x = functional.embedding(batch["source"], self.embed_source)
        return self.encoder(pack_padded_sequence(x, batch["source_lengths"], enforce_sorted=False))[1]

    def step(self, tokens: torch.Tensor, states: States) -> tuple[torch.Tensor, States]:
        """Scores of the next tokens, and the states."""
        h, states = self.decoder(functional.embedding(tokens, self.embed_target), states)
        return functional.linear(h, *self.scores), states

    def right(self, batch: Batch) -> float:
        """The share of targets that are right in every character, each read from its own last one."""
        states, tokens, target = self.read(batch), batch["target_input"][:1], batch["target"]
        right = torch.ones(target.shape[1], dtype=torch.bool)
        for true in target:
            scores, states = self.step(tokens, states)
            tokens = scores.argmax(2)
            right &= (tokens[0] == true) | (true == IGNORED)
        return float(right.float().mean())


def batches(net: recaffe.Net) -> Iterator[Batch]:
    """The batches of the net's first layer."""
    first = net.layers[0].name
    while True:
        out = net.forward(end=first)
        yield {name: torch.tensor(np.array(out[name])).long() for name in net.top_names[first]}


def train(model: torch.nn.Module, param: SolverParameter, data: Iterator[Batch]) -> None:
    """Adam as the solver says: a rate that falls linearly, the gradient's norm clipped."""
    learnt = [parameter for parameter in model.parameters() if parameter.requires_grad]
    adam = torch.optim.Adam(learnt, param.base_lr, (param.momentum, param.momentum2), param.delta)
    for iteration in range(param.max_iter):
        for group in adam.param_groups:
            group["lr"] = param.base_lr * (1 - iteration / param.max_iter) ** param.power
        scores, target = model(next(data))
        loss = functional.cross_entropy(scores.flatten(0, 1), target.flatten(), ignore_index=IGNORED)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learnt, param.clip_gradients)
        adam.step()


def main(name: str) -> None:
    """Train the model ``name``; print its share of right answers."""
    solver, param = recaffe.get_solver(SOLVERS[name]), read_solver(SOLVERS[name])
    params = {key: [torch.tensor(blob.data) for blob in blobs] for key, blobs in solver.net.params.items()}
    model = EncoderDecoder(params) if name == "dates" else Tagger(params)
    train(model, param, batches(solver.net))
    test = batches(solver.test_nets[0])
    with torch.no_grad():
        right = np.mean([model.right(next(test)) for _ in range(param.test_iter[0])])
    print(f"{name} in PyTorch: {right:.2%} right")


if __name__ == "__main__":
    main(sys.argv[1])
