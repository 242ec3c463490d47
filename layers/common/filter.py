"""Filter."""

from collections.abc import Sequence

from ...framework.blob import Blob
from ...framework.layer import Layer, register


@register
class Filter(Layer):
    """Each top has the items of its bottom whose selector is not 0.

    The diff of a bottom is that of the top at the items kept, and 0 at the others; the selector has none.

    Shapes
        bottoms x_i: N x ...; last bottom, the selector: N
        tops y_i: as x_i with the items kept, one top for each x_i

    The tops' shapes depend on the selector's values; when the net is built they have all N items.
    """

    type = "Filter"
    bottoms, tops = (2, None), (1, None)
    reshape_every_pass = True

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        if len(top) != len(bottom) - 1:
            self.fail(f"expected a top for each bottom but the last, {len(bottom) - 1}, got {len(top)}")
        self.selector_index = len(bottom) - 1
        self.kept = self.xp.arange(bottom[-1].count)
        self.is_built = False

    def allow_force_backward(self, bottom_index: int) -> bool:
        return bottom_index != self.selector_index

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        *data, selector = bottom
        for blob in data:
            if blob.shape[:1] != (selector.count,):
                self.fail(
                    f"bottom {blob.name!r} has shape {blob.shape}, expected {selector.count} items, as the selector has"
                )
        if self.is_built:
            self.kept = self.xp.flatnonzero(selector.data)
        self.is_built = True
        for blob, out in zip(data, top, strict=True):
            out.reshape(self.kept.size, *blob.shape[1:])

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        for blob, out in zip(bottom[:-1], top, strict=True):
            out.data[...] = blob.data[self.kept]

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        if propagate_down[-1]:
            self.fail(f"bottom {bottom[-1].name!r} selects and has no gradient")
        for blob, out, wanted in zip(bottom[:-1], top, propagate_down[:-1], strict=True):
            if wanted:
                blob.diff.fill(0)
                blob.diff[self.kept] = out.diff
