"""Values and gradients of small nets against those of BVLC Caffe 1.0 (tests/golden/layers)."""

import pytest

from tests.support import golden_names, run_golden


@pytest.mark.parametrize("name", golden_names())
def test_values_and_gradients(name: str) -> None:
    run_golden(name)
