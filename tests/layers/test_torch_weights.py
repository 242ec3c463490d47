"""PyTorch's recurrent weights loaded into ours: its values and gradients come out, in float64 to 1e-10."""

import numpy as np
import pytest
import recaffe
from recaffe.framework.single_layer import SingleLayer
from recaffe.layers.recurrent.torch_weights import in_our_order, load_torch_weights

from tests.support import GOLDEN, assert_close

OPTIONS = {
    "rnn_tanh": "output_hidden: true",
    "rnn_relu": "output_hidden: true nonlinearity: RELU",
    "lstm_layers1": "",
    "lstm_layers2": "num_layers: 2",
    "lstm_layers1_bidirectional": "direction: BIDIRECTIONAL",
    "gru_reset_after_layers1": "reset_after: true",
    "gru_reset_after_layers2": "reset_after: true num_layers: 2",
    "gru_reset_after_layers1_bidirectional": "reset_after: true direction: BIDIRECTIONAL",
}


def kind(stored, prefix):
    return {key.removeprefix(prefix): stored[key] for key in stored.files if key.startswith(prefix)}


def single_layer(name, stored, options):
    """The layer that a golden case names, with its inputs."""
    inputs, tops = kind(stored, "in:"), kind(stored, "out:")
    text = (
        f"type: '{name[: name.index('_')].upper()}' {' '.join(f'top: {top!r}' for top in tops)} recurrent_param {{"
        f" num_output: 5 expose_hidden: true cont_bottom: false {options} }}"
    )
    return SingleLayer(text, list(inputs.values()))


@pytest.mark.parametrize("name", OPTIONS)
def test_values_and_gradients_are_pytorchs(name):
    with np.load(GOLDEN / "torch" / f"{name}.npz") as stored:
        single = single_layer(name, stored, OPTIONS[name])
        layer = single.layer
        load_torch_weights(layer, kind(stored, "param:"))
        for got, expected in zip(single.forward(), kind(stored, "out:").values(), strict=True):
            assert_close(got, expected, 1e-10)
        for blob in layer.blobs:
            blob.clear_diff()
        single.set_top_diffs(list(kind(stored, "top_diff:").values()))
        single.backward([True] * len(single.bottom))
        for got, expected in zip(single.bottom_diffs(), kind(stored, "in_diff:").values(), strict=True):
            assert_close(got, expected, 1e-10)
        diffs = {key: in_our_order(layer.type, values) for key, values in kind(stored, "param_diff:").items()}
        for number, level in enumerate(layer.levels):
            for run in level.runs:
                suffix = f"_l{number}" + ("_reverse" if run.reverse else "")
                assert_close(run.W_x.diff, diffs["weight_ih" + suffix], 1e-10)
                assert_close(run.weights[0].diff, diffs["weight_hh" + suffix], 1e-10)
                assert_close(run.b.diff, diffs["bias_ih" + suffix], 1e-10)
                if layer.type == "GRU":
                    assert_close(run.weights[1].diff, diffs["bias_hh" + suffix][10:], 1e-10)


@pytest.mark.parametrize(
    ("name", "options", "change", "message"),
    [
        ("rnn_tanh", "", None, "set output_hidden: true"),
        ("gru_reset_after_layers1", "", None, "set reset_after: true"),
        ("lstm_layers1", "", lambda weights: weights.pop("bias_hh_l0"), "have no 'bias_hh_l0'"),
        ("lstm_layers1", "", lambda weights: weights.update(weight_ih_l1=np.zeros(1)), "no place"),
        ("lstm_layers1", "", lambda weights: weights.update(weight_ih_l0=np.zeros((20, 7))), r"gives \(20, 7\)"),
    ],
)
def test_weights_that_do_not_fit(name, options, change, message):
    with np.load(GOLDEN / "torch" / f"{name}.npz") as stored:
        weights = kind(stored, "param:")
        single = single_layer(name, stored, options)
    if change is not None:
        change(weights)
    with pytest.raises(recaffe.RecaffeError, match=message):
        load_torch_weights(single.layer, weights)
