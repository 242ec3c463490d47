"""Each check of layer_checks fails on a layer with the fault it looks for, and passes a right layer."""

import unittest

import numpy as np
import pytest
import recaffe
from recaffe.framework import layer_checks
from recaffe.framework.fusable import fusable
from recaffe.framework.layer_case import LayerCase, PlainCpuBackend
from recaffe.framework.layer_checks import CHECKS, check_layer


@fusable
def scale_for_checks(backend, x, w, y):
    """y = w x."""
    backend.xp.multiply(x, w, out=y)


class RightLayer(recaffe.Layer):
    """y = w x + n, with the number n of forward passes before."""

    type = "RightLayer"
    bottoms, tops = (1, 1), (1, 1)
    in_place = True
    passes = 0

    def layer_setup(self, bottom, top):
        self.w = self.add_blob("w", (1,))

    def reshape(self, bottom, top):
        top[0].reshape_like(bottom[0])
        self.x = self.xp.empty(bottom[0].shape, self.dtype)

    def forward(self, bottom, top):
        self.x[...] = bottom[0].data
        scale_for_checks(self.backend, self.x, self.w.data, top[0].data)
        top[0].data[...] += self.passes
        self.passes += 1

    def backward(self, top, propagate_down, bottom):
        if self.param_propagate_down[0]:
            self.w.diff[...] += (self.x * top[0].diff).sum()
        if propagate_down[0]:
            self.xp.multiply(top[0].diff, self.w.data, out=bottom[0].diff)

    def get_state(self):
        return {"passes": self.passes}

    def set_state(self, state):
        self.passes = state["passes"]


FAULTY = {}


def fails(check):
    """Class decorator: the layer has the fault that ``check`` looks for."""

    def note(layer):
        layer.type = layer.__name__
        FAULTY[check, layer.__name__] = layer
        return layer

    return note


@fails("check_numeric_gradient")
class WrongGradient(RightLayer):
    def backward(self, top, propagate_down, bottom):
        super().backward(top, propagate_down, bottom)
        if propagate_down[0]:
            bottom[0].diff[...] *= 1.00001


@fails("check_numeric_gradient")
class WrongParameterGradient(RightLayer):
    def backward(self, top, propagate_down, bottom):
        super().backward(top, propagate_down, bottom)
        self.w.diff[...] += 1


@fails("check_bottom_diffs_overwritten")
class AddsToBottomDiff(RightLayer):
    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] += top[0].diff * self.w.data


@fails("check_parameter_diffs_added")
class OverwritesParameterDiff(RightLayer):
    def backward(self, top, propagate_down, bottom):
        self.w.diff[...] = (self.x * top[0].diff).sum()


@fails("check_propagate_down_off")
class IgnoresPropagateDown(RightLayer):
    def backward(self, top, propagate_down, bottom):
        super().backward(top, [True], bottom)


@fails("check_parameters_off")
class IgnoresParamPropagateDown(RightLayer):
    def backward(self, top, propagate_down, bottom):
        self.param_propagate_down[0] = True
        super().backward(top, propagate_down, bottom)


@fails("check_inputs_untouched")
class WritesIntoItsBottom(RightLayer):
    def forward(self, bottom, top):
        super().forward(bottom, top)
        bottom[0].data[...] *= 2


@fails("check_inputs_untouched")
class WritesIntoItsParameter(RightLayer):
    def backward(self, top, propagate_down, bottom):
        super().backward(top, propagate_down, bottom)
        self.w.data[...] *= 2


@fails("check_reshape")
class RemembersTheFirstShape(RightLayer):
    def layer_setup(self, bottom, top):
        super().layer_setup(bottom, top)
        self.count = bottom[0].count

    def forward(self, bottom, top):
        super().forward(bottom, top)
        top[0].data[...] /= self.count


@fails("check_repeatable")
class DrawsItsOwnNumbers(RightLayer):
    numbers = np.random.default_rng()

    def forward(self, bottom, top):
        super().forward(bottom, top)
        top[0].data[...] *= float(self.numbers.random())


@fails("check_state_resumes")
@fails("check_repeatable")
class HidesItsState(RightLayer):
    def get_state(self):
        return {}

    def set_state(self, state):
        pass


@fails("check_in_place")
class ReadsItsBottomInBackward(RightLayer):
    def backward(self, top, propagate_down, bottom):
        self.w.diff[...] += (bottom[0].data * top[0].diff).sum()
        self.xp.multiply(top[0].diff, self.w.data, out=bottom[0].diff)


@fails("check_float32")
class Rounds(RightLayer):
    def forward(self, bottom, top):
        super().forward(bottom, top)
        if self.dtype == np.float32:
            top[0].data[...] = top[0].data.astype(np.float16)


@fails("check_nan_seen")
class HidesNaN(RightLayer):
    def forward(self, bottom, top):
        super().forward(bottom, top)
        top[0].data[...] = self.xp.nan_to_num(top[0].data)


@fails("check_strict")
class UsesNumPy(RightLayer):
    def forward(self, bottom, top):
        super().forward(bottom, top)
        top[0].data[...] = np.abs(top[0].data)


@fails("check_strict")
class MixesHostArrays(RightLayer):
    def forward(self, bottom, top):
        super().forward(bottom, top)
        top[0].data[...] += np.zeros(3)


@fails("check_strict")
class MakesDoubles(RightLayer):
    def forward(self, bottom, top):
        super().forward(bottom, top)
        top[0].data[...] += self.xp.zeros(top[0].shape)


def case(layer, **options):
    return LayerCase(layer, [(4, 2, 3)], **options)


@pytest.mark.parametrize("check", CHECKS)
def test_a_right_layer_passes(check):
    CHECKS[check](case(RightLayer))


@pytest.mark.parametrize(("check", "layer"), FAULTY)
def test_a_faulty_layer_fails(check, layer):
    with pytest.raises(AssertionError, match=f"layer '.*' \\(type '{layer}'\\): "):
        CHECKS[check](case(FAULTY[check, layer]))


def test_a_wrong_fused_kernel_fails(monkeypatch):
    backend = PlainCpuBackend()
    backend.fused = {"scale_for_checks": lambda backend, x, w, y: np.multiply(x, w * 1.001, out=y)}
    monkeypatch.setattr(layer_checks, "fused_cpu", lambda: backend)
    with pytest.raises(AssertionError, match="top 0 on cpu in float32 against plain NumPy: 24 of 24 values are wrong"):
        CHECKS["check_fused"](case(RightLayer))


def test_check_layer_runs_all_checks_and_tells_which_it_could_not(monkeypatch):
    def no_gpu():
        raise unittest.SkipTest("no GPU here")

    ran = []
    for name in CHECKS:
        monkeypatch.setitem(CHECKS, name, lambda case, name=name: ran.append(name))
    monkeypatch.setitem(CHECKS, "check_gpu", lambda case: no_gpu())
    with pytest.warns(UserWarning, match="layer 'right_layer' .*: check_gpu did not run: no GPU here"):
        check_layer(RightLayer, [(4, 3)], skip=["check_nan_seen"])
    assert ran == [name for name in CHECKS if name not in ("check_gpu", "check_nan_seen")]


def test_check_layer_names_the_check_that_failed():
    with pytest.raises(AssertionError, match=r"expected .*, got") as error:
        check_layer(AddsToBottomDiff, [(4, 3)], skip=["check_numeric_gradient"])
    assert str(error.value).startswith(
        "check_bottom_diffs_overwritten: layer 'adds_to_bottom_diff' (type 'AddsToBottomDiff'):"
        " diff of bottom 0, filled with NaN"
    )


def test_check_layer_notes_the_check_in_which_a_layer_broke():
    class Breaks(RightLayer):
        type = "Breaks"

        def backward(self, top, propagate_down, bottom):
            raise KeyError("broken")

    with pytest.raises(KeyError, match="broken") as error:
        check_layer(Breaks, [(4, 3)])
    assert error.value.__notes__ == ["in check_numeric_gradient of recaffe.framework.layer_checks"]


def test_an_unknown_check_to_skip_is_an_error():
    with pytest.raises(ValueError, match="check_nothing"):
        check_layer(RightLayer, [(4, 3)], skip=["check_nothing"])


@pytest.mark.filterwarnings("ignore:.*did not run")
def test_layers_without_bottoms_tops_or_gradients():
    check_layer("type: 'Parameter' parameter_param { shape { dim: 2 } }")
    check_layer("type: 'Silence'", [(2, 3)])
    check_layer("type: 'Accuracy'", [(4, 3), np.array([0.0, 1.0, 2.0, 2.0])], check_bottoms=())
