"""RMSNorm: every row with mean square 1, then a learnt scale."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.fusable import fusable
from ...framework.layer import register
from .row_norm import RowNorm


@register
class RMSNorm(RowNorm):
    """y = gamma * z, z = x / sqrt(mean(x^2) + eps), with the mean over each row of x.

    Zhang and Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019.  A row is the values from ``axis`` on.
    With g = gamma * dy: dx = (g - z mean(g z)) / sqrt(mean(x^2) + eps); over all rows, dgamma = sum dy z.

    Shapes
        bottom x: M... x K..., split before ``axis``; top y: as x, in place if wanted.
        parameter: gamma (K...), 1 at first; none without ``affine``

    Options (layer_norm_param)
        axis: the first one of a row (-1); eps (1e-5); affine: whether there is gamma (true).

    Raises LayerError for an eps below 0 and for other sizes from ``axis`` on than before.
    """

    type = "RMSNorm"

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, y = self.input(bottom, top), self.rows(top[0].data)
        rms_norm_forward(self.backend, x, self.gamma(), self.eps, self.inverse, y)

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        x, dy = self.rows(self.x.data), self.rows(top[0].diff)
        dgamma = self.xp.empty_like(self.ones)
        dx = self.rows(bottom[0].diff) if propagate_down[0] else self.xp.empty_like(x)
        rms_norm_backward(self.backend, x, self.inverse, self.gamma(), dy, dx, dgamma)
        self.add_gradients(dgamma)


@fusable
def rms_norm_forward(backend: Any, x: Any, gamma: Any, eps: float, inverse_rms: Any, y: Any) -> None:
    """y = x * inverse_rms * gamma, with 1 / sqrt(mean(x^2) + eps) of each row.

    x, y (M, K); gamma (K,); inverse_rms (M,), overwritten.
    """
    xp = backend.xp
    xp.divide(1, xp.sqrt((x * x).mean(axis=1) + eps), out=inverse_rms)
    xp.multiply(x, inverse_rms[:, None], out=y)
    y *= gamma


@fusable
def rms_norm_backward(backend: Any, x: Any, inverse_rms: Any, gamma: Any, dy: Any, dx: Any, dgamma: Any) -> None:
    """dx and dgamma, both overwritten, from dy and what forward had and found; dx may be dy."""
    xp = backend.xp
    z = x * inverse_rms[:, None]
    xp.sum(dy * z, axis=0, out=dgamma)
    g = dy * gamma
    g -= z * (g * z).mean(axis=1, keepdims=True)
    xp.multiply(g, inverse_rms[:, None], out=dx)
