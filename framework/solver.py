"""Solver: trains a net, tests it, shows how it goes, and saves snapshots, in Caffe's order."""

import logging
import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ..proto import SolverParameter, read_solver
from .backend import Backend, current_backend
from .clipping import clip_scale, clip_values, gradient_norm
from .diagnostics import debug_backward, debug_forward, first_bad_blob, first_bad_parameter
from .errors import RecaffeError
from .learning_rate import create_learning_rate, current_step
from .net import Net
from .observer import Action, Observer
from .snapshot import SavedSolver, check_prefix, read_snapshot, weights_of, write_snapshot
from .solver_nets import create_test_nets, create_train_net, output_weights
from .updates import create_update

log = logging.getLogger("recaffe")


class Solver:
    """Trains the net of a SolverParameter.

    - ``net``, ``test_nets``: the nets; test nets look at the parameters of ``net``
    - ``iter``: how many updates are made; ``lr``: the learning rate of the next one
    - ``step(n)``: n iterations; ``solve()``: up to max_iter, with what Caffe does around it
    - ``snapshot()``, ``restore(path)``: a run that goes on from a snapshot gives the bits of one that was not stopped
    - ``add_observer``, ``add_callback``, ``set_action_function``: to watch and to stop it

    ``folder`` is where net files are looked for when they are not in the current folder.
    """

    def __init__(self, param: SolverParameter, folder: str | os.PathLike = ".", backend: Backend | None = None):
        self.param = SolverParameter()
        self.param.CopyFrom(param)
        self.backend = backend or current_backend()
        self.update_rule = create_update(param)
        self._check_param()
        if param.random_seed >= 0:
            self.backend.seed(param.random_seed)
        self.net: Net = create_train_net(param, Path(folder), self.backend)
        self.test_nets: list[Net] = create_test_nets(param, Path(folder), self.backend)
        for test_net in self.test_nets:
            test_net.share_trained_layers_with(self.net)
        self.iter = 0
        self.stopped = False
        # for each parameter its history arrays, flat
        self.history = [
            tuple(self.backend.xp.zeros(blob.count, blob.dtype) for _ in range(self.update_rule.histories))
            for blob in self.net.learnable_params
        ]
        self.last_snapshot: Path | None = None
        self._losses: deque[float] = deque(maxlen=param.average_loss)
        self._observers: list[Observer] = []
        self._action: Callable[[], str | None] = lambda: None
        self._snapshot_asked = False
        self._shown_iter, self._shown_time = 0, perf_counter()

    # running

    def solve(self, resume_file: str | os.PathLike | None = None) -> None:
        """Train up to max_iter, from ``resume_file`` if given; then the last snapshot, display and test."""
        log.info("Solving %s", self.net.name)
        log.info("Learning Rate Policy: %s", self.param.lr_policy)
        if self.param.snapshot_after_train:
            check_prefix(self.param.snapshot_prefix)
        if resume_file is not None:
            log.info("Restoring previous solver status from %s", resume_file)
            self.restore(resume_file)
        self._shown_time = perf_counter()
        self.step(self.param.max_iter - self.iter)
        if self.param.snapshot_after_train and not (self.param.snapshot and self.iter % self.param.snapshot == 0):
            self.snapshot()
        if self.stopped:
            log.info("Optimization stopped early.")
            return
        if self._is_due(self.param.display):
            self._losses.append(self._finite(self.net.forward_from_to(0, len(self.net.steps) - 1)))
            log.info("Iteration %d, loss = %g", self.iter, self.smoothed_loss)
        if self._is_due(self.param.test_interval):
            self.test_all()
        log.info("Optimization Done.")

    def step(self, iterations: int) -> None:
        """Make ``iterations`` updates, with the tests, displays and snapshots that fall due."""
        self.stopped = False
        stop = self.iter + iterations
        with self.backend.computing():
            while self.iter < stop and not self.stopped:
                tested = self.iter > 0 or self.param.test_initialization
                if tested and self._is_due(self.param.test_interval) and not self.test_all():
                    break
                self._iterate()
                self._take_requests()
                if self._is_due(self.param.snapshot) or self._snapshot_asked:
                    self.snapshot()

    def _iterate(self) -> None:
        """One update and what is shown of it."""
        displayed = self._is_due(self.param.display)
        self.net.clear_param_diffs()
        for observer in self._observers:
            observer.on_start()
        loss = self._gradients(debug=displayed and self.param.debug_info)
        self._losses.append(loss)
        if displayed:
            self._display()
        for observer in self._observers:
            observer.on_gradients_ready()
        lr = self.lr
        self.apply_update()
        for observer in self._observers:
            observer.on_iteration(self.iter, loss, lr)

    def _gradients(self, debug: bool) -> float:
        """Add up the gradients of iter_size batches; gives their mean loss."""
        total = 0.0
        for _ in range(self.param.iter_size):
            if debug:
                loss = debug_forward(self.net)
                debug_backward(self.net)
            else:
                loss = self.net.forward_backward()
            total += self._finite(loss)
        return total / self.param.iter_size

    def _finite(self, loss: float) -> float:
        """``loss``; raises RecaffeError if it is NaN or infinite."""
        if not math.isfinite(loss):
            raise self._diverged(f"the loss is {loss:g}", first_bad_blob(self.net))
        return loss

    def apply_update(self) -> None:
        """Change the parameters by their gradients: clip, normalize, regularize, update."""
        param, net, rule, backend = self.param, self.net, self.update_rule, self.backend
        lr = self.lr
        displayed = self._is_due(param.display)
        if displayed:
            log.info("Iteration %d, lr = %g", self.iter, lr)
        scale = self._clip(displayed) / param.iter_size
        l2, l1 = (0.0, param.weight_decay) if param.regularization_type == "L1" else (param.weight_decay, 0.0)
        for blob, history, lr_mult, decay_mult in zip(
            net.learnable_params, self.history, net.params_lr, net.params_weight_decay, strict=True
        ):
            if lr_mult:
                w, g = blob.data.reshape(-1), blob.diff.reshape(-1)
                rule.step(backend, w, g, history, self.iter, lr * lr_mult, scale, l2 * decay_mult, l1 * decay_mult)
        self.iter += 1

    def _clip(self, displayed: bool) -> float:
        """Clip the gradients by value; gives what they are to be multiplied by, so that their norm is clipped too."""
        param, params = self.param, self.net.learnable_params
        if displayed and param.log_gradient_norm:
            log.info("Iteration %d, gradient norm = %g", self.iter, gradient_norm(self.backend, params))
        if param.clip_gradients_value:
            clip_values(self.backend, params, param.clip_gradients_value)
        if param.clip_gradients < 0:
            return 1.0
        return clip_scale(gradient_norm(self.backend, params), param.clip_gradients, displayed)

    # testing and showing

    def test_all(self) -> bool:
        """Score every test net; False if a stop was asked for meanwhile: all is then as it was before the tests."""
        before = self._own_state()
        self.stopped = False
        for index in range(len(self.test_nets)):
            if not self.test(index):
                self._set_own_state(before)
                return False
        return True

    def test(self, index: int) -> bool:
        """Score test net number ``index``: the mean of its outputs over test_iter batches; False if stopped."""
        net, batches = self.test_nets[index], self.param.test_iter[index]
        log.info("Iteration %d, Testing net (#%d)", self.iter, index)
        loss = 0.0
        scores: dict[str, np.ndarray] = {}
        for _ in range(batches):
            self._take_requests()
            if self.stopped:
                log.info("Test interrupted.")
                return False
            loss += debug_forward(net) if self.param.debug_info else net.forward_from_to(0, len(net.steps) - 1)
            for name in net.outputs:
                values = self.backend.to_host(net.blobs[name].data).astype(np.float64)
                scores[name] = scores[name] + values if name in scores else values
        scores = {name: total / batches for name, total in scores.items()}
        if self.param.test_compute_loss:
            log.info("Test loss: %g", loss / batches)
        self._log_outputs("Test", net, scores)
        for observer in self._observers:
            observer.on_test(self.iter, index, scores)
        return True

    def _display(self) -> None:
        now = perf_counter()
        seconds = now - self._shown_time
        rate = (self.iter - self._shown_iter) / seconds if seconds else 0.0
        text = "Iteration %d (%g iter/s, %gs/%d iters), loss = %g"
        log.info(text, self.iter, rate, seconds, self.param.display, self.smoothed_loss)
        self._shown_iter, self._shown_time = self.iter, now
        outputs = {name: self.backend.to_host(self.net.blobs[name].data) for name in self.net.outputs}
        self._log_outputs("Train", self.net, outputs)
        for observer in self._observers:
            observer.on_display(self.iter, outputs)

    @staticmethod
    def _log_outputs(kind: str, net: Net, outputs: Mapping[str, np.ndarray]) -> None:
        weights = output_weights(net)
        values = [(name, value) for name, array in outputs.items() for value in array.flat]
        for number, (name, value) in enumerate(values):
            weight = weights.get(name)
            share = f" (* {weight:g} = {weight * value:g} loss)" if weight else ""
            log.info("    %s net output #%d: %s = %g%s", kind, number, name, value, share)

    @property
    def smoothed_loss(self) -> float:
        """The mean loss of the last average_loss iterations."""
        return sum(self._losses) / len(self._losses)

    @cached_property
    def _learning_rate(self) -> Callable[[int], float]:
        return create_learning_rate(self.param)

    @property
    def lr(self) -> float:
        """The learning rate of the next update."""
        return self._learning_rate(self.iter)

    # watching and stopping

    def add_observer(self, observer: Observer) -> None:
        """Let ``observer`` be told of what happens."""
        self._observers.append(observer)

    def add_callback(self, on_start: Callable[[], Any], on_gradients_ready: Callable[[], Any]) -> None:
        """Call two functions in each iteration: at its start, and before its update."""
        observer = Observer()
        observer.on_start, observer.on_gradients_ready = on_start, on_gradients_ready  # type: ignore[method-assign]
        self._observers.append(observer)

    def set_action_function(self, action_function: Callable[[], str | None]) -> None:
        """Ask ``action_function`` after each iteration for an Action until it gives None (signal handlers)."""
        self._action = action_function

    def _take_requests(self) -> None:
        for action in iter(self._action, None):
            if Action(action) is Action.STOP:
                self.stopped = True
            else:
                self._snapshot_asked = True

    # snapshots

    def snapshot(self) -> Path:
        """Write the weights and the state; gives the path of the state.  Refuses parameters that are not finite."""
        bad = first_bad_parameter(self.net)
        if bad:
            raise self._diverged("a snapshot would hold bad values", bad)
        self._snapshot_asked = False
        arrays = [self.backend.to_host(array).reshape(blob.shape) for blob, array in self._histories()]
        saved = SavedSolver(self.iter, "", current_step(self.param, self.iter), arrays, self._own_state())
        hdf5 = self.param.snapshot_format == SolverParameter.HDF5
        weights, state = write_snapshot(self.param.snapshot_prefix, self.net, saved, hdf5, self.param.snapshot_diff)
        self.last_snapshot = state
        for observer in self._observers:
            observer.on_snapshot(self.iter, weights, state)
        return state

    def restore(self, path: str | os.PathLike) -> None:
        """Go on from a .solverstate or .solverstate.h5, written by recaffe or by Caffe."""
        saved = read_snapshot(path)
        arrays = self._check_history(saved, path)
        self.net.copy_from(weights_of(saved, path))
        for (_, target), array in zip(self._histories(), arrays, strict=True):
            target[...] = self.backend.to_device(array)
        self.iter = self._shown_iter = saved.iter
        self.last_snapshot = Path(path)
        if saved.own is None:
            self._losses.clear()
            log.warning(
                "%s was not written by recaffe: data positions, random numbers and carried states start afresh", path
            )
        else:
            self._set_own_state(saved.own)

    def _histories(self) -> Iterator[tuple[Any, Any]]:
        """Parameter blobs with a history array each, in Caffe's order: all first arrays, then all second ones."""
        for kind in range(self.update_rule.histories):
            for blob, history in zip(self.net.learnable_params, self.history, strict=True):
                yield blob, history[kind]

    def _check_history(self, saved: SavedSolver, path: str | os.PathLike) -> list[np.ndarray]:
        """The saved histories as flat arrays; raises RecaffeError unless they are of this solver's type and net."""
        rule = self.update_rule.type
        written_by = saved.own["type"] if saved.own else rule
        if written_by != rule:
            raise RecaffeError(f"{path}: the state is that of a solver of type {written_by!r}; this one is {rule!r}")
        expected = [blob for blob, _ in self._histories()]
        if len(saved.history) != len(expected):
            raise RecaffeError(
                f"{path}: the state has {len(saved.history)} history blobs, expected {len(expected)} for type {rule!r}"
                f" and this net's {len(self.net.learnable_params)} parameters: it is that of another solver or net"
            )
        for i, (array, blob) in enumerate(zip(saved.history, expected, strict=True)):
            if array.size != blob.count:
                raise RecaffeError(
                    f"{path}: history blob {i} has shape {array.shape}, expected {blob.shape} (that of parameter"
                    f" {blob.name!r}): the state is that of another net"
                )
        return [np.asarray(array, blob.dtype).reshape(-1) for array, blob in zip(saved.history, expected, strict=True)]

    def _own_state(self) -> dict[str, Any]:
        """What the next iterations depend on beyond parameters, histories and ``iter``."""
        return {
            "type": self.update_rule.type,
            "random": self.backend.random_state(),
            "train_net": self.net.get_state(),
            "test_nets": [net.get_state() for net in self.test_nets],
            "losses": list(self._losses),
        }

    def _set_own_state(self, state: Mapping[str, Any]) -> None:
        self.net.set_state(state["train_net"])
        for net, net_state in zip(self.test_nets, state["test_nets"], strict=False):
            net.set_state(net_state)
        self._losses = deque(state["losses"], maxlen=self.param.average_loss)
        self.backend.set_random_state(state["random"])

    def close(self) -> None:
        """Release the files and threads of all nets."""
        for net in (self.net, *self.test_nets):
            net.close()

    # errors

    def _check_param(self) -> None:
        param = self.param
        for name, least in (("iter_size", 1), ("average_loss", 1), ("display", 0), ("snapshot", 0), ("max_iter", 0)):
            if getattr(param, name) < least:
                raise RecaffeError(f"solver: {name} is {getattr(param, name)}, expected {least} or more")
        if param.clip_gradients_value < 0:
            raise RecaffeError(f"solver: clip_gradients_value is {param.clip_gradients_value:g}, expected 0 or more")
        if param.regularization_type not in ("L1", "L2"):
            raise RecaffeError(f"solver: unknown regularization_type {param.regularization_type!r}, expected L1 or L2")
        if param.snapshot:
            check_prefix(param.snapshot_prefix)

    def _is_due(self, interval: int) -> bool:
        return interval > 0 and self.iter % interval == 0

    def _diverged(self, what: str, bad: str | None) -> RecaffeError:
        kept = f"the last good snapshot is {self.last_snapshot}" if self.last_snapshot else "there is no snapshot yet"
        return RecaffeError(
            f"iteration {self.iter}: {what}; training stops. First bad values: {bad or 'none but the loss itself'}."
            f" Lower base_lr ({self.param.base_lr:g}), set clip_gradients, or look into the data; {kept}"
        )


def get_solver(source: str | os.PathLike | SolverParameter) -> Solver:
    """The solver of a prototxt or of a message; files it names are looked for in the current folder, then beside it."""
    if isinstance(source, SolverParameter):
        return Solver(source)
    return Solver(load_solver_param(source), Path(source).parent)


def load_solver_param(path: str | os.PathLike) -> SolverParameter:
    """The SolverParameter in a prototxt; without a snapshot_prefix, or with a folder as one, named after the file."""
    param = read_solver(path)
    if not param.snapshot_prefix:
        param.snapshot_prefix = str(Path(path).with_suffix(""))
    elif Path(param.snapshot_prefix).is_dir():
        param.snapshot_prefix = str(Path(param.snapshot_prefix) / Path(path).stem)
    return param
