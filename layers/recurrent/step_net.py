"""StepNet: a net for one time step, unrolled: a copy for each step, all with the same parameters."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...framework.blob import Blob
from ...framework.composite import expand_composites
from ...framework.errors import nearest
from ...framework.layer import Layer, LayerContext, create_layer
from ...framework.net_state import filter_layers
from ...framework.splits import insert_splits
from ...proto import LayerParameter, NetParameter, ParamSpec, RecurrentStep

Shapes = Mapping[str, tuple[int, ...]]


@dataclass
class Part:
    """One layer of a copy, with its blobs."""

    layer: Layer
    bottom: list[Blob]
    top: list[Blob]
    shapes: list[tuple[int, ...]] | None = None  # the bottoms' at the last reshape


@dataclass
class Plan:
    """Which layers run backward and to which of their bottoms, and which blobs have a gradient then."""

    propagate_down: list[list[bool] | None]
    reached: set[str]


class StepCopy:
    """The layers and blobs of one time step; ``sinks`` are the blobs that are read from outside."""

    def __init__(self, net: "StepNet", shapes: Shapes, original: "StepCopy | None"):
        context = net.context
        self.blobs: dict[str, Blob] = {}
        for name, shape in shapes.items():
            self.blobs[name] = Blob(shape, context.dtype, context.backend, name)
        self.parts: list[Part] = []
        for i, param in enumerate(net.params):
            first = original.parts[i].layer if original is not None else None
            shared = tuple(first.blobs) if first is not None else ()
            layer = create_layer(param, LayerContext(context.backend, param.phase, context.dtype, "", shared))
            self._check(layer)
            part = Part(layer, [self.blobs[name] for name in param.bottom], self._tops(layer))
            values = [blob.data.copy() for blob in shared]
            layer.layer_setup(part.bottom, part.top)
            for blob, kept in zip(shared, values, strict=True):
                blob.data[...] = kept  # a set-up may write first values into parameters
            if first is not None:
                layer.param_propagate_down = first.param_propagate_down
            self._reshape(part)
            self.parts.append(part)
        self.sinks = [self.blobs[name] for name in net.sinks]

    def _check(self, layer: Layer) -> None:
        param = layer.param
        layer.check_counts(len(param.bottom), len(param.top))
        if any(param.loss_weight):
            layer.fail("a step has no loss of its own; make the blob an output, and weigh it outside")
        if param.propagate_down and len(param.propagate_down) != len(param.bottom):
            layer.fail(f"propagate_down is given {len(param.propagate_down)} time(s) for {len(param.bottom)} bottom(s)")

    def _tops(self, layer: Layer) -> list[Blob]:
        bottoms, names = list(layer.param.bottom), list(layer.param.top)
        for j, name in enumerate(names):
            if name in bottoms:
                if not layer.in_place or bottoms.index(name) != j:
                    layer.fail(f"top {j} {name!r} is also a bottom, but this type does not work in place there")
            elif name in self.blobs:
                layer.fail(f"top blob {name!r} is there already; give it another name")
            else:
                self.blobs[name] = Blob((), layer.dtype, layer.backend, name)
        return [self.blobs[name] for name in names]

    def _reshape(self, part: Part) -> None:
        shapes = [blob.shape for blob in part.bottom]
        if shapes != part.shapes or part.layer.reshape_every_pass:
            part.layer.reshape(part.bottom, part.top)
            part.shapes = shapes

    def reshape(self, shapes: Shapes) -> None:
        """Let the blobs that come from outside have these shapes, and the others follow."""
        for name, shape in shapes.items():
            self.blobs[name].reshape(*shape)
        for part in self.parts:
            self._reshape(part)

    def forward(self) -> None:
        """Run the layers."""
        for part in self.parts:
            self._reshape(part)
            part.layer.run_forward(part.bottom, part.top)

    def backward(self, plan: Plan) -> None:
        """Run those backward that ``plan`` names, from last to first."""
        for part, propagate_down in zip(reversed(self.parts), reversed(plan.propagate_down), strict=True):
            if propagate_down is not None:
                part.layer.backward(part.top, propagate_down, part.bottom)


class StepNet:
    """Layers that read ``sources``, blobs given from outside, and give ``sinks``, blobs read from outside.

    A blob that several read is split, as in any net.  ``copies[0]`` has the parameters, which the other copies share.
    """

    def __init__(
        self,
        layers: Sequence[LayerParameter],
        context: LayerContext,
        shapes: Shapes,
        sinks: Sequence[str],
    ):
        self.context = context
        net = NetParameter(layer=[LayerParameter(name="step", top=list(shapes)), *layers])
        net.state.phase = context.phase  # type: ignore[assignment]
        net.layer.add(name="step", bottom=sinks)  # a reader like the layers, so that splits part them
        net, _ = insert_splits(*expand_composites(*filter_layers(net, [""] * len(net.layer))))
        _, *self.params, last = net.layer
        self.sinks = list(last.bottom)
        for param in self.params:
            if not param.HasField("phase"):
                param.phase = context.phase  # type: ignore[assignment]
        self.copies = [StepCopy(self, shapes, None)]

    @property
    def layers(self) -> list[Layer]:
        """The layers that have the parameters."""
        return [part.layer for part in self.copies[0].parts]

    def param_specs(self) -> list[ParamSpec]:
        """The layers' specs, one for each parameter."""
        specs = []
        for layer in self.layers:
            given = list(layer.param.param)
            if len(given) > len(layer.blobs):
                layer.fail(f"{len(given)} param blocks for {len(layer.blobs)} parameter(s)")
            specs += given + [ParamSpec()] * (len(layer.blobs) - len(given))
        return specs

    def reshape(self, steps: int, shapes: Shapes) -> None:
        """Have so many copies, with these shapes of the sources."""
        for copy in self.copies[:steps]:
            copy.reshape(shapes)
        while len(self.copies) < steps:
            self.copies.append(StepCopy(self, shapes, self.copies[0]))

    def plan(self, wanted: Sequence[str]) -> Plan:
        """How to run backward to the sources that are ``wanted`` and to the parameters that are learnt.

        What has no gradient, such as a word or the place of a maximum, ends the way.
        """
        layers, needs = self.layers, set(wanted)
        below: list[list[bool] | None] = []
        for layer in layers:
            bottoms, asked = layer.param.bottom, layer.param.propagate_down
            flags = [
                name in needs and layer.allow_force_backward(j) and (not asked or asked[j])
                for j, name in enumerate(bottoms)
            ]
            runs = any(flags) or any(layer.param_propagate_down)
            needs = needs | set(layer.param.top) if runs else needs - set(layer.param.top)
            below.append(flags if runs else None)
        reached = set(self.sinks)
        for i in reversed(range(len(below))):
            asked_for, param = below[i], layers[i].param
            if asked_for is None or reached.isdisjoint(param.top):
                below[i] = None
            else:
                reached.update(name for name, asked in zip(param.bottom, asked_for, strict=True) if asked)
        return Plan(below, reached)


def check_step(layer: Layer, step: RecurrentStep) -> None:
    """Raise LayerError unless every name in ``step`` stands for one thing that is there."""
    sources = [*step.input, *step.static, *(state.name for state in step.state)]
    for what, names in (("blob", sources), ("layer", [part.name for part in step.layer])):
        for name, count in Counter(names).items():
            if not name:
                layer.fail(f"step: a {what} has no name")
            if count > 1:
                layer.fail(f"step: {count} {what}s have the name {name!r}; give each its own")
    known = {*sources, *(name for part in step.layer for name in part.top)}
    wanted = [("output", name) for name in step.output]
    wanted += [(f"state {state.name!r}: next", state.next) for state in step.state]
    for what, name in wanted:
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(sorted(known))}"
            layer.fail(f"step: {what} {name!r} is no blob of the step; {hint}")
    for part in step.layer:
        if not set(part.top).isdisjoint(step.static):
            layer.fail(f"step: layer {part.name!r} changes a static input in place; give its top another name")
