"""The learning rate of each iteration t, by the solver's ``lr_policy``, with a linear warm-up before it."""

import math
from collections.abc import Callable, Sequence

from ..proto import SolverParameter
from .errors import RecaffeError, nearest


def fixed(p: SolverParameter, t: int) -> float:
    """base_lr"""
    return p.base_lr


def step(p: SolverParameter, t: int) -> float:
    """base_lr gamma^floor(t / stepsize)"""
    return p.base_lr * p.gamma ** (t // p.stepsize)


def exp(p: SolverParameter, t: int) -> float:
    """base_lr gamma^t"""
    return p.base_lr * p.gamma**t


def inv(p: SolverParameter, t: int) -> float:
    """base_lr (1 + gamma t)^-power"""
    return p.base_lr * (1 + p.gamma * t) ** -p.power


def multistep(p: SolverParameter, t: int) -> float:
    """base_lr gamma^k, k the number of stepvalues reached"""
    return p.base_lr * p.gamma ** steps_reached(p.stepvalue, t)


def poly(p: SolverParameter, t: int) -> float:
    """base_lr (1 - t / max_iter)^power"""
    return p.base_lr * max(0.0, 1 - t / p.max_iter) ** p.power


def sigmoid(p: SolverParameter, t: int) -> float:
    """base_lr / (1 + exp(-gamma (t - stepsize)))"""
    return p.base_lr * 0.5 * (1 + math.tanh(0.5 * p.gamma * (t - p.stepsize)))


def cosine(p: SolverParameter, t: int) -> float:
    """min_lr + (base_lr - min_lr) (1 + cos(pi t / max_iter)) / 2   (Loshchilov and Hutter, "SGDR", ICLR 2017)"""
    return p.min_lr + (p.base_lr - p.min_lr) * 0.5 * (1 + math.cos(math.pi * min(1.0, t / p.max_iter)))


def inv_sqrt(p: SolverParameter, t: int) -> float:
    """base_lr sqrt(warmup_iter / t), and on the way there base_lr t / warmup_iter

    Vaswani et al., "Attention is all you need", NIPS 2017, equation 3, whose d^-0.5 warmup_iter^-0.5 is base_lr, the
    highest rate.
    """
    return p.base_lr * math.sqrt(p.warmup_iter / t)


Policy = Callable[[SolverParameter, int], float]

# each policy with the fields it needs
POLICIES: dict[str, tuple[Policy, tuple[str, ...]]] = {
    "fixed": (fixed, ()),
    "step": (step, ("gamma", "stepsize")),
    "exp": (exp, ("gamma",)),
    "inv": (inv, ("gamma", "power")),
    "multistep": (multistep, ("gamma",)),
    "poly": (poly, ("power", "max_iter")),
    "sigmoid": (sigmoid, ("gamma", "stepsize")),
    "cosine": (cosine, ("max_iter",)),
    "inv_sqrt": (inv_sqrt, ("warmup_iter",)),
}


def steps_reached(values: Sequence[int], t: int) -> int:
    """How many steps of a multistep policy are taken by iteration t: at most one each iteration, in order."""
    reached = 0
    start = -1
    for value in values:
        start = max(value, start + 1)
        if t < start:
            break
        reached += 1
    return reached


def current_step(p: SolverParameter, t: int) -> int:
    """The count of steps that Caffe keeps in a solver state."""
    if p.lr_policy == "step" and p.stepsize > 0:
        return t // p.stepsize
    return steps_reached(p.stepvalue, t) if p.lr_policy == "multistep" else 0


def create_learning_rate(p: SolverParameter) -> Callable[[int], float]:
    """The function that gives the learning rate of iteration t.

    In the first ``warmup_iter`` iterations the rate rises on a straight line from ``warmup_start_lr`` to the
    policy's rate at iteration ``warmup_iter``.  Raises RecaffeError for an unknown policy or missing fields.
    """
    if p.lr_policy not in POLICIES:
        close = nearest(p.lr_policy, POLICIES)
        hint = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(POLICIES)}"
        found = f"unknown lr_policy {p.lr_policy!r}" if p.lr_policy else "lr_policy is missing"
        raise RecaffeError(f"solver: {found}; {hint}")
    policy, needed = POLICIES[p.lr_policy]
    for field in ("base_lr", *needed):
        if not p.HasField(field):  # type: ignore[arg-type]
            raise RecaffeError(f"solver: lr_policy {p.lr_policy!r} needs {field}, which is missing")
    for field in ("stepsize", "max_iter", "warmup_iter"):
        if field in needed and getattr(p, field) <= 0:
            raise RecaffeError(f"solver: {field} is {getattr(p, field)}, expected more than 0")
    if "gamma" in needed and p.gamma < 0:
        raise RecaffeError(f"solver: gamma is {p.gamma:g}, expected 0 or more")
    if p.warmup_iter < 0:
        raise RecaffeError(f"solver: warmup_iter is {p.warmup_iter}, expected 0 or more")
    top = policy(p, p.warmup_iter) if p.warmup_iter else 0.0

    def learning_rate(t: int) -> float:
        if t < p.warmup_iter:
            return p.warmup_start_lr + (top - p.warmup_start_lr) * t / p.warmup_iter
        return policy(p, t)

    return learning_rate
