"""RecurrentBottoms: which bottom of a recurrent layer is which."""

from dataclasses import dataclass

from ...proto import RecurrentParameter


@dataclass(frozen=True)
class RecurrentBottoms:
    """Where the bottoms behind x stand; None or an empty range for those that are not there.

    The order is x, cont, a static input, the first states (``expose_hidden``), a mask or lengths (``padding``).
    """

    cont: int | None
    static: int | None
    states: range

    def has_gradient(self, index: int) -> bool:
        """Whether bottom ``index`` is x, static or a first state, not a mark."""
        return index == 0 or index == self.static or index in self.states


def assign_bottoms(param: RecurrentParameter, states: int, count: int) -> RecurrentBottoms | None:
    """The places of ``count`` bottoms, ``states`` of them first states; None if there are too few or too many."""
    padding = int(param.padding != RecurrentParameter.NO_PADDING)
    free = count - 1 - states - padding  # cont and static
    has_cont = param.cont_bottom and free > 0
    has_static = free - has_cont == 1
    if free != has_cont + has_static:
        return None
    first_state = 1 + has_cont + has_static
    return RecurrentBottoms(
        cont=1 if has_cont else None,
        static=1 + has_cont if has_static else None,
        states=range(first_state, first_state + states),
    )
