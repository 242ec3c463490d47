"""RecurrentBottoms: which bottom of a recurrent layer is which."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...framework.blob import Blob
from ...proto import RecurrentParameter


@dataclass(frozen=True)
class RecurrentBottoms:
    """Where the bottoms behind x stand; None or an empty range for those that are not there.

    The order is x, cont, a static input, the first states (with ``expose_hidden``, if wanted), a mask or lengths
    (``padding``).
    """

    cont: int | None
    static: int | None
    states: range

    def has_gradient(self, index: int) -> bool:
        """Whether bottom ``index`` is x, static or a first state, not a mark."""
        return index == 0 or index == self.static or index in self.states


def assign_bottoms(param: RecurrentParameter, states: int, bottoms: Sequence[Blob]) -> RecurrentBottoms | None:
    """The places of ``bottoms``; None if there are too few or too many.

    The last ones before a mask or lengths are the first states, ``states`` of them, if each has three axes.
    """
    end = len(bottoms) - (param.padding != RecurrentParameter.NO_PADDING)
    if end <= states or any(blob.ndim != 3 for blob in bottoms[end - states : end]):
        states = 0
    free = end - 1 - states  # cont and static
    has_cont = param.cont_bottom and free > 0
    has_static = free - has_cont == 1
    if free != has_cont + has_static:
        return None
    return RecurrentBottoms(
        cont=1 if has_cont else None,
        static=1 + has_cont if has_static else None,
        states=range(end - states, end),
    )
