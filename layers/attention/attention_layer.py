"""AttentionLayer: what Attention and MultiHeadAttention say alike about their options and what is padded."""

from collections.abc import Sequence
from typing import Any

from ...framework.blob import Blob
from ...proto import TRAIN, RecurrentParameter
from ..recurrent.sequence_layer import SequenceLayer
from .visible import Visible, visible_keys

NO_PADDING, MASK = RecurrentParameter.NO_PADDING, RecurrentParameter.MASK


class AttentionLayer(SequenceLayer):
    """A layer in which queries attend to S keys of N streams each.

    ``padding`` hides keys, by the last bottom: lengths (N), how many of the S keys count, or a mask (S x N), 1 where
    one counts.
    """

    def looks_back(self) -> bool:
        return bool(self.param.attention_param.causal or self.param.attention_param.window)

    def check_options(self, refused: Sequence[str], instead: str) -> None:
        """Raise LayerError for numbers that mean nothing, and for options of another layer type (``instead``)."""
        param = self.param.attention_param
        for name in refused:
            if param.HasField(name):
                self.fail(f"{name} is an option of {instead}, not of {self.type}")
        if not 0 <= param.dropout_ratio < 1:
            self.fail(f"dropout_ratio is {param.dropout_ratio:g}, expected 0 or more and less than 1")
        self.dropout_ratio = float(param.dropout_ratio) if self.phase == TRAIN else 0.0
        self.padded = param.padding != NO_PADDING
        self.unmarked: tuple[tuple[int, ...], Visible] | None = None  # what queries see without marks, for one shape

    def check_bottoms(self, count: int, expected: Sequence[str]) -> None:
        """Raise LayerError unless there is a bottom for each of ``expected``, and for padding."""
        names = [*expected, *(["mask" if self.param.attention_param.padding == MASK else "lengths"] * self.padded)]
        if count != len(names):
            self.fail(f"got {count} bottom(s), expected {len(names)}: {', '.join(names)}")

    def check_keys(self, blob: Blob, size: int | None, what: str) -> int:
        """The S of ``blob``; LayerError unless it is S x N x ``size`` with S of 1 or more."""
        if blob.ndim < 2 or 0 in blob.shape:
            self.fail(f"bottom {blob.name!r} ({what}) has shape {blob.shape}, expected S x N x ... with S of 1 or more")
        if blob.shape[1] != self.N:
            self.fail(f"bottom {blob.name!r} ({what}) has {blob.shape[1]} stream(s), but the queries have {self.N}")
        if size is not None and blob.count != blob.shape[0] * self.N * size:
            self.fail(f"bottom {blob.name!r} ({what}) has shape {blob.shape}, expected S x N x {size} values")
        return blob.shape[0]

    def check_key_padding(self, bottom: Sequence[Blob], S: int) -> None:
        """Raise LayerError unless the last bottom has the shape of a mask or of lengths, as ``padding`` says."""
        self.check_padding(bottom, self.param.attention_param.padding, S, "S")

    def visible(self, S: int, offset: int = 0, segments: tuple[Any, Any] | None = None, **padding: Any) -> Visible:
        """Which of S keys each query sees, by the options, ``segments`` and ``padding`` (see ``visible_keys``)."""
        param, shape = self.param.attention_param, (self.T, self.N, S, offset)
        marked = segments is not None or bool(padding)
        if not marked and self.unmarked is not None and self.unmarked[0] == shape:
            return self.unmarked[1]
        seen = visible_keys(self.xp, *shape, param.causal, param.window, segments, **padding)
        if not marked:
            self.unmarked = shape, seen
        return seen

    def key_padding(self, blob: Blob, S: int) -> dict[str, Any]:
        """``lengths`` (N, int32) or ``mask`` (S x N) from the last bottom; nothing without padding."""
        if not self.padded:
            return {}
        if self.param.attention_param.padding == MASK:
            return {"mask": self.marks(blob, "mask")}
        return {"lengths": self.lengths(blob, S, "S").astype(self.xp.int32)}
