"""Learning-rate policies: values worked out by hand, and what is refused."""

import math

import pytest
import recaffe
from recaffe import RecaffeError
from recaffe.framework.learning_rate import create_learning_rate, current_step
from recaffe.framework.observer import Observer
from recaffe.proto import SolverParameter, parse_text

from tests.shuffled_training import solver_param


def rates(text, iterations):
    rate = create_learning_rate(parse_text(text, SolverParameter))
    return [rate(t) for t in iterations]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('lr_policy: "fixed"', {0: 0.5, 100: 0.5}),
        ('lr_policy: "step" gamma: 0.1 stepsize: 10', {0: 0.5, 9: 0.5, 10: 0.05, 25: 0.005}),
        ('lr_policy: "exp" gamma: 0.5', {0: 0.5, 1: 0.25, 3: 0.0625}),
        ('lr_policy: "inv" gamma: 0.5 power: 2', {0: 0.5, 2: 0.125}),
        ('lr_policy: "multistep" gamma: 0.1 stepvalue: 3 stepvalue: 8', {2: 0.5, 3: 0.05, 7: 0.05, 8: 0.005}),
        ('lr_policy: "multistep" gamma: 0.1 stepvalue: 3 stepvalue: 3', {2: 0.5, 3: 0.05, 4: 0.005}),
        ('lr_policy: "multistep" gamma: 0.1 stepvalue: 5 stepvalue: 3', {3: 0.5, 5: 0.05, 6: 0.005}),
        ('lr_policy: "poly" power: 2 max_iter: 10', {0: 0.5, 5: 0.125, 10: 0.0, 11: 0.0}),
        ('lr_policy: "sigmoid" gamma: 1 stepsize: 5', {5: 0.25, 6: 0.5 / (1 + math.exp(-1))}),
        ('lr_policy: "sigmoid" gamma: 1 stepsize: 100000', {0: 0.0}),
        ('lr_policy: "cosine" max_iter: 8 min_lr: 0.1', {0: 0.5, 4: 0.3, 8: 0.1, 9: 0.1}),
        ('lr_policy: "inv_sqrt" warmup_iter: 4', {0: 0.0, 1: 0.125, 3: 0.375, 4: 0.5, 9: 1 / 3, 16: 0.25, 64: 0.125}),
        ('lr_policy: "inv_sqrt" warmup_iter: 4 warmup_start_lr: 0.1', {0: 0.1, 1: 0.2, 3: 0.4, 4: 0.5, 16: 0.25}),
        ('lr_policy: "fixed" warmup_iter: 4 warmup_start_lr: 0.1', {0: 0.1, 1: 0.2, 3: 0.4, 4: 0.5, 5: 0.5}),
        ('lr_policy: "exp" gamma: 0.5 warmup_iter: 2', {0: 0.0, 1: 0.0625, 2: 0.125, 3: 0.0625}),
    ],
)
def test_policy(text, expected):
    assert rates("base_lr: 0.5 " + text, expected) == pytest.approx(list(expected.values()), rel=1e-6)


def test_inv_sqrt_is_the_papers():
    d, warmup = 512, 4000
    text = f'lr_policy: "inv_sqrt" base_lr: {(d * warmup) ** -0.5:.12g} warmup_iter: {warmup}'
    iterations = [1, 2, 1000, 3999, 4000, 4001, 50_000, 100_000]
    paper = [d**-0.5 * min(t**-0.5, t * warmup**-1.5) for t in iterations]
    assert rates(text, iterations) == pytest.approx(paper, rel=1e-6)
    assert paper[4] == pytest.approx(6.98771e-4, rel=1e-5)


def test_inv_sqrt_goes_on_after_a_resume(tmp_path):
    class Rates(Observer):
        def __init__(self):
            self.seen = {}

        def on_iteration(self, iteration, loss, lr):
            self.seen[iteration - 1] = lr

    def solver():
        param = solver_param("SGD", tmp_path / "run")
        param.lr_policy, param.base_lr, param.warmup_iter = "inv_sqrt", 0.04, 4
        running, rates = recaffe.get_solver(param), Rates()
        running.add_observer(rates)
        return running, rates.seen

    first, rates = solver()
    first.step(3)
    state = first.snapshot()
    second, more = solver()
    second.restore(state)
    second.step(14)
    expected = [0.0, 0.01, 0.02, 0.03, 0.04, *(0.08 / math.sqrt(t) for t in range(5, 17))]
    assert {**rates, **more} == {t: pytest.approx(rate, rel=1e-6) for t, rate in enumerate(expected)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base_lr: 1", "lr_policy is missing"),
        ('base_lr: 1 lr_policy: "stepp" gamma: 1 stepsize: 1', "did you mean 'step'"),
        ('base_lr: 1 lr_policy: "qqq"', "expected one of fixed, step"),
        ('lr_policy: "fixed"', "needs base_lr"),
        ('base_lr: 1 lr_policy: "step" stepsize: 1', "needs gamma"),
        ('base_lr: 1 lr_policy: "step" gamma: 1', "needs stepsize"),
        ('base_lr: 1 lr_policy: "step" gamma: 1 stepsize: 0', "stepsize is 0"),
        ('base_lr: 1 lr_policy: "exp" gamma: -1', "gamma is -1"),
        ('base_lr: 1 lr_policy: "poly" power: 1', "needs max_iter"),
        ('base_lr: 1 lr_policy: "cosine" max_iter: 0', "max_iter is 0"),
        ('base_lr: 1 lr_policy: "inv_sqrt"', "needs warmup_iter"),
        ('base_lr: 1 lr_policy: "inv_sqrt" warmup_iter: 0', "warmup_iter is 0, expected more than 0"),
        ('base_lr: 1 lr_policy: "fixed" warmup_iter: -1', "warmup_iter is -1"),
    ],
)
def test_refused(text, message):
    with pytest.raises(RecaffeError, match=message):
        create_learning_rate(parse_text(text, SolverParameter))


def test_current_step_is_what_caffe_saves():
    multistep = parse_text('lr_policy: "multistep" stepvalue: 3 stepvalue: 8', SolverParameter)
    assert [current_step(multistep, t) for t in (2, 3, 8)] == [0, 1, 2]
    assert current_step(parse_text('lr_policy: "step" stepsize: 4', SolverParameter), 9) == 2
    assert current_step(parse_text('lr_policy: "fixed"', SolverParameter), 9) == 0
