"""CTCLoss: connectionist temporal classification."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...framework.blob import Blob
from ...framework.layer import register
from ..fork_options import refuse_fork_options
from .ctc_targets import Targets, check_scores, check_targets, read_targets
from .loss_layer import LossLayer, Normaliser

LOG_ZERO = float("-inf")


@register
class CTCLoss(LossLayer):
    """loss = -1/Z sum_n log p(l_n | x_n): the probability that the scores spell the labels, over all alignments.

    p(l | x) = sum of prod_t y_t(a_t), y = softmax(x), over all paths a that give l when repeated classes become one
    and then blanks are left out.  With z = blank l_1 blank l_2 ... blank, and s-2 only where z_s is not z_{s-2}:
    alpha_t(s) = y_t(z_s) (alpha_{t-1}(s) + alpha_{t-1}(s-1) + alpha_{t-1}(s-2)), and beta_t from the end alike;
    dx_t(c) = 1/Z (y_t(c) - sum of alpha_t(s) beta_t(s) / p(l | x) over s with z_s = c).  All in logarithms.

    Graves et al., "Connectionist temporal classification", ICML 2006.

    Shapes
        bottom 0 x: scores T x N x C; the softmax is in the loss
        then one of: labels N x L; or indicators T x N (0 where a sequence starts, the first in each stream is read) and
        labels L x N; or the steps of each stream N, its number of labels N, and labels L x N
        top loss: a scalar.

    Labels are classes from 0 to C - 1.  Without their number, a negative one ends them, and blanks fill them up.
    A stream whose labels need more steps than it has cannot be aligned: it gives neither loss nor gradient, does not
    count in Z, and is told once by a warning.

    Options
        ctc_loss_param.blank_index or blank_label: the class of the blank (0); -1 is the last
        ctc_loss_param.alphabet_size, time_step: C and T, checked where they are given
        loss_param.normalization: Z, the streams that can be aligned (VALID), all N (FULL, BATCH_SIZE), 1 (NONE).

    Raises LayerError for a label or a length out of range.
    """

    type = "CTCLoss"
    bottoms = (2, 4)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.ctc_loss_param
        refuse_fork_options(self, param, ("preprocess_collapse_repeated", "ctc_merge_repeated", "output_delay"))
        self.normaliser = Normaliser(self)
        self.has_warned = False

    def allow_force_backward(self, bottom_index: int) -> bool:
        return bottom_index == 0

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        check_targets(self, bottom)
        param = self.param.ctc_loss_param
        self.T, self.N, self.C = check_scores(self, bottom[0])
        for name, size in (("alphabet_size", self.C), ("time_step", self.T)):
            given = getattr(param, name)
            if given not in (0, size):
                self.fail(f"{name} is {given}, but bottom {bottom[0].name!r} has shape {bottom[0].shape}")
        self.blank = param.blank_index if param.HasField("blank_index") else param.blank_label
        self.blank = self.C - 1 if self.blank == -1 else self.blank
        if not 0 <= self.blank < self.C:
            self.fail(f"the blank is {self.blank}, expected a class from 0 to {self.C - 1}, or -1")
        self.log_y = self.xp.empty((self.T, self.N, self.C), self.dtype)
        top[0].reshape()

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        targets = read_targets(self, bottom, self.blank)
        self.place(targets)
        log_softmax(self.xp, bottom[0].data.reshape(self.log_y.shape), self.log_y)
        self.log_p = self.log_y[:, self.streams[:, None], self.z]
        self.alpha = log_alpha(self.xp, self.log_p, self.closed)
        last = self.alpha[self.last_step, self.streams]
        ends = last[self.streams, self.ends], last[self.streams, self.xp.maximum(self.ends - 1, 0)]
        self.log_likelihood = self.xp.logaddexp(ends[0], self.xp.where(self.ends > 0, ends[1], LOG_ZERO))
        self.divisor = self.normaliser(self.N, 1, self.aligned)
        top[0].data[...] = -(self.xp.where(self.alignable, self.log_likelihood, 0).sum()) / self.divisor

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        for index in range(1, len(bottom)):
            self.no_gradient_for(propagate_down, bottom, index)
        if not propagate_down[0]:
            return
        xp, dx = self.xp, bottom[0].diff.reshape(self.log_y.shape)
        likelihood = xp.where(self.alignable, self.log_likelihood, 0)
        posterior = log_beta(xp, self.log_p, self.closed, self.last_step, self.ends)
        posterior += self.alpha
        posterior -= likelihood[:, None]
        xp.exp(posterior, out=posterior)
        by_class = xp.matmul(posterior.transpose(1, 0, 2), self.same).transpose(1, 0, 2)
        xp.exp(self.log_y, out=dx)
        dx[:, self.streams[:, None], self.z] = xp.exp(self.log_p) - by_class
        counts = (xp.arange(self.T)[:, None] <= self.last_step) & self.alignable
        dx *= (counts * (top[0].diff / self.divisor))[:, :, None]

    def place(self, targets: Targets) -> None:
        """Leave on the device what the labels say: z, the steps s-2 that are closed, which z are the same, the ends."""
        z = np.full((self.N, 2 * targets.labels.shape[1] + 1), self.blank)
        z[:, 1::2] = np.where(targets.labels < 0, self.blank, targets.labels)
        closed = np.full(z.shape, LOG_ZERO)
        closed[:, 2:][(z[:, 2:] != z[:, :-2]) & (z[:, 2:] != self.blank)] = 0
        repeats = ((targets.labels[:, 1:] == targets.labels[:, :-1]) & (targets.labels[:, 1:] >= 0)).sum(axis=1)
        alignable = (targets.lengths + repeats <= targets.steps) & (targets.steps > 0)
        self.aligned = int(alignable.sum())
        if self.aligned < self.N and not self.has_warned:
            self.has_warned = True
            logging.getLogger("recaffe").warning(
                "layer %r: %d of %d streams have more labels than their steps can spell; they are left out",
                self.name, self.N - self.aligned, self.N,
            )  # fmt: skip
        device = self.backend.to_device
        self.z, self.closed = device(z), device(closed.astype(self.dtype))
        self.same = device((z[:, :, None] == z[:, None, :]).astype(self.dtype))
        self.alignable, self.ends = device(alignable), device(2 * targets.lengths)
        self.last_step, self.streams = device(np.maximum(targets.steps, 1) - 1), device(np.arange(self.N))


def log_softmax(xp: Any, x: Any, out: Any) -> None:
    """out = log softmax(x) over the last axis."""
    xp.subtract(x, x.max(axis=-1, keepdims=True), out=out)
    out -= xp.log(xp.exp(out).sum(axis=-1, keepdims=True))


def log_alpha(xp: Any, log_p: Any, closed: Any) -> Any:
    """The logarithm of alpha, T x N x S, from that of y_t(z_s); closed N x S is 0 where a step of two is open."""
    alpha = xp.full(log_p.shape, LOG_ZERO, log_p.dtype)
    alpha[0, :, :2] = log_p[0, :, :2]
    for t in range(1, len(alpha)):
        before, now = alpha[t - 1], alpha[t]
        now[...] = before
        now[:, 1:] = xp.logaddexp(now[:, 1:], before[:, :-1])
        now[:, 2:] = xp.logaddexp(now[:, 2:], before[:, :-2] + closed[:, 2:])
        now += log_p[t]
    return alpha


def log_beta(xp: Any, log_p: Any, closed: Any, last_step: Any, ends: Any) -> Any:
    """The logarithm of beta, T x N x S: of spelling what is left after step t, from z_s at t."""
    beta = xp.full(log_p.shape, LOG_ZERO, log_p.dtype)
    states = xp.arange(log_p.shape[2])
    at_end = (states == ends[:, None]) | (states == ends[:, None] - 1)
    end = xp.where(at_end, 0, LOG_ZERO).astype(log_p.dtype)
    for t in range(len(beta) - 1, -1, -1):
        now = beta[t]
        if t + 1 < len(beta):
            after = beta[t + 1] + log_p[t + 1]
            now[...] = after
            now[:, :-1] = xp.logaddexp(now[:, :-1], after[:, 1:])
            now[:, :-2] = xp.logaddexp(now[:, :-2], after[:, 2:] + closed[:, 2:])
        now[...] = xp.where((last_step == t)[:, None], end, now)
    return beta
