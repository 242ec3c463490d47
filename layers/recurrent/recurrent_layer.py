"""RecurrentLayer: the stack of levels that RNN, LSTM and GRU share; a cell gives the step."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...framework.blob import Blob
from ...proto import RecurrentParameter
from .cell import Cell
from .level import Level
from .recurrent_bottoms import assign_bottoms
from .run import Run
from .sequence_layer import SequenceLayer

CELL_OPTIONS = ("forget_bias", "nonlinearity", "output_hidden", "reset_after")


class RecurrentLayer(SequenceLayer):
    """A cell run over time, in one direction or both, stacked in levels.

    Shapes
        bottom x: T x N x D...; cont: T x N, 0 where a sequence starts (optional: without it every stream holds
        one sequence a batch); static: N x S..., seen at every step of the first level; with ``expose_hidden`` the
        first states (optional: without them zeros), one bottom each, L x N x H with L = num_layers x directions; with
        ``padding`` a mask T x N or lengths N.
        top: T x N x H (2H for both directions side by side), or with ``last_output`` N x H; with ``expose_hidden`` the
        last states, L x N x H each.
        parameters: level by level, forward before reverse, each as the subclass says.

    T and N may change from pass to pass.  A padded step keeps the state and gives zeros.  The states after a batch are
    where the next one starts (from the first states again where N has changed), unless ``carry_state`` is false; the
    reverse direction always starts from the first states.  Gradients do not pass from batch to batch.

    Options (recurrent_param)
        num_output: H; weight_filler, bias_filler; expose_hidden (false); direction: FORWARD, REVERSE, BIDIRECTIONAL;
        merge: CONCAT or SUM of both directions; num_layers (1), dropout_ratio between them (0); padding: NO_PADDING,
        MASK or LENGTHS; cont_bottom (true): whether bottom 1 is cont where it could be static as well;
        carry_state (true with a cont, unless states are exposed): exposed first states are then read in the first pass
        after ``reset_states()`` alone; last_output (false): the top is the output of each stream's last true step,
        in reverse of its first one.
    """

    bottoms, tops = (1, None), (1, None)
    input_names: ClassVar[tuple[str, str, str]]  # of W_x, b and W_static
    cell_options: ClassVar[tuple[str, ...]] = ()  # the options that this type has beside those of all

    def make_cell(self) -> Cell:
        """The step."""
        raise NotImplementedError

    def make_run(self, *args: Any) -> Run:
        """One level in one direction; the arguments are those of ``Run`` behind the layer."""
        return Run(self, *args)

    def layer_setup(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        param = self.param.recurrent_param
        self.check_options()
        self.check_sequences(bottom[0])
        self.cell = self.make_cell()
        self.assign_blobs(bottom, len(top))
        self.D = math.prod(bottom[0].shape[2:])
        self.S = None if self.roles.static is None else math.prod(bottom[self.roles.static].shape[1:])
        both = param.direction == RecurrentParameter.BIDIRECTIONAL
        self.directions = (False, True) if both else (param.direction == RecurrentParameter.REVERSE,)
        self.levels: list[Level] = []
        for number in range(param.num_layers):
            self.add_level(number)
        self.runs = [run for level in self.levels for run in level.runs]
        self.between = [Blob((), self.dtype, self.backend) for _ in self.levels[1:]]

    def check_options(self) -> None:
        """Raise LayerError for numbers that mean nothing."""
        param = self.param.recurrent_param
        if param.num_output < 1:
            self.fail("recurrent_param needs num_output, 1 or more")
        if param.num_layers < 1:
            self.fail("num_layers is 0, expected 1 or more")
        if not 0 <= param.dropout_ratio < 1:
            self.fail(f"dropout_ratio is {param.dropout_ratio:g}, expected 0 or more and less than 1")
        for name in CELL_OPTIONS:
            if param.HasField(name) and name not in self.cell_options:
                self.fail(f"{name} is an option of other recurrent layers")

    def assign_blobs(self, bottom: Sequence[Blob], tops: int) -> None:
        """Which bottom is which, from their number and the options."""
        param = self.param.recurrent_param
        states = len(self.cell.states) if param.expose_hidden else 0
        padding = int(param.padding != RecurrentParameter.NO_PADDING)
        roles = assign_bottoms(param, states, bottom)
        if roles is None:
            self.fail(
                f"got {len(bottom)} bottom(s), expected x, cont and a static input if wanted,"
                f" {states} first state(s), L x N x H, if wanted (expose_hidden),"
                f" and {padding} mask or lengths (padding)"
            )
        if tops != 1 + states:
            self.fail(f"got {tops} top(s), expected {1 + states}: the output and {states} state(s) (expose_hidden)")
        self.roles = roles
        default = roles.cont is not None and not states
        self.carries = param.carry_state if param.HasField("carry_state") else default

    def add_level(self, number: int) -> None:
        """The runs of one level, with their parameters."""
        param, runs = self.param.recurrent_param, []
        D, S = (self.levels[-1].width, None) if number else (self.D, self.S)
        for reverse in self.directions:
            alone = param.num_layers == len(self.directions) == 1
            prefix = "" if alone else f"{'reverse' if reverse else 'forward'}{number}."
            runs.append(self.make_run(self.cell, reverse, self.input_names, prefix, param.num_output, D, S))
        sums, last_output = param.merge == RecurrentParameter.SUM, param.last_output and number == param.num_layers - 1
        self.levels.append(Level(self, runs, sums, last_output, param.dropout_ratio if number else 0.0))

    def reshape(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        x, roles = bottom[0], self.roles
        self.check_sequences(x)
        if math.prod(x.shape[2:]) != self.D:
            self.fail(f"bottom {x.name!r} has shape {x.shape}, expected T x N x {self.D} values a step")
        if roles.cont is not None:
            self.check_marks(bottom[roles.cont], "cont")
        if roles.static is not None:
            static = bottom[roles.static]
            if static.shape[:1] != (self.N,) or math.prod(static.shape[1:]) != self.S:
                expected = f"N x S = {(self.N, self.S)}"
                self.fail(f"bottom {static.name!r} (static) has shape {static.shape}, expected {expected}")
        states = (len(self.runs), self.N, self.runs[0].H)
        for index, name in zip(roles.states, self.cell.states, strict=False):
            first = bottom[index]
            if first.shape != states:
                expected = f"L x N x H = {states}"
                self.fail(f"bottom {first.name!r} (first {name}) has shape {first.shape}, expected {expected}")
        for last in top[1:]:
            last.reshape(*states)
        self.check_padding(bottom, self.param.recurrent_param.padding)
        for level, y in zip(self.levels, (*self.between, top[0]), strict=True):
            y.reshape(*level.output_shape(self.T, self.N))

    def forward(self, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        roles = self.roles
        cont = None if roles.cont is None else self.marks(bottom[roles.cont], "cont")
        keeps = [self.keep_factors(cont, reverse) for reverse in self.directions]
        self.mask = self.padding_mask(bottom, self.param.recurrent_param.padding)
        self.went_on = [self.goes_on(run) for run in self.runs]
        firsts = iter([self.first_states(index, bottom) for index in range(len(self.runs))])
        x, static = bottom[0], None if roles.static is None else bottom[roles.static]
        for level, y in zip(self.levels, (*self.between, top[0]), strict=True):
            level.forward(x, static, keeps, self.mask, [next(firsts) for _ in level.runs], y)
            x, static = y, None
        for index, run in enumerate(self.runs):
            states = run.last_states()
            for k, last in enumerate(top[1:]):
                last.data[index] = states[k]
            if self.carries and not run.reverse:
                run.carried = states.copy()

    def backward(self, top: Sequence[Blob], propagate_down: Sequence[bool], bottom: Sequence[Blob]) -> None:
        roles = self.roles
        for index, wanted in enumerate(propagate_down):
            if wanted and not roles.has_gradient(index):
                self.fail(f"cont, masks and lengths have no gradient; set propagate_down: false for bottom {index}")
        static, wants_static = None, False
        if roles.static is not None:
            static, wants_static = bottom[roles.static], propagate_down[roles.static]
            if wants_static:
                static.clear_diff()
        d_states = self.xp.zeros((len(self.runs), len(self.cell.states), self.N, self.runs[0].H), self.dtype)
        for k, last in enumerate(top[1:]):
            d_states[:, k] = last.diff
        runs, y = len(self.directions), top[0]
        for number in range(len(self.levels) - 1, 0, -1):
            level, x = self.levels[number], self.between[number - 1]
            part = d_states[number * runs : (number + 1) * runs]
            level.backward(x, None, self.mask, y.diff, part, wants_x=True, wants_static=False)
            y = x
        self.levels[0].backward(bottom[0], static, self.mask, y.diff, d_states[:runs], propagate_down[0], wants_static)
        for number, went_on in enumerate(self.went_on):
            if went_on:
                d_states[number] = 0  # it did not start from the bottoms
        for k, index in enumerate(roles.states):
            if propagate_down[index]:
                bottom[index].diff[...] = d_states[:, k]

    def allow_force_backward(self, bottom_index: int) -> bool:
        return self.roles.has_gradient(bottom_index)

    # states

    def goes_on(self, run: Run) -> bool:
        """Whether ``run`` starts from the states carried."""
        return run.carried is not None and run.carried.shape[1] == self.N

    def first_states(self, index: int, bottom: Sequence[Blob]) -> Any:
        """Where run number ``index`` starts, K x N x H: the states carried, the exposed ones, or None for zeros."""
        if self.went_on[index]:
            return self.runs[index].carried
        if self.roles.states:
            return self.xp.stack([bottom[k].data[index] for k in self.roles.states])
        return None

    def reset_states(self) -> None:
        for run in self.runs:
            run.carried = None

    def looks_back(self) -> bool:
        return True

    def get_state(self) -> dict[str, Any]:
        """The carried states (K x N x H), by the number of the run."""
        return {
            str(index): self.backend.to_host(run.carried)
            for index, run in enumerate(self.runs)
            if run.carried is not None
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        for index, run in enumerate(self.runs):
            carried = state.get(str(index))
            run.carried = None if carried is None else self.backend.to_device(carried)

    def select_streams(self, order: Any) -> None:
        chosen = self.backend.to_device(np.asarray(order))
        for run in self.runs:
            if run.carried is not None:
                run.carried = run.carried[:, chosen]
