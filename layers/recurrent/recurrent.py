"""Recurrent: the step is a net written in the prototxt."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...framework.blob import Blob
from ...framework.composite import hand_on_propagate_down
from ...framework.errors import RecaffeError
from ...framework.layer import LayerContext, register
from ...proto import RecurrentParameter, RecurrentState
from .sequence_layer import SequenceLayer
from .step_net import Plan, StepCopy, StepNet, check_step
from .step_state import State

FORWARD, REVERSE = RecurrentParameter.FORWARD, RecurrentParameter.REVERSE
OWN_OPTIONS = {"direction", "padding", "cont_bottom", "carry_state", "step"}


@register
class Recurrent(SequenceLayer):
    """A recurrent net whose step is written as a net: (outputs_t, s_t) = step(x_t, s', static).

    s' = cont_t s_{t-1} + (1 - cont_t) s_0, for every state s; all steps have the same parameters.  The gradients
    are those of the net unrolled over time: Werbos, "Backpropagation through time", Proceedings of the IEEE, 1990.

    Shapes
        bottoms, in this order: one T x N x ... for each ``input``; cont T x N (optional: without it every stream holds
        one sequence a batch); one of any shape for each ``static``; N x shape for each state that starts from a
        BOTTOM; with ``padding`` a mask T x N or lengths N.
        tops: T x ... for each ``output``, ... being the blob's shape in one step; N x shape for each state with
        ``last_top``.
        parameters: those of the step's layers, in order; then ``shape`` for each state whose start is LEARNED.

    T and N may change from pass to pass.  The states after a batch are where the next one starts; those that start
    from a bottom only where ``carry_state`` is given, and then the bottom is read in the first pass after
    ``reset_states()`` alone.  Gradients do not pass from batch to batch.  A padded step keeps the states and gives
    zeros.
    docs/step_nets.md shows an LSTM written so.

    Options (recurrent_param)
        step: ``layer``, ``input``, ``static``, ``output`` and ``state`` { name, next, shape, start: VALUE, LEARNED or
        BOTTOM, value, filler, param, last_top }; direction: FORWARD or REVERSE; padding: NO_PADDING, MASK or LENGTHS;
        cont_bottom (true); carry_state (true with a cont).
    """

    type = "Recurrent"
    bottoms, tops = (1, None), (1, None)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.check_options()
        step = self.param.recurrent_param.step
        self.states = [State(param) for param in step.state]
        self.assign_bottoms(len(bottom))
        self.assign_tops(len(top))
        check_step(self, step)
        self.check_sequences(bottom[0])
        shapes = self.source_shapes(bottom)
        context = LayerContext(self.backend, self.phase, self.dtype)
        with self.told():
            self.net = StepNet(step.layer, context, shapes, [*step.output, *(state.next for state in step.state)])
            specs = self.net.param_specs()
        for layer in self.net.layers:
            self.blobs += layer.blobs
            self.param_propagate_down += layer.param_propagate_down
        for state in self.states:
            if state.param.start == RecurrentState.LEARNED:
                state.parameter = len(self.blobs)
                self.add_blob(state.name, state.shape, state.param.filler)
                specs.append(state.param.param)
        if not self.param.param and any(spec.ListFields() for spec in specs):
            self.param.param.extend(specs)  # the net shares, learns and weighs parameters by these

    def check_options(self) -> None:
        """Raise LayerError unless there is a step, and options that mean something here."""
        param = self.param.recurrent_param
        for field, _ in param.ListFields():
            if field.name not in OWN_OPTIONS:
                self.fail(f"{field.name} is an option of other recurrent layers; here the step says it all")
        if param.direction not in (FORWARD, REVERSE):
            self.fail("direction is BIDIRECTIONAL, expected FORWARD or REVERSE; put two layers side by side")
        for name in ("input", "output", "layer"):
            if not getattr(param.step, name):
                self.fail(f"recurrent_param needs a step with at least one {name}")

    def assign_bottoms(self, bottoms: int) -> None:
        """Which bottom is which, from their number and the options."""
        param = self.param.recurrent_param
        step, padding = param.step, int(param.padding != RecurrentParameter.NO_PADDING)
        from_bottom = [state for state in self.states if state.param.start == RecurrentState.BOTTOM]
        without_cont = len(step.input) + len(step.static) + len(from_bottom) + padding
        has_cont = bottoms == without_cont + 1 and param.cont_bottom
        if bottoms != without_cont + has_cont:
            self.fail(
                f"got {bottoms} bottom(s), expected {without_cont}{' and cont' if param.cont_bottom else ''}:"
                f" {len(step.input)} input(s), {len(step.static)} static, {len(from_bottom)} first state(s) and"
                f" {padding} mask or lengths"
            )
        self.cont = len(step.input) if has_cont else None
        self.first_static = len(step.input) + has_cont
        for k, state in enumerate(from_bottom):
            state.bottom = self.first_static + len(step.static) + k
        self.carries = param.carry_state if param.HasField("carry_state") else has_cont

    def assign_tops(self, tops: int) -> None:
        """Which top is which."""
        outputs = len(self.param.recurrent_param.step.output)
        shown = [state for state in self.states if state.param.last_top]
        if tops != outputs + len(shown):
            self.fail(f"got {tops} top(s), expected {outputs} output(s) and {len(shown)} state(s) with last_top")
        for k, state in enumerate(shown):
            state.top = outputs + k

    def source_shapes(self, bottom: Sequence[Blob]) -> dict[str, tuple[int, ...]]:
        """The shape, in one step, of every blob that the step gets from outside."""
        step = self.param.recurrent_param.step
        shapes = {}
        for name, blob in zip(step.input, bottom, strict=False):
            if blob.shape[:2] != (self.T, self.N):
                self.fail(f"bottom {blob.name!r} has shape {blob.shape}, expected {self.T} x {self.N} x ...")
            shapes[name] = blob.shape[1:]
        for name, blob in zip(step.static, bottom[self.first_static :], strict=False):
            shapes[name] = blob.shape
        shapes |= {state.name: state.take_shape(self, self.N, bottom) for state in self.states}
        return shapes

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        self.check_sequences(bottom[0])
        if self.cont is not None:
            self.check_marks(bottom[self.cont], "cont")
        padding = self.param.recurrent_param.padding
        self.check_padding(bottom, padding)
        shapes = self.source_shapes(bottom)
        with self.told():
            self.net.reshape(self.T, shapes)
        outputs, nexts = self.split_sinks(self.net.copies[0])
        for name, sink, y in zip(self.param.recurrent_param.step.output, outputs, top, strict=False):
            if padding and sink.shape[:1] != (self.N,):
                self.fail(f"step: output {name!r} has shape {sink.shape}, expected {self.N} x ... (padding)")
            y.reshape(self.T, *sink.shape)
        for state, sink in zip(self.states, nexts, strict=True):
            expected = (self.N, *state.shape)
            if sink.shape != expected:
                self.fail(
                    f"step: state {state.name!r} has shape {expected}, but its next, {state.param.next!r},"
                    f" has {sink.shape}"
                )
            if state.top is not None:
                top[state.top].reshape(*expected)

    def split_sinks(self, copy: StepCopy) -> tuple[list[Blob], list[Blob]]:
        """The blobs of the outputs and those of the next states."""
        outputs = len(self.param.recurrent_param.step.output)
        return copy.sinks[:outputs], copy.sinks[outputs:]

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.recurrent_param
        cont = None if self.cont is None else self.marks(bottom[self.cont], "cont")
        self.keeps = self.keep_factors(cont, param.direction == REVERSE)
        self.mask = self.padding_mask(bottom, param.padding)
        values = [state.forward(self, self.N, bottom) for state in self.states]
        for t in self.times():
            copy = self.net.copies[t]
            for name, x in zip(param.step.input, bottom, strict=False):
                copy.blobs[name].data[...] = x.data[t]
            for name, static in zip(param.step.static, bottom[self.first_static :], strict=False):
                copy.blobs[name].share_data(static)
            before = [self.kept(t, state, value) for state, value in zip(self.states, values, strict=True)]
            for state, value in zip(self.states, before, strict=True):
                copy.blobs[state.name].data[...] = value
            with self.told():
                copy.forward()
            outputs, nexts = self.split_sinks(copy)
            for sink, y in zip(outputs, top, strict=False):
                y.data[t] = self.masked(t, sink.data)
            values = [
                sink.data if self.mask is None else self.masked(t, sink.data) + self.padded(t, value)
                for sink, value in zip(nexts, before, strict=True)
            ]
        for state, value in zip(self.states, values, strict=True):
            if state.top is not None:
                top[state.top].data[...] = value
            carries = self.carries if state.bottom is None else param.carry_state
            if carries and param.direction == FORWARD:
                state.carried = value.copy()

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        for j, asked in enumerate(propagate_down):
            if asked and not self.allow_force_backward(j):
                self.fail(f"cont, masks and lengths have no gradient; set propagate_down: false for bottom {j}")
        step, plan = self.param.recurrent_param.step, self.plan(propagate_down)
        inputs = [(name, bottom[j]) for j, name in enumerate(step.input) if propagate_down[j]]
        statics = [(name, self.first_static + k) for k, name in enumerate(step.static)]
        static = [(name, bottom[j]) for name, j in statics if propagate_down[j]]
        for _, blob in static:
            blob.diff.fill(0)
        d_values = [
            self.xp.zeros((self.N, *state.shape), self.dtype) if state.top is None else top[state.top].diff
            for state in self.states
        ]
        d_first: list[Any] = [None if state.parameter is None else 0 for state in self.states]
        for t in reversed(self.times()):
            copy = self.net.copies[t]
            outputs, nexts = self.split_sinks(copy)
            for sink, y in zip(outputs, top, strict=False):
                sink.diff[...] = self.masked(t, y.diff[t])
            for sink, d in zip(nexts, d_values, strict=True):
                sink.diff[...] = self.masked(t, d)
            with self.told():
                copy.backward(plan)
            for k, state in enumerate(self.states):
                d = copy.blobs[state.name].diff if state.name in plan.reached else self.xp.zeros_like(d_values[k])
                if self.mask is not None:
                    d = d + self.padded(t, d_values[k])
                d_values[k] = d if self.keeps is None else along(self.keeps[t], d) * d
                if d_first[k] is not None and self.keeps is not None:
                    d_first[k] += (d - d_values[k]).sum(axis=0)
            for name, blob in inputs:
                blob.diff[t] = copy.blobs[name].diff if name in plan.reached else 0
            for name, blob in static:
                if name in plan.reached:
                    blob.diff[...] += copy.blobs[name].diff
        for state, d, d_start in zip(self.states, d_values, d_first, strict=True):
            state.backward(self, d, d_start, propagate_down, bottom)

    def plan(self, propagate_down: Sequence[bool]) -> Plan:
        """How each step runs backward."""
        step = self.param.recurrent_param.step
        hand_on_propagate_down(self.param_propagate_down, self.net.layers)
        names = [*zip(step.input, propagate_down, strict=False)]
        names += zip(step.static, propagate_down[self.first_static :], strict=False)
        return self.net.plan([name for name, asked in names if asked] + [state.name for state in self.states])

    # states

    def times(self) -> range:
        """The steps in the order in which they run."""
        return range(self.T) if self.param.recurrent_param.direction == FORWARD else range(self.T - 1, -1, -1)

    def kept(self, t: int, state: State, value: Any) -> Any:
        """The state before step ``t``: what the last step gave, or the first values where a sequence starts."""
        if self.keeps is None:
            return value
        keep = along(self.keeps[t], value)
        return keep * value + (1 - keep) * state.first

    def masked(self, t: int, value: Any) -> Any:
        """``value``, zero where step ``t`` is padding."""
        return value if self.mask is None else along(self.mask[t], value) * value

    def padded(self, t: int, value: Any) -> Any:
        """``value`` where step ``t`` is padding, else zero."""
        return (1 - along(self.mask[t], value)) * value

    def allow_force_backward(self, bottom_index: int) -> bool:
        statics = len(self.param.recurrent_param.step.static)
        is_static = self.first_static <= bottom_index < self.first_static + statics
        is_state = any(state.bottom == bottom_index for state in self.states)
        return bottom_index < len(self.param.recurrent_param.step.input) or is_static or is_state

    def reset_states(self) -> None:
        for state in self.states:
            state.carried = None

    def looks_back(self) -> bool:
        return bool(self.states)

    def get_state(self) -> dict[str, Any]:
        carried = [state for state in self.states if state.carried is not None]
        return {state.name: self.backend.to_host(state.carried) for state in carried}

    def set_state(self, state: Mapping[str, Any]) -> None:
        for own in self.states:
            own.carried = self.backend.to_device(state[own.name]) if own.name in state else None

    def select_streams(self, order: Any) -> None:
        chosen = self.backend.to_device(np.asarray(order))
        for state in self.states:
            if state.carried is not None:
                state.carried = state.carried[chosen]

    def close(self) -> None:
        for copy in self.net.copies:
            for part in copy.parts:
                part.layer.close()

    @contextmanager
    def told(self) -> Iterator[None]:
        """Let errors of the step's layers name this layer and its place first."""
        try:
            yield
        except RecaffeError as error:
            self.fail(f"step: {error}")


def along(marks: Any, values: Any) -> Any:
    """One mark a stream (N), to be multiplied with N x ... values."""
    return marks.reshape(-1, *[1] * (values.ndim - 1))
