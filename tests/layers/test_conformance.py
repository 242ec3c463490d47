"""Every registered layer type passes every check of recaffe.framework.layer_checks."""

import shutil

import pytest
from recaffe.framework import threads
from recaffe.framework.backend import CpuBackend
from recaffe.framework.layer import layer_class, registered_types
from recaffe.framework.layer_case import PlainCpuBackend
from recaffe.framework.layer_checks import CHECKS, check_backend

from tests.layers.conformance_cases import CASES
from tests.support import GOLDEN

NUMBERED = {f"{name}-{i}": case for name, cases in CASES.items() for i, case in enumerate(cases)}


def test_every_type_has_a_case():
    own = {name for name in registered_types() if layer_class(name).__module__.startswith("recaffe.layers.")}
    assert own - set(CASES) == set(), "types without a case in conformance_cases.py"
    assert set(CASES) - own == set(), "cases of types that nobody registered"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A copy of the files that data layers read."""
    return shutil.copytree(GOLDEN / "data", tmp_path_factory.mktemp("conformance") / "data")


@pytest.mark.parametrize(
    ("case", "check"), [(name, check) for name, case in NUMBERED.items() for check in CHECKS if check not in case.skip]
)
def test_layer(case, check, data, monkeypatch):
    monkeypatch.chdir(data)
    CHECKS[check](NUMBERED[case])


@pytest.fixture(scope="module", params=[PlainCpuBackend, CpuBackend], ids=["plain", "fused"])
def many_threads(request):
    """A CPU backend with three threads."""
    return request.param(threads=3)


@pytest.mark.parametrize("case", NUMBERED)
def test_layer_in_parts(case, many_threads, data, monkeypatch):
    """Work split over threads, even the smallest, gives what one thread gives."""
    monkeypatch.chdir(data)
    monkeypatch.setattr(threads, "WORTH_SPLITTING", 0)
    monkeypatch.setattr(threads, "WORTH_SHARING", 0)
    check_backend(NUMBERED[case], many_threads)
