"""CompositeLayer: a type that stands in a prototxt for several layers, which a net then has in its place."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..proto import LayerParameter, NetParameter, ParamSpec
from .backend import current_backend
from .blob import Blob
from .errors import nearest
from .graph import Graph
from .layer import Layer, LayerContext, layer_class, place
from .splits import insert_splits

NOT_CHANGED = ("type", "bottom", "phase", "include", "exclude")  # of a piece: its composite says these


def expand_composites(param: NetParameter, wheres: Sequence[str]) -> tuple[NetParameter, list[str]]:
    """``param`` with the pieces of every composite layer in its place, and the layers' places in the text."""
    result = NetParameter()
    result.CopyFrom(param)
    del result.layer[:]
    result_wheres: list[str] = []
    for layer, where in zip(param.layer, wheres, strict=True):
        composite = composite_layer(layer, LayerContext(current_backend(), param.state.phase, where=where))
        pieces = [layer] if composite is None else composite.expand()
        result.layer.extend(pieces)
        result_wheres += [where if composite is None else place(layer, where)] * len(pieces)
    return result, result_wheres


def composite_layer(param: LayerParameter, context: LayerContext) -> "CompositeLayer | None":
    """The layer that ``param`` describes if it is a composite."""
    found = layer_class(param.type)
    return found(param, context) if found is not None and issubclass(found, CompositeLayer) else None


class CompositeLayer(Layer):
    """A layer that is made of others, its pieces: a net has them in its place.

    A subclass writes ``pieces``, and ``changes`` if its text can say something about single pieces.  What the text
    says of the whole goes to the pieces: the phase, ``propagate_down``, loss weights, and one ``param`` without a
    name, which goes to every parameter.

    On its own, as layer checks have it, the layer runs the net of its pieces.
    """

    def pieces(self) -> Iterable[LayerParameter]:
        """The layers that this one stands for, in order, made by ``piece``."""
        raise NotImplementedError

    def changes(self) -> Iterable[LayerParameter]:
        """What to merge into the pieces of these names (without the name of this layer)."""
        return ()

    def piece(
        self, name: str, layer_type: str, bottoms: Iterable[str], top: str = "", params: Sequence[ParamSpec] = ()
    ) -> LayerParameter:
        """A piece of this layer; its top has its name if none is given.

        ``params``: one for each parameter it will have, or one if it is a composite itself.
        """
        name = f"{self.name}/{name}"
        return LayerParameter(name=name, type=layer_type, bottom=bottoms, top=[top or name], param=params)

    # in a net

    def expand(self, outer: Sequence[LayerParameter] = (), seen: set[str] | None = None) -> list[LayerParameter]:
        """The pieces, and in place of composites among them theirs.

        ``outer``: changes that the layers around this one ask for; ``seen`` takes the names of all pieces on the way.
        """
        self.check_counts(len(self.param.bottom), len(self.param.top))
        seen = set() if seen is None else seen
        own = [self._full_change(change) for change in self.changes()]
        changes = [*own, *outer]
        result = []
        for piece in self._pieces_as_told():
            seen.add(piece.name)
            for change in changes:
                if change.name == piece.name:
                    merge(piece, change)
            context = LayerContext(self.backend, self.phase, where=place(self.param, self.context.where))
            inner = composite_layer(piece, context)
            result += [piece] if inner is None else inner.expand(changes, seen)
        for change in own:
            if change.name not in seen:
                self._fail_unknown(change.name, seen)
        return result

    def _full_change(self, change: LayerParameter) -> LayerParameter:
        for field, _ in change.ListFields():
            if field.name in NOT_CHANGED:
                self.fail(f"piece {change.name!r}: its {field.name} cannot be changed")
        full = LayerParameter()
        full.CopyFrom(change)
        full.name = f"{self.name}/{change.name}"
        return full

    def _fail_unknown(self, name: str, seen: set[str]) -> None:
        start = len(self.name) + 1
        known = sorted(piece[start:] for piece in seen)
        close = nearest(name[start:], known)
        hint = f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(known)}"
        self.fail(f"no piece is named {name[start:]!r}; {hint}")

    def _pieces_as_told(self) -> list[LayerParameter]:
        """The pieces with what the text says of the whole."""
        param = self.param
        if len(param.param) > 1 or any(spec.name for spec in param.param):
            self.fail("expected at most one param, without a name: it goes to the parameters of all pieces")
        self._check_one_each("propagate_down", param.propagate_down, param.bottom)
        self._check_one_each("loss_weight", param.loss_weight, param.top)
        asked = dict(zip(param.bottom, param.propagate_down, strict=False))
        pieces = list(self.pieces())
        for piece in pieces:
            if param.HasField("phase"):
                piece.phase = param.phase
            if not asked.keys().isdisjoint(piece.bottom):
                piece.propagate_down.extend(asked.get(name, True) for name in piece.bottom)
            for own in piece.param:
                spec = ParamSpec()
                for says in (*param.param, own):  # what a piece says of itself counts more
                    spec.MergeFrom(says)
                own.CopyFrom(spec)
        for name, weight in zip(param.top, param.loss_weight, strict=False):
            maker = [piece for piece in pieces if name in piece.top][-1]
            maker.loss_weight.extend(weight if top == name else 0 for top in maker.top)
        return pieces

    def _check_one_each(self, what: str, given: Sequence[Any], names: Sequence[str]) -> None:
        if given and len(given) != len(names):
            self.fail(f"{what} is given {len(given)} time(s), expected none or {len(names)}")

    # on its own

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        named = LayerParameter()
        named.CopyFrom(self.param)
        named.bottom[:] = [f"bottom {j}" for j in range(len(bottom))]
        named.top[:] = [f"top {j}" for j in range(len(top))]
        net = NetParameter(name=self.name, force_backward=True)
        for name, blob in zip(named.bottom, bottom, strict=True):
            net.layer.add(name=name, type="Input", top=[name]).input_param.shape.add(dim=blob.shape)
        self._pieces = type(self)(named, self.context).expand()
        net.layer.extend(self._pieces)
        wheres = [self.context.where] * len(net.layer)
        self._graph = Graph(*insert_splits(net, wheres), self.phase, self.backend, self.dtype)
        self._inputs = [self._graph.blobs[name] for name in named.bottom]
        self._outputs = [self._graph.blobs[name] for name in named.top]
        for layer in self._graph.layers:
            self.blobs += layer.blobs
            self.param_propagate_down += layer.param_propagate_down

    def allow_force_backward(self, bottom_index: int) -> bool:
        read = self._inputs[bottom_index].name
        return any(
            name == read and self._graph.layer_dict[piece.name].allow_force_backward(j)
            for piece in self._pieces
            for j, name in enumerate(piece.bottom)
        )

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        for own, blob in zip(self._inputs, bottom, strict=True):
            own.reshape(*blob.shape)
        self._graph.reshape()
        for own, blob in zip(self._outputs, top, strict=True):
            blob.reshape(*own.shape)

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        for own, blob in zip(self._inputs, bottom, strict=True):
            own.share_data(blob)
        self._graph.forward_from_to(0, len(self._graph.layers) - 1)
        for own, blob in zip(self._outputs, top, strict=True):
            blob.data[...] = own.data

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        hand_on_propagate_down(self.param_propagate_down, self._graph.layers)
        for own, blob in zip(self._outputs, top, strict=True):
            own.diff[...] = blob.diff
        self._graph.backward_from_to(len(self._graph.layers) - 1, 0)
        for own, blob, asked in zip(self._inputs, bottom, propagate_down, strict=True):
            if asked:
                blob.diff[...] = own.diff

    def get_state(self) -> dict[str, Any]:
        states = {layer.name: layer.get_state() for layer in self._graph.layers}
        return {name: state for name, state in states.items() if state}

    def set_state(self, state: Mapping[str, Any]) -> None:
        for name, own in state.items():
            self._graph.layer_dict[name].set_state(own)

    def reset_states(self) -> None:
        for layer in self._graph.layers:
            layer.reset_states()

    def select_streams(self, order: Any) -> None:
        for layer in self._graph.layers:
            layer.select_streams(order)

    def close(self) -> None:
        for layer in self._graph.layers:
            layer.close()


def hand_on_propagate_down(flags: Sequence[bool], layers: Sequence[Layer]) -> None:
    """Let ``layers`` have their own of ``flags``: for each of their parameters in turn, whether it is learnt."""
    first = 0
    for layer in layers:
        layer.param_propagate_down[:] = flags[first : first + len(layer.blobs)]
        first += len(layer.blobs)


def merge(piece: LayerParameter, change: LayerParameter) -> None:
    """Add to ``piece`` what ``change`` says; one param without a name is for every parameter of the piece."""
    rest = LayerParameter()
    rest.CopyFrom(change)
    rest.ClearField("name")
    rest.ClearField("param")
    piece.MergeFrom(rest)
    specs = list(change.param)
    if len(specs) == 1 and not specs[0].name:
        specs *= max(1, len(piece.param))
    for i, spec in enumerate(specs):
        (piece.param[i] if i < len(piece.param) else piece.param.add()).MergeFrom(spec)
