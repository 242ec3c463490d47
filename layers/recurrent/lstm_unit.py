"""LSTMUnit: one LSTM step, as Caffe unrolled its LSTM from it."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import Layer, register
from .gates import sigmoid, split_gates


@register
class LSTMUnit(Layer):
    """One step: i, f, o = sigmoid(.), g = tanh(.) of the gate inputs; c = cont f c' + i g; h = o tanh(c).

    Shapes
        bottom 0 c': 1 x N x H, the cell before; bottom 1: 1 x N x 4H, the gate inputs in the order i, f, o, g;
        bottom 2 cont: 1 x N, 0 where a sequence starts
        top 0 c, top 1 h: 1 x N x H
    """

    type = "LSTMUnit"
    bottoms, tops = (3, 3), (2, 2)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        c, gates, cont = bottom
        if c.ndim != 3 or c.shape[0] != 1:
            self.fail(f"bottom {c.name!r} (c) has shape {c.shape}, expected 1 x N x H")
        self.N, self.H = c.shape[1:]
        for blob, shape in ((gates, (1, self.N, 4 * self.H)), (cont, (1, self.N))):
            if blob.shape != shape:
                self.fail(f"bottom {blob.name!r} has shape {blob.shape}, expected {shape}")
        for blob in top:
            blob.reshape(*c.shape)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        c_before, cont = bottom[0].data[0], bottom[2].data[0][:, None]
        c, h = top[0].data[0], top[1].data[0]
        self.gates = bottom[1].data[0].copy()
        sigmoid(self.xp, self.gates[:, : 3 * self.H])
        i, f, o, g = split_gates(self.gates, 4)
        self.xp.tanh(g, out=g)
        c[...] = cont * f * c_before + i * g
        self.tanh_c = self.xp.tanh(c)
        self.xp.multiply(o, self.tanh_c, out=h)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        c_before, cont = bottom[0].data[0], bottom[2].data[0][:, None]
        dc, dh = top[0].diff[0], top[1].diff[0]
        i, f, o, g = split_gates(self.gates, 4)
        dc = dc + dh * o * (1 - self.tanh_c * self.tanh_c)
        if propagate_down[0]:
            bottom[0].diff[0] = cont * f * dc
        if propagate_down[1]:
            di, df, do, dg = split_gates(bottom[1].diff[0], 4)
            di[...] = dc * g * i * (1 - i)
            df[...] = cont * dc * c_before * f * (1 - f)
            do[...] = dh * self.tanh_c * o * (1 - o)
            dg[...] = dc * i * (1 - g * g)

    def allow_force_backward(self, bottom_index: int) -> bool:
        return bottom_index != 2
