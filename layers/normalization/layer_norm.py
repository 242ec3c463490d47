"""LayerNorm: every row with mean 0 and variance 1, then a learnt scale and shift."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import register
from .row_norm import RowNorm


@register
class LayerNorm(RowNorm):
    """y = gamma * z + beta, z = (x - mean) / sqrt(variance + eps), with the mean and variance of each row of x.

    Ba, Kiros and Hinton, "Layer Normalization", 2016 (arXiv:1607.06450).  A row is the values from ``axis`` on.
    With g = gamma * dy: dx = (g - mean(g) - z mean(g z)) / sqrt(variance + eps); over all rows, dgamma = sum dy z and
    dbeta = sum dy.

    Shapes
        bottom x: M... x K..., split before ``axis``; top y: as x, in place if wanted.
        parameters: gamma (K...), 1 at first; beta (K...), 0 at first; none without ``affine``

    Options (layer_norm_param)
        axis: the first one of a row (-1); eps (1e-5); affine: whether there are gamma and beta (true).

    Raises LayerError for an eps below 0 and for other sizes from ``axis`` on than before.
    """

    type = "LayerNorm"

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        super().layer_setup(bottom, top)
        if self.affine:
            self.add_blob("beta", self.sizes)
        self.zeros = self.xp.zeros(self.K, self.dtype)

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        super().reshape(bottom, top)
        self.mean = self.xp.empty(self.M, self.dtype)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, y = self.input(bottom, top), self.rows(top[0].data)
        beta = self.blobs[1].data.reshape(-1) if self.affine else self.zeros
        layer_norm_forward(self.backend, x, self.gamma(), beta, self.eps, self.mean, self.inverse, y)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        x, dy = self.rows(self.x.data), self.rows(top[0].diff)
        dgamma, dbeta = self.xp.empty_like(self.ones), self.xp.empty_like(self.ones)
        dx = self.rows(bottom[0].diff) if propagate_down[0] else self.xp.empty_like(x)
        layer_norm_backward(self.backend, x, self.mean, self.inverse, self.gamma(), dy, dx, dgamma, dbeta)
        self.add_gradients(dgamma, dbeta)


@fusable
def layer_norm_forward(
    backend: Any, x: Any, gamma: Any, beta: Any, eps: float, mean: Any, inverse_std: Any, y: Any
) -> None:
    """y = (x - mean) * inverse_std * gamma + beta, with the mean and 1 / sqrt(variance + eps) of each row.

    x, y (M, K); gamma, beta (K,); mean, inverse_std (M,), overwritten.
    """
    xp = backend.xp
    xp.mean(x, axis=1, out=mean)
    xp.subtract(x, mean[:, None], out=y)
    xp.divide(1, xp.sqrt((y * y).mean(axis=1) + eps), out=inverse_std)
    y *= inverse_std[:, None]
    y *= gamma
    y += beta


@fusable
def layer_norm_backward(
    backend: Any, x: Any, mean: Any, inverse_std: Any, gamma: Any, dy: Any, dx: Any, dgamma: Any, dbeta: Any
) -> None:
    """dx, dgamma and dbeta, all overwritten, from dy and what forward had and found; dx may be dy."""
    xp = backend.xp
    z = (x - mean[:, None]) * inverse_std[:, None]
    xp.sum(dy * z, axis=0, out=dgamma)
    xp.sum(dy, axis=0, out=dbeta)
    g = dy * gamma
    g -= g.mean(axis=1, keepdims=True) + z * (g * z).mean(axis=1, keepdims=True)
    xp.multiply(g, inverse_std[:, None], out=dx)
