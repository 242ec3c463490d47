"""The same net in PyTorch, built from the prototxt with PyTorch's own layers, as one would write it there."""

import torch
from recaffe.proto import EltwiseParameter, NetParameter, PoolingParameter
from torch import nn
from torch.nn import functional as F  # noqa: N812


class TorchNet(nn.Module):
    """Runs the layers of ``param`` in order; gives the weighted loss, or the last top where there is no loss."""

    def __init__(self, param: NetParameter, input_shape: tuple[int, ...]):
        super().__init__()
        self.steps: list = []
        self.weighted = nn.ModuleDict()
        self.shapes = {"data": input_shape}
        normalized: set[str] = set()
        for layer in param.layer[1:]:
            if layer.type == "Scale" and layer.bottom[0] in normalized:
                continue  # part of nn.BatchNorm2d
            if layer.type == "BatchNorm":
                normalized.add(layer.top[0])
            run = getattr(self, "_" + layer.type.lower())(layer)
            self.steps.append((layer.type, run, list(layer.bottom), layer.top[0]))
            if layer.type != "SoftmaxWithLoss":
                inputs = [torch.zeros(self.shapes[name]) for name in layer.bottom]
                with torch.no_grad():
                    self.shapes[layer.top[0]] = tuple(run(*inputs).shape)

    def forward(self, data: torch.Tensor, label: torch.Tensor | None = None) -> torch.Tensor:
        """The loss, or the scores where no label is given."""
        blobs = {"data": data, "label": label}
        loss = None
        top = data
        for kind, run, bottoms, name in self.steps:
            top = run(*[blobs[bottom] for bottom in bottoms])
            if kind == "SoftmaxWithLoss":
                loss = top if loss is None else loss + top
            blobs[name] = top
        return top if loss is None else loss

    def _add(self, layer, module: nn.Module):
        self.weighted[layer.name.replace(".", "_")] = module
        return module

    def _convolution(self, layer):
        p = layer.convolution_param
        channels = self.shapes[layer.bottom[0]][1]
        stride, pad = (list(p.stride) or [1])[0], (list(p.pad) or [0])[0]
        return self._add(
            layer,
            nn.Conv2d(channels, p.num_output, p.kernel_size[0], stride, pad, groups=p.group, bias=p.bias_term),
        )

    def _batchnorm(self, layer):
        return self._add(layer, nn.BatchNorm2d(self.shapes[layer.bottom[0]][1]))

    def _innerproduct(self, layer):
        inputs = 1
        for size in self.shapes[layer.bottom[0]][1:]:
            inputs *= size
        return self._add(layer, nn.Sequential(nn.Flatten(), nn.Linear(inputs, layer.inner_product_param.num_output)))

    def _pooling(self, layer):
        p = layer.pooling_param
        kernel = self.shapes[layer.bottom[0]][2] if p.global_pooling else p.kernel_size
        if p.pool == PoolingParameter.MAX:
            return lambda x: F.max_pool2d(x, kernel, p.stride, p.pad, ceil_mode=True)
        return lambda x: F.avg_pool2d(x, kernel, p.stride, p.pad, ceil_mode=True)

    def _relu(self, layer):
        return lambda x: F.relu(x, inplace=True)

    def _lrn(self, layer):
        p = layer.lrn_param
        return nn.LocalResponseNorm(p.local_size, p.alpha, p.beta, p.k)

    def _dropout(self, layer):
        return lambda x: F.dropout(x, layer.dropout_param.dropout_ratio, self.training)

    def _concat(self, layer):
        return lambda *xs: torch.cat(xs, layer.concat_param.axis)

    def _eltwise(self, layer):
        assert layer.eltwise_param.operation == EltwiseParameter.SUM
        return lambda a, b: a + b

    def _softmaxwithloss(self, layer):
        weight = layer.loss_weight[0] if layer.loss_weight else 1.0
        return lambda x, label: weight * F.cross_entropy(x, label)
