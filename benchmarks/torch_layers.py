"""PyTorch's versions of the layers that sequence models have, each made of recaffe's layer with its values.

``LAYERS`` has for each type what makes, of the layer, a function (or a Module, where there are parameters) of the
bottoms that gives the tops.
"""

from functools import partial
from typing import Any

import torch
from recaffe.proto import PositionalEncodingParameter, RecurrentParameter
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

Tensors = list[torch.Tensor]


class Recurrent(nn.Module):
    """An RNN, LSTM or GRU layer in one direction or both; a static input is joined to x at every step."""

    def __init__(self, layer: Any):
        super().__init__()
        self.param, self.roles, self.D = layer.param.recurrent_param, layer.roles, layer.D
        self.has_static, self.carried = layer.roles.static is not None, None
        blobs, size = [torch.tensor(blob.data) for blob in layer.blobs], 4 if self.has_static else 3
        self.runs = nn.ModuleList(self.run(layer.type, *blobs[i : i + size]) for i in range(0, len(blobs), size))

    def run(self, kind: str, W_x: torch.Tensor, b: torch.Tensor, *others: torch.Tensor) -> nn.Module:
        """One direction, with these weights; of two biases the second stays zero."""
        W_h = others[-1]
        if self.has_static:
            W_x = torch.cat([W_x, others[0]], dim=1)
        if kind == "GRU":
            return GRU(W_x, b, W_h)
        if kind == "LSTM":
            run, W_x, b, W_h = nn.LSTM(W_x.shape[1], W_h.shape[1]), *map(reordered, (W_x, b, W_h))
        else:
            nonlinearity = "relu" if self.param.nonlinearity == RecurrentParameter.RELU else "tanh"
            run = nn.RNN(W_x.shape[1], W_h.shape[1], nonlinearity=nonlinearity)
        with torch.no_grad():
            for own, given in ((run.weight_ih_l0, W_x), (run.weight_hh_l0, W_h), (run.bias_ih_l0, b)):
                own.copy_(given)
            run.bias_hh_l0.zero_().requires_grad_(False)
        return run

    def forward(self, x: torch.Tensor, *bottoms: torch.Tensor) -> Tensors:
        roles, T, given = self.roles, len(x), (x, *bottoms)
        lengths = bottoms[-1].long() if self.param.padding else None
        first = tuple(given[i] for i in roles.states) or None
        if roles.cont is not None and given[roles.cont][0].any():
            first = self.carried
        if self.has_static:
            x = torch.cat([x, given[roles.static].expand(T, -1, -1)], dim=2)
        if self.param.expose_hidden and lengths is not None:
            packed, last = self.runs[0](pack_padded_sequence(x, lengths, enforce_sorted=False), first)
            return [pad_packed_sequence(packed, total_length=T)[0], *last]
        h, last = self.runs[0](x, first)
        if roles.cont is not None:
            self.carried = tuple(part.detach() for part in last) if isinstance(last, tuple) else last.detach()
        if len(self.runs) == 2:
            # each sequence is turned round by itself: PyTorch takes seconds to go back through long packed ones
            steps = torch.arange(T)[:, None]
            turned = torch.where(steps < lengths, lengths - 1 - steps, steps)[:, :, None]
            reverse, _ = self.runs[1](x.take_along_dim(turned, 0))
            h = torch.cat([h, reverse.take_along_dim(turned, 0)], dim=2)
        return [h[-1] if self.param.last_output else h]

    def arrays(self) -> Tensors:
        """The parameters in recaffe's order."""
        arrays = []
        for run in self.runs:
            if isinstance(run, GRU):
                W_x, b, W_h = run.W_x, run.b, run.W_h
            else:
                W_x, b, W_h = run.weight_ih_l0, run.bias_ih_l0, run.weight_hh_l0
                if isinstance(run, nn.LSTM):
                    W_x, b, W_h = map(reordered, (W_x, b, W_h))
            arrays += [W_x[:, : self.D], b, W_x[:, self.D :], W_h] if self.has_static else [W_x, b, W_h]
        return arrays


def reordered(rows: torch.Tensor) -> torch.Tensor:
    """The gates i, f, o, g in PyTorch's order i, f, g, o, or back."""
    i, f, third, fourth = rows.chunk(4)
    return torch.cat([i, f, fourth, third])


class GRU(nn.Module):
    """z, r, h~ = tanh(W_x x + W_h [r h] + b): the reset before the product, which nn.GRU does not have."""

    def __init__(self, W_x: torch.Tensor, b: torch.Tensor, W_h: torch.Tensor):
        super().__init__()
        self.W_x, self.b, self.W_h = map(nn.Parameter, (W_x, b, W_h))

    def forward(self, x: torch.Tensor, state: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        H = self.W_h.shape[1]
        h = x.new_zeros(x.shape[1], H) if state is None else state
        outputs = []
        for gates in F.linear(x, self.W_x, self.b):
            z, r = torch.sigmoid(gates[:, : 2 * H] + h @ self.W_h[: 2 * H].T).chunk(2, dim=1)
            candidate = torch.tanh(gates[:, 2 * H :] + (r * h) @ self.W_h[2 * H :].T)
            h = (1 - z) * h + z * candidate
            outputs.append(h)
        return torch.stack(outputs), h


class AttentionLSTM(nn.Module):
    """An LSTM cell that gets x and the context; the scores are k^T q / sqrt(K)."""

    def __init__(self, layer: Any):
        super().__init__()
        W_x, b, W_h, W_context, W_Q, W_K = (torch.tensor(blob.data) for blob in layer.blobs)
        self.D, self.H, self.tops = W_x.shape[1], W_h.shape[1], len(layer.param.top)
        self.cell = nn.LSTMCell(self.D + W_context.shape[1], self.H)
        with torch.no_grad():
            self.cell.weight_ih.copy_(reordered(torch.cat([W_x, W_context], dim=1)))
            self.cell.weight_hh.copy_(reordered(W_h))
            self.cell.bias_ih.copy_(reordered(b))
            self.cell.bias_hh.zero_().requires_grad_(False)
        self.W_Q, self.W_K = nn.Parameter(W_Q), nn.Parameter(W_K)

    def forward(self, x: torch.Tensor, memory: torch.Tensor, lengths: torch.Tensor) -> Tensors:
        values = memory.transpose(0, 1)
        keys = (values @ self.W_K.T).transpose(1, 2) * len(self.W_K) ** -0.5
        hidden = torch.arange(len(memory)) >= lengths[:, None]
        h = c = x.new_zeros(x.shape[1], self.H)
        states, contexts, weights = [], [], []
        for x_t in x:
            scores = torch.bmm((h @ self.W_Q.T)[:, None], keys)[:, 0]
            alpha = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=1)
            context = torch.bmm(alpha[:, None], values)[:, 0]
            h, c = self.cell(torch.cat([x_t, context], dim=1), (h, c))
            for kept, new in ((states, h), (contexts, context), (weights, alpha)):
                kept.append(new)
        return list(map(torch.stack, (states, contexts, weights)[: self.tops]))

    def arrays(self) -> Tensors:
        """The parameters in recaffe's order."""
        W_x, W_h, b = map(reordered, (self.cell.weight_ih, self.cell.weight_hh, self.cell.bias_ih))
        return [W_x[:, : self.D], b, W_h, W_x[:, self.D :], self.W_Q, self.W_K]


class Weighted(nn.Module):
    """A layer that is a function of its bottoms and its parameters."""

    def __init__(self, layer: Any, function: Any):
        super().__init__()
        self.weights = nn.ParameterList(torch.tensor(blob.data) for blob in layer.blobs)
        self.function = function

    def forward(self, *bottoms: torch.Tensor) -> Tensors:
        return [self.function(*bottoms, *self.weights)]

    def arrays(self) -> Tensors:
        """The parameters in recaffe's order."""
        return list(self.weights)


class Attention(Weighted):
    """A MultiHeadAttention by PyTorch's scaled_dot_product_attention."""

    def __init__(self, layer: Any):
        super().__init__(layer, None)
        self.param = layer.param.attention_param

    def forward(self, x: torch.Tensor, *others: torch.Tensor) -> Tensors:
        param = self.param
        if param.cross:
            W_q, b_q, W_kv, b_kv, W_o, b_o = self.weights
            q, (k, v) = F.linear(x, W_q, b_q), F.linear(others[0], W_kv, b_kv).chunk(2, dim=2)
        else:
            W_qkv, b_qkv, W_o, b_o = self.weights
            q, k, v = F.linear(x, W_qkv, b_qkv).chunk(3, dim=2)
        q, k, v = (part.unflatten(2, (param.num_heads, -1)).permute(1, 2, 0, 3) for part in (q, k, v))
        if param.rotary:
            q, k = turned(q), turned(k)
        shown, causal = None, param.causal
        if param.padding:
            shown = (torch.arange(k.shape[2]) < others[-1][:, None])[:, None, None]
            if causal:
                shown, causal = shown & torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(), False
        ratio = param.dropout_ratio if self.training else 0.0
        context = F.scaled_dot_product_attention(q, k, v, shown, ratio, causal)
        return [F.linear(context.permute(2, 0, 1, 3).flatten(2), W_o, b_o)]


def turned(x: torch.Tensor, base: float = 10000.0) -> torch.Tensor:
    """x (... x T x d) with its numbers 2i and 2i + 1, as a point, turned by the angle t / base^(2i / d)."""
    T, d = x.shape[-2:]
    angles = torch.arange(T)[:, None] * base ** (-torch.arange(0, d, 2) / d)
    points = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(points * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def positional_encoding(layer: Any) -> Any:
    param = layer.param.positional_encoding_param
    if param.encoding == PositionalEncodingParameter.LEARNED:
        return Weighted(layer, lambda x, W: x * param.input_scale + W[: len(x), None])
    slowness = param.base ** (torch.arange(0, layer.D, 2) / layer.D)

    def add(x: torch.Tensor) -> Tensors:
        angles = torch.arange(len(x))[:, None] / slowness
        return [x * param.input_scale + torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[:, None]]

    return add


def embed(layer: Any) -> nn.Module:
    return Weighted(layer, lambda x, W: F.embedding(x.long(), W))


def inner_product(layer: Any) -> nn.Module:
    axis = layer.param.inner_product_param.axis
    return Weighted(layer, lambda x, W, b: F.linear(x if axis in (-1, x.ndim - 1) else x.flatten(axis), W, b))


def convolution(layer: Any) -> nn.Module:
    (stride,) = layer.param.convolution_param.stride
    return Weighted(layer, lambda x, W, b: F.conv2d(x, W, b, stride))


def layer_norm(layer: Any) -> nn.Module:
    eps = layer.param.layer_norm_param.eps
    return Weighted(layer, lambda x, scale, shift: F.layer_norm(x, scale.shape, scale, shift, eps))


def gelu(layer: Any) -> Any:
    form = "tanh" if layer.param.gelu_param.approximate else "none"
    return lambda x: [F.gelu(x, approximate=form)]


def dropout(layer: Any) -> Any:
    return lambda x: [F.dropout(x, layer.param.dropout_param.dropout_ratio)]


def concat(layer: Any) -> Any:
    return lambda *bottoms: [torch.cat(bottoms, layer.param.concat_param.axis)]


def cut(layer: Any) -> Any:
    param = layer.param.slice_param
    return lambda x: torch.tensor_split(x, list(param.slice_point), param.axis)


def flatten(layer: Any) -> Any:
    param = layer.param.flatten_param
    return lambda x: [x.flatten(param.axis, param.end_axis)]


def reshape(layer: Any) -> Any:
    return lambda x: [x.reshape(*layer.param.reshape_param.shape.dim)]


def transpose(layer: Any) -> Any:
    return lambda x: [x.permute(*layer.param.transpose_param.dim)]


def softmax_loss(layer: Any) -> Any:
    param = layer.param.loss_param
    ignored = param.ignore_label if param.HasField("ignore_label") else -100  # PyTorch's own
    loss = partial(F.cross_entropy, ignore_index=ignored, label_smoothing=param.label_smoothing)
    return lambda x, label: [loss(x.flatten(0, -2), label.flatten().long())]


LAYERS = {
    "AttentionLSTM": AttentionLSTM,
    "Concat": concat,
    "Convolution": convolution,
    "Dropout": dropout,
    "Eltwise": lambda layer: lambda a, b: [a + b],
    "Embed": embed,
    "EuclideanLoss": lambda layer: lambda a, b: [((a.flatten() - b.flatten()) ** 2).mean() / 2],
    "Flatten": flatten,
    "GELU": gelu,
    "GRU": Recurrent,
    "InnerProduct": inner_product,
    "LSTM": Recurrent,
    "LayerNorm": layer_norm,
    "MultiHeadAttention": Attention,
    "PositionalEncoding": positional_encoding,
    "RNN": Recurrent,
    "ReLU": lambda layer: lambda x: [F.relu(x)],
    "Reshape": reshape,
    "Silence": lambda layer: lambda *bottoms: [],
    "Slice": cut,
    "SoftmaxWithLoss": softmax_loss,
    "Split": lambda layer: lambda x: [x] * len(layer.param.top),
    "Transpose": transpose,
}
