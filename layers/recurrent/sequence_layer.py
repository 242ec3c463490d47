"""SequenceLayer: what T x N data, cont and padding mean, said once for every layer over sequences."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...framework.layer import Layer
from ...proto import RecurrentParameter


class SequenceLayer(Layer):
    """A layer whose bottom 0 is x (T x N x ...): T steps of N streams, time first.

    cont (T x N) is 0 where a sequence starts and 1 where it goes on: nothing passes from step t-1 to step t of a
    stream where cont_t is 0.  Seen from the last step to the first, nothing passes from t+1 to t where cont_{t+1} is 0.

    mask (T x N) is 1 at true steps and 0 at padded ones; lengths (N) says the same by the number of true steps.
    """

    def check_sequences(self, x: Blob) -> None:
        """Take T and N from ``x``; raise LayerError unless it has these axes, with something in them."""
        if x.ndim < 2 or 0 in x.shape:
            self.fail(f"bottom {x.name!r} has shape {x.shape}, expected T x N x ... with each size 1 or more")
        self.T, self.N = x.shape[:2]

    def check_marks(self, blob: Blob, what: str) -> None:
        """Raise LayerError unless ``blob`` is T x N."""
        if blob.shape != (self.T, self.N):
            self.fail(f"bottom {blob.name!r} ({what}) has shape {blob.shape}, expected T x N = {(self.T, self.N)}")

    def marks(self, blob: Blob, what: str) -> Any:
        """The zeros and ones of ``blob``; LayerError for any other value."""
        xp, values = self.xp, blob.data
        wrong = values != (values != 0)
        if xp.count_nonzero(wrong):
            t, n = (int(index) for index in xp.argwhere(wrong)[0])
            self.fail(f"bottom {blob.name!r} ({what}) is {float(values[t, n]):g} at [{t}, {n}], expected 0 or 1")
        return values

    def keep_factors(self, cont: Any, reverse: bool) -> Any:
        """What the state that a step reads is multiplied with (T x N): 0 where a sequence starts.

        In reverse a sequence starts where the next step's cont is 0; the last step reads the first state as it is.
        Without cont (None) every step reads the state as it is: None.
        """
        if cont is None or not reverse:
            return cont
        keep = self.xp.ones((self.T, self.N), self.dtype)
        keep[:-1] = cont[1:]
        return keep

    def check_padding(self, bottom: Sequence[Blob], padding: int, steps: int | None = None, axis: str = "T") -> None:
        """Raise LayerError unless the last bottom has the shape of a mask or of lengths, if ``padding`` asks for it.

        ``steps``: how many there are, where it is not T; ``axis``: the letter for them in messages.
        """
        blob, expected = bottom[-1], (self.T if steps is None else steps, self.N)
        if padding == RecurrentParameter.MASK and blob.shape != expected:
            self.fail(f"bottom {blob.name!r} (mask) has shape {blob.shape}, expected {axis} x N = {expected}")
        if padding == RecurrentParameter.LENGTHS and blob.shape != (self.N,):
            self.fail(f"bottom {blob.name!r} (lengths) has shape {blob.shape}, expected N = {(self.N,)}")

    def padding_mask(self, bottom: Sequence[Blob], padding: int, steps: int | None = None, axis: str = "T") -> Any:
        """T x N, 1 at true steps, from the last bottom, a mask or lengths; None without padding.  See check_padding."""
        if padding == RecurrentParameter.NO_PADDING:
            return None
        blob = bottom[-1]
        if padding == RecurrentParameter.MASK:
            return self.marks(blob, "mask")
        steps = self.T if steps is None else steps
        numbers = self.xp.arange(steps, dtype=self.dtype)
        return (numbers[:, None] < self.lengths(blob, steps, axis)).astype(self.dtype)

    def lengths(self, blob: Blob, steps: int, axis: str) -> Any:
        """The lengths in ``blob``; LayerError for any that is no whole number from 0 to ``steps``."""
        xp, lengths = self.xp, blob.data
        wrong = (lengths < 0) | (lengths > steps) | (lengths != xp.floor(lengths))
        if bool(wrong.any()):
            n = int(xp.argmax(wrong))
            self.fail(
                f"bottom {blob.name!r} (lengths) is {float(lengths[n]):g} at [{n}],"
                f" expected a whole number from 0 to {axis} = {steps}"
            )
        return lengths
