"""How each solver type turns gradients into new weights.

Symbols: w weights, g gradient, h (m, v) history, r learning rate of the parameter, mu momentum.  Before every
rule the gradient is made ready, in Caffe's order: scaled (clipping, mean over ``iter_size``), then regularized:

    g = scale * g + l2 * w + l1 * sign(w)

The step functions work on flat arrays, in place, in one pass; g is left undefined.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ..proto import SolverParameter
from .errors import RecaffeError, nearest
from .fusable import fusable


@fusable
def sum_of_squares(backend: Any, g: Any) -> Any:
    """sum(g * g) of a flat array, as a scalar that may still be on the device."""
    return backend.xp.dot(g, g)


@fusable
def sgd_step(backend: Any, w: Any, g: Any, h: Any, r: float, mu: float, scale: float, l2: float, l1: float) -> None:
    """h = mu h + r g;  w = w - h."""
    make_ready(backend.xp, w, g, scale, l2, l1)
    h *= mu
    g *= r
    h += g
    w -= h


@fusable
def nesterov_step(
    backend: Any, w: Any, g: Any, h: Any, r: float, mu: float, scale: float, l2: float, l1: float
) -> None:
    """h' = mu h + r g;  w = w - (1 + mu) h' + mu h."""
    make_ready(backend.xp, w, g, scale, l2, l1)
    h *= mu
    w += h
    g *= r
    h += g
    backend.xp.multiply(h, 1 + mu, out=g)
    w -= g


@fusable
def adagrad_step(
    backend: Any, w: Any, g: Any, h: Any, r: float, delta: float, scale: float, l2: float, l1: float
) -> None:
    """h = h + g^2;  w = w - r g / (sqrt(h) + delta)."""
    make_ready(backend.xp, w, g, scale, l2, l1)
    h += g * g
    w -= r * g / (backend.xp.sqrt(h) + delta)


@fusable
def rmsprop_step(
    backend: Any, w: Any, g: Any, h: Any, r: float, decay: float, delta: float, scale: float, l2: float, l1: float
) -> None:
    """h = decay h + (1 - decay) g^2;  w = w - r g / (sqrt(h) + delta)."""
    make_ready(backend.xp, w, g, scale, l2, l1)
    h *= decay
    h += (1 - decay) * g * g
    w -= r * g / (backend.xp.sqrt(h) + delta)


@fusable
def adadelta_step(
    backend: Any,
    w: Any,
    g: Any,
    h: Any,
    d: Any,
    r: float,
    mu: float,
    delta: float,
    scale: float,
    l2: float,
    l1: float,
) -> None:
    """h = mu h + (1 - mu) g^2;  u = g sqrt((d + delta) / (h + delta));  d = mu d + (1 - mu) u^2;  w = w - r u."""
    make_ready(backend.xp, w, g, scale, l2, l1)
    h *= mu
    h += (1 - mu) * g * g
    u = g * backend.xp.sqrt((d + delta) / (h + delta))
    d *= mu
    d += (1 - mu) * u * u
    w -= r * u


@fusable
def adam_step(
    backend: Any,
    w: Any,
    g: Any,
    m: Any,
    v: Any,
    r: float,
    beta1: float,
    beta2: float,
    delta: float,
    shrink: float,
    scale: float,
    l2: float,
    l1: float,
) -> None:
    """m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  w = w - shrink w - r m / (sqrt(v) + delta)."""
    make_ready(backend.xp, w, g, scale, l2, l1)
    m *= beta1
    m += (1 - beta1) * g
    v *= beta2
    v += (1 - beta2) * g * g
    if shrink:
        w *= 1 - shrink
    w -= r * m / (backend.xp.sqrt(v) + delta)


def make_ready(xp: Any, w: Any, g: Any, scale: float, l2: float, l1: float) -> None:
    """g = scale * g + l2 * w + l1 * sign(w)."""
    if scale != 1:
        g *= scale
    if l2:
        g += l2 * w
    if l1:
        g += l1 * xp.sign(w)


class Update:
    """One solver type: its options, its history per parameter, its step.

    ``step`` is called for each parameter with flat arrays and ``t``, the number of updates before this one.
    """

    type: ClassVar[str]
    histories: ClassVar[int] = 1  # arrays kept for each parameter

    def __init__(self, param: SolverParameter):
        self.momentum: float = param.momentum
        self.delta: float = param.delta

    def step(
        self, backend: Any, w: Any, g: Any, history: Sequence[Any], t: int, r: float, scale: float, l2: float, l1: float
    ) -> None:
        """Change w and history in place."""
        raise NotImplementedError

    def refuse_momentum(self) -> None:
        """Raise RecaffeError where the solver gives a momentum that this type has no use for."""
        if self.momentum:
            raise RecaffeError(
                f"solver: momentum {self.momentum:g} cannot be used with type {self.type!r}; leave momentum out"
            )


class SGD(Update):
    """h = mu h + r g;  w = w - h.  Stochastic gradient descent with momentum (Polyak 1964)."""

    type = "SGD"

    def step(self, backend, w, g, history, t, r, scale, l2, l1):
        sgd_step(backend, w, g, history[0], r, self.momentum, scale, l2, l1)


class Nesterov(Update):
    """h' = mu h + r g;  w = w - (1 + mu) h' + mu h.

    Nesterov's accelerated gradient (1983), in the form of Sutskever, Martens, Dahl and Hinton, "On the
    importance of initialization and momentum in deep learning", ICML 2013.
    """

    type = "Nesterov"

    def step(self, backend, w, g, history, t, r, scale, l2, l1):
        nesterov_step(backend, w, g, history[0], r, self.momentum, scale, l2, l1)


class AdaGrad(Update):
    """h = h + g^2;  w = w - r g / (sqrt(h) + delta).

    Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic optimization",
    JMLR 2011.
    """

    type = "AdaGrad"

    def __init__(self, param: SolverParameter):
        super().__init__(param)
        self.refuse_momentum()

    def step(self, backend, w, g, history, t, r, scale, l2, l1):
        adagrad_step(backend, w, g, history[0], r, self.delta, scale, l2, l1)


class RMSProp(Update):
    """h = rms_decay h + (1 - rms_decay) g^2;  w = w - r g / (sqrt(h) + delta).

    Tieleman and Hinton, "RMSProp: divide the gradient by a running average of its recent magnitude",
    COURSERA: Neural networks for machine learning, 2012.
    """

    type = "RMSProp"

    def __init__(self, param: SolverParameter):
        super().__init__(param)
        self.refuse_momentum()
        self.decay: float = param.rms_decay
        if not 0 <= self.decay < 1:
            raise RecaffeError(f"solver: rms_decay is {self.decay:g}, expected 0 <= rms_decay < 1")

    def step(self, backend, w, g, history, t, r, scale, l2, l1):
        rmsprop_step(backend, w, g, history[0], r, self.decay, self.delta, scale, l2, l1)


class AdaDelta(Update):
    """h = mu h + (1 - mu) g^2;  u = g sqrt((d + delta) / (h + delta));  d = mu d + (1 - mu) u^2;  w = w - r u.

    Zeiler, "ADADELTA: an adaptive learning rate method", 2012; the solver's momentum is the decay mu.
    """

    type = "AdaDelta"
    histories = 2

    def step(self, backend, w, g, history, t, r, scale, l2, l1):
        h, d = history
        adadelta_step(backend, w, g, h, d, r, self.momentum, self.delta, scale, l2, l1)


class Adam(Update):
    """m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  w = w - r c m / (sqrt(v) + delta)

    with c = sqrt(1 - beta2^t) / (1 - beta1^t), t = 1, 2, ...; beta1 is the solver's momentum, beta2 its
    momentum2.  Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015 (section 2, last form).
    """

    type = "Adam"
    histories = 2

    def __init__(self, param: SolverParameter):
        super().__init__(param)
        self.momentum2: float = param.momentum2
        for name, value in (("momentum", self.momentum), ("momentum2", self.momentum2)):
            if not 0 <= value < 1:
                raise RecaffeError(f"solver: {name} is {value:g}, expected 0 <= {name} < 1 for type {self.type!r}")

    def corrections(self, t: int) -> tuple[float, float]:
        """1 - beta1^(t + 1) and sqrt(1 - beta2^(t + 1)): what the zero start of m and v takes away."""
        return 1 - self.momentum ** (t + 1), math.sqrt(1 - self.momentum2 ** (t + 1))

    def step(self, backend, w, g, history, t, r, scale, l2, l1):
        m, v = history
        of_m, of_v = self.corrections(t)
        adam_step(backend, w, g, m, v, r * of_v / of_m, self.momentum, self.momentum2, self.delta, 0.0, scale, l2, l1)


class AdamW(Adam):
    """w = w - r (m' / (sqrt(v') + delta) + weight_decay w)

    with Adam's m and v of the unregularized gradient and m' = m / (1 - beta1^t), v' = v / (1 - beta2^t).
    Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019.
    """

    type = "AdamW"

    def __init__(self, param: SolverParameter):
        super().__init__(param)
        if param.weight_decay and param.regularization_type != "L2":
            raise RecaffeError(
                f"solver: type 'AdamW' decays weights itself, expected regularization_type 'L2',"
                f" got {param.regularization_type!r}"
            )

    def step(self, backend, w, g, history, t, r, scale, l2, l1):
        m, v = history
        of_m, of_v = self.corrections(t)
        adam_step(
            backend, w, g, m, v, r * of_v / of_m, self.momentum, self.momentum2, self.delta * of_v, r * l2,
            scale, 0.0, 0.0,
        )  # fmt: skip


UPDATES: dict[str, type[Update]] = {
    update.type: update for update in (SGD, Nesterov, AdaGrad, RMSProp, AdaDelta, Adam, AdamW)
}


def create_update(param: SolverParameter) -> Update:
    """The update rule that ``param.type`` names."""
    if param.type not in UPDATES:
        close = nearest(param.type, UPDATES)
        hint = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(UPDATES)}"
        raise RecaffeError(f"solver: unknown type {param.type!r}; {hint}")
    return UPDATES[param.type](param)
