"""Gradients of all parameters as a whole: their joint norm, and clipping."""

import logging
import math
from collections.abc import Sequence
from typing import Any

from .backend import Backend
from .blob import Blob
from .updates import sum_of_squares

log = logging.getLogger("recaffe")


def gradient_norm(backend: Backend, params: Sequence[Blob]) -> float:
    """The L2 norm of the gradients of all ``params`` together."""
    total: Any = 0.0
    for blob in params:
        total = total + sum_of_squares(backend, blob.diff.reshape(-1))
    return math.sqrt(float(total))


def clip_values(backend: Backend, params: Sequence[Blob], bound: float) -> None:
    """Hold every value of every gradient between -bound and bound."""
    for blob in params:
        backend.xp.clip(blob.diff, -bound, bound, out=blob.diff)


def clip_scale(norm: float, limit: float, displayed: bool) -> float:
    """What gradients of joint norm ``norm`` are multiplied by, so that it is at most ``limit``."""
    if norm <= limit:
        return 1.0
    if displayed:
        text = "Gradient clipping: scaling down gradients (L2 norm %g > %g) by scale factor %g"
        log.info(text, norm, limit, limit / norm)
    return limit / norm
