"""Values and gradients of small nets against those of BVLC Caffe 1.0 (tests/golden/layers)."""

import pytest
import recaffe

from tests.support import golden_case, golden_names, run_golden

NOT_YET = {"LSTM", "LSTMUnit", "RNN"}


def missing_types(name: str) -> set[str]:
    return golden_case(name).types - set(recaffe.registered_types())


@pytest.mark.parametrize("name", [name for name in golden_names() if not missing_types(name)])
def test_values_and_gradients(name: str) -> None:
    run_golden(name)


def test_types_that_are_not_there_yet_are_listed() -> None:
    missing = {layer_type for name in golden_names() for layer_type in missing_types(name)}
    assert missing == NOT_YET
