"""The solver's loop: what it logs, which nets it makes, when it tests, stops and refuses."""

import logging
import re

import numpy as np
import pytest
import recaffe
from recaffe.framework.backend import CpuBackend
from recaffe.framework.diagnostics import first_bad_blob
from recaffe.framework.observer import Action, Observer
from recaffe.framework.solver import Solver, load_solver_param
from recaffe.framework.strict_backend import StrictBackend
from recaffe.proto import SolverParameter, parse_text

LAYERS = """
layer { name: "a" type: "Input" top: "a" input_param { shape { dim: 4 dim: 3 } } }
layer { name: "t" type: "Input" top: "t" input_param { shape { dim: 4 dim: 2 } } }
layer { name: "ip1" type: "InnerProduct" bottom: "a" top: "h" param { lr_mult: 1 } param { lr_mult: 2 }
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "s" type: "TanH" bottom: "h" top: "h" }
layer { name: "ip2" type: "InnerProduct" bottom: "h" top: "y"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" loss_weight: 2 }
"""
BASE = 'base_lr: 0.1 lr_policy: "fixed" momentum: 0.9 max_iter: 4 snapshot_after_train: false random_seed: 1 '


def net_param(layers=LAYERS, name="two_layers"):
    return f'net_param {{ name: "{name}" {layers} }}'


def make_solver(text="", net=None, **fields):
    param = parse_text(BASE + text + (net or net_param()), SolverParameter)
    for name, value in fields.items():
        setattr(param, name, value)
    solver = recaffe.get_solver(param)
    random = np.random.default_rng(1)
    for one in (solver.net, *solver.test_nets):
        for name in one.inputs:
            one.blobs[name].data[...] = random.standard_normal(one.blobs[name].shape)
    return solver


def lines(caplog):
    return [record.getMessage() for record in caplog.records]


NUMBER = r"-?[0-9.]+(e[+-][0-9]+)?"


def test_log_lines_are_caffes_in_its_order(caplog, tmp_path):
    solver = make_solver(
        f'display: 2 test_interval: 2 test_iter: 2 test_compute_loss: true snapshot: 2 snapshot_prefix: "{tmp_path}/s" '
    )
    with caplog.at_level(logging.INFO, "recaffe"):
        solver.solve()
    expected = f"""
Solving two_layers
Learning Rate Policy: fixed
Iteration 0, Testing net (#0)
Test loss: <n>
    Test net output #0: loss = <n> (* 2 = <n> loss)
Iteration 0 (<n> iter/s, <n>s/2 iters), loss = <n>
    Train net output #0: loss = <n> (* 2 = <n> loss)
Iteration 0, lr = 0.1
Snapshotting to binary proto file {tmp_path}/s_iter_2.caffemodel
Snapshotting solver state to binary proto file {tmp_path}/s_iter_2.solverstate
Iteration 2, Testing net (#0)
Test loss: <n>
    Test net output #0: loss = <n> (* 2 = <n> loss)
Iteration 2 (<n> iter/s, <n>s/2 iters), loss = <n>
    Train net output #0: loss = <n> (* 2 = <n> loss)
Iteration 2, lr = 0.1
Snapshotting to binary proto file {tmp_path}/s_iter_4.caffemodel
Snapshotting solver state to binary proto file {tmp_path}/s_iter_4.solverstate
Iteration 4, loss = <n>
Iteration 4, Testing net (#0)
Test loss: <n>
    Test net output #0: loss = <n> (* 2 = <n> loss)
Optimization Done."""
    for line, pattern in zip(lines(caplog), expected.strip().split("\n"), strict=True):
        assert re.fullmatch(re.escape(pattern).replace("<n>", NUMBER), line), (line, pattern)


def test_lines_say_what_the_nets_computed(caplog):
    solver = make_solver("display: 1 test_interval: 5 test_iter: 3 ")
    with caplog.at_level(logging.INFO, "recaffe"):
        solver.step(1)
    test_loss = float(solver.test_nets[0].blobs["loss"].data)
    train_loss = float(solver.net.blobs["loss"].data)
    text = "\n".join(lines(caplog))
    assert f"Test net output #0: loss = {test_loss:g} (* 2 = {2 * test_loss:g} loss)" in text
    assert f"Train net output #0: loss = {train_loss:g} (* 2 = {2 * train_loss:g} loss)" in text
    assert f"iters), loss = {2 * train_loss:g}" in text


def test_every_value_of_an_output_has_its_line(caplog):
    net = net_param(LAYERS + 'layer { name: "k" type: "TanH" bottom: "a" top: "k" }')
    solver = make_solver("display: 1 ", net)
    with caplog.at_level(logging.INFO, "recaffe"):
        solver.step(1)
    outputs = [line for line in lines(caplog) if "net output" in line]
    assert len(outputs) == 13
    assert outputs[11] == f"    Train net output #11: k = {solver.net.blobs['k'].data[3, 2]:g}"


def test_average_loss_is_the_mean_of_the_last_ones():
    solver = make_solver("average_loss: 3 ")
    losses = []
    for _ in range(5):
        solver.step(1)
        losses.append(2 * float(solver.net.blobs["loss"].data))
    assert solver.smoothed_loss == pytest.approx(np.mean(losses[-3:]), rel=1e-6)


def test_no_test_before_the_first_iteration_if_not_wanted(caplog):
    solver = make_solver("test_interval: 2 test_iter: 1 test_initialization: false ")
    with caplog.at_level(logging.INFO, "recaffe"):
        solver.solve()
    tests = [line for line in lines(caplog) if "Testing" in line]
    assert tests == ["Iteration 2, Testing net (#0)", "Iteration 4, Testing net (#0)"]


def test_the_last_snapshot(tmp_path):
    make_solver(snapshot_after_train=True, snapshot_prefix=f"{tmp_path}/s").solve()
    assert {path.name for path in tmp_path.iterdir()} == {"s_iter_4.caffemodel", "s_iter_4.solverstate"}
    with pytest.raises(recaffe.RecaffeError, match="snapshot_prefix is missing"):
        make_solver(snapshot_after_train=True).solve()


def test_scores_are_means_over_test_iter():
    net = net_param('layer { name: "u" type: "UniformScore" top: "u" }' + LAYERS)
    solver = make_solver("test_interval: 1 test_iter: 4 ", net)
    scores = []

    class Scores(Observer):
        def on_test(self, iteration, net_index, values):
            scores.append(values["u"])

    solver.add_observer(Scores())
    solver.step(1)
    np.testing.assert_allclose(scores, [[(1 + 2 + 3 + 4) / 4, 10]])


@recaffe.register
class UniformScore(recaffe.Layer):
    """1, 2, 3, ... from pass to pass, beside a constant."""

    type = "UniformScore"
    tops = (1, 1)

    def layer_setup(self, bottom, top):
        self.passes = 0

    def reshape(self, bottom, top):
        top[0].reshape(2)

    def forward(self, bottom, top):
        self.passes += 1
        top[0].data[...] = [self.passes, 10]

    def backward(self, top, propagate_down, bottom):
        """There is nothing below."""


def test_test_nets_look_at_the_trained_parameters():
    solver = make_solver("test_interval: 10 test_iter: 1 ")
    solver.step(3)
    for layer, blobs in solver.net.params.items():
        for blob, test_blob in zip(blobs, solver.test_nets[0].params[layer], strict=True):
            assert np.shares_memory(blob.data, test_blob.data)


def test_iter_size_averages_the_gradients_and_losses():
    once, thrice = make_solver(), make_solver("iter_size: 3 ")
    for name in ("a", "t"):
        thrice.net.blobs[name].data[...] = once.net.blobs[name].data
    once.step(2)
    thrice.step(2)
    assert thrice.smoothed_loss == pytest.approx(once.smoothed_loss, rel=1e-6)
    for one, other in zip(once.net.learnable_params, thrice.net.learnable_params, strict=True):
        np.testing.assert_allclose(one.data, other.data, rtol=1e-5, atol=1e-6)


def test_clip_gradients_scales_the_joint_norm(caplog):
    solver = make_solver(clip_gradients=0.01, display=1)
    before = [blob.data.copy() for blob in solver.net.learnable_params]
    with caplog.at_level(logging.INFO, "recaffe"):
        solver.step(1)
    lr_mult = [1, 2, 1, 1]
    moved = [
        (old - blob.data) / (0.1 * mult)
        for old, blob, mult in zip(before, solver.net.learnable_params, lr_mult, strict=True)
    ]
    assert np.sqrt(sum((array**2).sum() for array in moved)) == pytest.approx(0.01, rel=1e-3)
    assert any(re.fullmatch(r"Gradient clipping: .*L2 norm \S+ > 0.01\) by scale factor \S+", x) for x in lines(caplog))


def test_clip_gradients_value_bounds_each_value():
    solver = make_solver(clip_gradients_value=0.02, iter_size=2)
    before = [blob.data.copy() for blob in solver.net.learnable_params]
    free = make_solver(iter_size=2)
    solver.step(1)
    free.net.clear_param_diffs()
    for _ in range(2):
        free.net.forward_backward()
    clipped = 0
    for blob, gradient, old, mult in zip(
        solver.net.learnable_params, free.net.learnable_params, before, [1, 2, 1, 1], strict=True
    ):
        expected = np.clip(gradient.diff, -0.02, 0.02)
        clipped += np.count_nonzero(expected != gradient.diff)
        np.testing.assert_allclose(blob.data, old - 0.1 * mult * expected / 2, rtol=1e-5, atol=1e-7)
    assert clipped > 3


def test_the_gradient_norm_is_shown_before_clipping(caplog):
    solver = make_solver(clip_gradients=0.01, clip_gradients_value=0.02, log_gradient_norm=True, display=2)
    with caplog.at_level(logging.INFO, "recaffe"):
        solver.step(3)
    free = make_solver()
    free.net.clear_param_diffs()
    free.net.forward_backward()
    norm = np.sqrt(sum((blob.diff.astype(np.float64) ** 2).sum() for blob in free.net.learnable_params))
    shown = [line for line in lines(caplog) if "gradient norm" in line]
    assert [line.split(",")[0] for line in shown] == ["Iteration 0", "Iteration 2"]
    assert float(shown[0].split("= ")[1]) == pytest.approx(norm, rel=1e-4)


def test_a_negative_bound_is_refused():
    with pytest.raises(recaffe.RecaffeError, match="clip_gradients_value is -1, expected 0 or more"):
        make_solver(clip_gradients_value=-1)


def test_frozen_parameters_keep_values_and_empty_histories():
    layers = LAYERS.replace("lr_mult: 1 ", "lr_mult: 0 ").replace("lr_mult: 2 ", "lr_mult: 0 ")
    solver = make_solver("weight_decay: 0.1 ", net_param(layers))
    before = [blob.data.copy() for blob in solver.net.learnable_params]
    solver.step(3)
    for i, (old, blob, history) in enumerate(zip(before, solver.net.learnable_params, solver.history, strict=True)):
        assert np.array_equal(old, blob.data) == (i < 2)
        assert np.any(history[0]) == (i >= 2)


# which nets


def test_nets_in_all_their_fields(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.prototxt").write_text('name: "file" ' + LAYERS)
    (tmp_path / "test.prototxt").write_text('name: "test_file" ' + LAYERS)
    tests = (
        'test_interval: 1 test_net: "test.prototxt" '
        f'test_net_param {{ name: "test_param" {LAYERS} }} test_iter: 1 test_iter: 1 '
    )
    more = "test_iter: 1 test_iter: 1 "
    for net, name, generic in (
        ('net: "net.prototxt" ', "file", True),
        (net_param(name="param"), "param", True),
        ('train_net: "net.prototxt" ', "file", False),
        ("train_" + net_param(name="param"), "param", False),
    ):
        solver = make_solver(tests + (more if generic else ""), net)
        assert solver.net.name == name
        assert solver.net.phase == recaffe.TRAIN
        names = ["test_param", "test_file"] + ([name, name] if generic else [])
        assert [(one.name, one.phase) for one in solver.test_nets] == [(one, recaffe.TEST) for one in names]


RULES = (
    LAYERS
    + """
layer { name: "train" type: "TanH" bottom: "y" top: "on_train" include { phase: TRAIN } }
layer { name: "deep" type: "TanH" bottom: "y" top: "on_deep" include { min_level: 2 } }
layer { name: "first" type: "TanH" bottom: "y" top: "on_first" include { stage: "first" } }
layer { name: "own" type: "TanH" bottom: "y" top: "on_own" include { stage: "own" } }
"""
)


def test_states_are_merged():
    text = (
        'train_state { stage: "first" } test_interval: 1 test_iter: 1 test_iter: 1 '
        'test_state { level: 3 } test_state { stage: "first" level: 1 } '
    )
    solver = make_solver(text, net_param(RULES + 'state { stage: "own" }'))
    extra = [{name for name in net.layer_dict if name in ("train", "deep", "first", "own")} for net in
             (solver.net, *solver.test_nets)]  # fmt: skip
    assert extra == [{"train", "first", "own"}, {"deep", "own"}, {"first", "own"}]


@pytest.mark.parametrize(
    ("text", "net", "message"),
    [
        ("", " ", "no net to train; give one of net, net_param"),
        ('train_net: "x" ', net_param(), "train_net and net_param both give a net"),
        ("test_iter: 1 ", net_param(), "test_interval is 0"),
        ("test_iter: 0 test_interval: 1 ", net_param(), "test_iter is 0"),
        ('test_net: "x" test_interval: 1 ', net_param(), r"test_iter is given 0 time\(s\), expected once .*: 1"),
        ("test_iter: 1 test_interval: 1 ", "train_" + net_param(), r"given 1 time\(s\), expected .*: 0"),
        ("test_iter: 1 test_interval: 1 test_state {} test_state {} ", net_param(), r"test_state is given 2 time\(s\)"),
        ("iter_size: 0 ", net_param(), "iter_size is 0, expected 1 or more"),
        ("average_loss: 0 ", net_param(), "average_loss is 0, expected 1 or more"),
        ("display: -1 ", net_param(), "display is -1"),
        ('regularization_type: "L3" ', net_param(), "unknown regularization_type 'L3'"),
        ('type: "Adm" ', net_param(), "did you mean 'Adam'"),
        ('net: "nowhere.prototxt" ', " ", "nowhere.prototxt: there is no such file"),
    ],
)
def test_refused(text, net, message):
    with pytest.raises(recaffe.RecaffeError, match=message):
        make_solver(text, net)


def test_files_are_looked_for_beside_the_solver_too(tmp_path, monkeypatch, caplog):
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "net.prototxt").write_text(LAYERS)
    (folder / "solver.prototxt").write_text(BASE + 'net: "net.prototxt"')
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.INFO, "recaffe"):
        recaffe.get_solver("models/solver.prototxt").step(1)
    assert "net.prototxt is not in the current folder; taking models/net.prototxt" in lines(caplog)
    assert load_solver_param("models/solver.prototxt").snapshot_prefix == "models/solver"


def test_weights_of_the_solver_are_loaded(tmp_path):
    trained = make_solver()
    trained.step(2)
    trained.net.save(tmp_path / "w.caffemodel")
    solver = make_solver(f'weights: "{tmp_path}/w.caffemodel" test_iter: 1 test_interval: 1 ')
    for net in (solver.net, *solver.test_nets):
        for one, other in zip(net.learnable_params, trained.net.learnable_params, strict=True):
            np.testing.assert_array_equal(one.data, other.data)


def test_random_seed_repeats_the_run():
    runs = [make_solver() for _ in range(2)]
    for run in runs:
        run.step(2)
    np.testing.assert_array_equal(runs[0].net.params["ip1"][0].data, runs[1].net.params["ip1"][0].data)


# watching and stopping


def test_observers_are_told():
    solver = make_solver("display: 2 test_interval: 2 test_iter: 1 ")
    told = []

    class Told(Observer):
        def on_start(self):
            told.append("start")

        def on_gradients_ready(self):
            told.append("gradients")

        def on_iteration(self, iteration, loss, lr):
            told.append((iteration, loss == pytest.approx(2 * float(solver.net.blobs["loss"].data)), round(lr, 6)))

        def on_display(self, iteration, outputs):
            told.append(("display", iteration, list(outputs)))

        def on_test(self, iteration, net_index, scores):
            told.append(("test", iteration, net_index, list(scores)))

    solver.add_observer(Told())
    solver.step(2)
    assert told == [
        ("test", 0, 0, ["loss"]),
        "start",
        ("display", 0, ["loss"]),
        "gradients",
        (1, True, 0.1),
        "start",
        "gradients",
        (2, True, 0.1),
    ]


def test_callbacks_are_called():
    solver = make_solver()
    calls = []
    solver.add_callback(lambda: calls.append("start"), lambda: calls.append("ready"))
    solver.step(2)
    assert calls == ["start", "ready"] * 2


def test_stop_and_snapshot_on_request(tmp_path, caplog):
    solver = make_solver(max_iter=10, snapshot_after_train=True, snapshot_prefix=f"{tmp_path}/s")
    asked = {1: [Action.SNAPSHOT], 3: ["snapshot", "stop"]}
    solver.set_action_function(lambda: asked[solver.iter].pop(0) if asked.get(solver.iter) else None)
    with caplog.at_level(logging.INFO, "recaffe"):
        solver.solve()
    assert solver.iter == 3
    assert lines(caplog)[-1] == "Optimization stopped early."
    assert {path.name for path in tmp_path.glob("*state")} == {"s_iter_1.solverstate", "s_iter_3.solverstate"}


def test_a_stop_during_a_test_leaves_no_trace(caplog):
    net = net_param('layer { name: "u" type: "UniformScore" top: "u" }' + LAYERS)
    solver = make_solver("test_interval: 2 test_iter: 4 ", net)
    states = []
    solver._set_own_state = states.append
    asked = iter([None, None, "stop", None])
    solver.set_action_function(lambda: next(asked))
    with caplog.at_level(logging.INFO, "recaffe"):
        solver.solve()
    assert solver.iter == 0
    assert lines(caplog)[-2:] == ["Test interrupted.", "Optimization stopped early."]
    assert [state["test_nets"] for state in states] == [[{}]]


# what goes wrong


def test_nan_in_the_data_is_named(tmp_path):
    solver = make_solver(max_iter=8, snapshot=2, snapshot_prefix=f"{tmp_path}/s")
    solver.step(5)
    solver.net.blobs["a"].data[1, 1] = np.nan
    message = (
        r"iteration 5: the loss is nan; training stops. First bad values: blob 'a', a top of layer 'a' \(Input\):"
        r" 1 of 12 values are not finite. Lower base_lr \(0.1\).* the last good snapshot is .*s_iter_4.solverstate"
    )
    with pytest.raises(recaffe.RecaffeError, match=message):
        solver.solve()
    assert not list(tmp_path.glob("*iter_6*"))


def test_a_run_that_diverges_is_stopped(tmp_path):
    net = net_param(LAYERS.replace("TanH", "ReLU"))
    solver = make_solver(net=net, base_lr=1e12, max_iter=300, snapshot=1, snapshot_prefix=f"{tmp_path}/s")
    with np.errstate(all="ignore"), pytest.raises(recaffe.RecaffeError, match=r"iteration [1-9].*First bad values"):
        solver.solve()
    assert solver.last_snapshot is not None
    solver.restore(solver.last_snapshot)
    assert all(np.isfinite(blob.data).all() for blob in solver.net.learnable_params)


def test_bad_parameters_are_not_saved(tmp_path):
    solver = make_solver(f'snapshot_prefix: "{tmp_path}/s" ')
    solver.net.params["ip2"][1].data[0] = np.inf
    message = "a snapshot would hold bad values.* parameter 1 of layer 'ip2'.* there is no snapshot yet"
    with pytest.raises(recaffe.RecaffeError, match=message):
        solver.snapshot()
    assert not list(tmp_path.iterdir())


def test_a_bad_gradient_is_named():
    solver = make_solver()
    solver.step(1)
    solver.net.params["ip1"][0].diff[0, 0] = np.nan
    assert first_bad_blob(solver.net) == (
        "the gradient of parameter 0 of layer 'ip1' (InnerProduct): 1 of 15 values are not finite"
    )


def test_debug_info_lines(caplog):
    solver = make_solver("display: 1 debug_info: true ")
    with caplog.at_level(logging.INFO, "recaffe"):
        solver.step(1)
    expected = """
    [Forward] Layer a, top blob a data: <n>
    [Forward] Layer t, top blob t data: <n>
    [Forward] Layer ip1, top blob h data: <n>
    [Forward] Layer ip1, param blob 0 data: <n>
    [Forward] Layer ip1, param blob 1 data: 0
    [Forward] Layer s, top blob h data: <n>
    [Forward] Layer ip2, top blob y data: <n>
    [Forward] Layer ip2, param blob 0 data: <n>
    [Forward] Layer ip2, param blob 1 data: 0
    [Forward] Layer loss, top blob loss data: <n>
    [Backward] Layer loss, bottom blob y diff: <n>
    [Backward] Layer ip2, bottom blob h diff: <n>
    [Backward] Layer ip2, param blob 0 diff: <n>
    [Backward] Layer ip2, param blob 1 diff: <n>
    [Backward] Layer s, bottom blob h diff: <n>
    [Backward] Layer ip1, param blob 0 diff: <n>
    [Backward] Layer ip1, param blob 1 diff: <n>
    [Backward] All net params (data, diff): L1 norm = (<n>, <n>); L2 norm = (<n>, <n>)"""
    debug = [line for line in lines(caplog) if line.startswith("    [")]
    for line, pattern in zip(debug, expected.strip("\n").split("\n"), strict=True):
        assert re.fullmatch(re.escape(pattern).replace("<n>", NUMBER), line), (line, pattern)
    mean = np.abs(solver.net.blobs["a"].data).mean()
    assert debug[0].endswith(f"{mean:g}")
    plain = make_solver()
    plain.step(1)
    assert plain.smoothed_loss == pytest.approx(solver.smoothed_loss, rel=1e-6)


@pytest.mark.parametrize("solver_type", ["SGD", "AdaDelta", "AdamW"])
def test_everything_stays_on_the_device(tmp_path, solver_type):
    text = (
        f'type: "{solver_type}" display: 2 debug_info: true iter_size: 2 clip_gradients: 0.5 weight_decay: 0.01 '
        f'test_iter: 2 test_interval: 4 snapshot: 2 snapshot_prefix: "{tmp_path}/s" '
    )
    results = []
    for backend in (recaffe.framework.backend.CpuBackend(1), StrictBackend(1)):
        solver = recaffe.Solver(parse_text(BASE + text + net_param(), SolverParameter), backend=backend)
        random = np.random.default_rng(1)
        for name in ("a", "t"):
            values = random.standard_normal(solver.net.blobs[name].shape).astype(np.float32)
            solver.net.blobs[name].data[...] = backend.to_device(values)
        solver.solve()
        solver.restore(tmp_path / "s_iter_2.solverstate")
        solver.step(2)
        results.append([backend.to_host(blob.data) for blob in solver.net.learnable_params])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


KEEPING = """
base_lr: 0.1 lr_policy: "fixed" momentum: 0.9 max_iter: 3 random_seed: 1
net_param {
  layer { name: "x" type: "DummyData" top: "x" top: "t" dummy_data_param {
    shape { dim: 4 dim: 3 dim: 6 dim: 6 } shape { dim: 4 dim: 2 }
    data_filler { type: "gaussian" } data_filler { value: 1 } } }
  layer { name: "conv" type: "Convolution" bottom: "x" top: "conv"
    convolution_param { num_output: 3 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
  layer { name: "conv2" type: "Convolution" bottom: "conv" top: "conv2"
    convolution_param { num_output: 3 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "sum" type: "Eltwise" bottom: "conv" bottom: "conv2" top: "sum" }
  layer { name: "flat" type: "Flatten" bottom: "sum" top: "flat" }
  layer { name: "ip" type: "InnerProduct" bottom: "flat" top: "ip"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "t" top: "loss" }
}
"""


def test_gradients_of_inner_blobs_share_memory_and_change_nothing():
    keeping, sharing = (Solver(parse_text(KEEPING, SolverParameter), backend=CpuBackend()) for _ in range(2))
    sharing.net.keeps_diffs = False
    for solver in (keeping, sharing):
        solver.step(3)
    for ours, theirs in zip(sharing.net.learnable_params, keeping.net.learnable_params, strict=True):
        np.testing.assert_array_equal(ours.data, theirs.data)
    assert np.abs(keeping.net.blobs["conv2"].diff).max() > 0
    with pytest.raises(recaffe.RecaffeError, match=r"'conv2' was not kept.*keeps_diffs"):
        _ = sharing.net.blobs["conv2"].diff
    kept = {id(blob._diff.array) for blob in keeping.net.blobs.values() if blob._diff.array is not None}
    shared = {id(blob._diff.array) for blob in sharing.net.blobs.values() if blob._diff.array is not None}
    assert len(shared) + len(sharing.backend.free_arrays) < len(kept)
