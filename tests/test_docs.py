"""The documents are true of the code: the catalogue of layers, and the paths and commands that the pages name."""

import re
from pathlib import Path

import pytest
from recaffe import registered_types
from recaffe.framework.layer import layer_class

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *ROOT.glob("models/*/README.md"),
]


def test_the_catalogue_of_layers_is_the_docstrings():
    scope: dict = {"__file__": str(ROOT / "docs" / "make_layers.py"), "__name__": "make_layers"}
    exec((ROOT / "docs" / "make_layers.py").read_text(), scope)
    assert (ROOT / "docs" / "layers.md").read_text() == scope["catalogue"](), "run: python docs/make_layers.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page}: {target}"


OWN_TYPES = [name for name in registered_types() if layer_class(name).__module__.startswith("recaffe.layers.")]


@pytest.mark.parametrize("layer_type", OWN_TYPES)
def test_a_layer_says_its_equation_and_shapes(layer_type):
    spelling_of = layer_class(layer_type).__mro__[1]  # another name of a layer need not repeat it
    documented = spelling_of if getattr(spelling_of, "type", "") in OWN_TYPES else layer_class(layer_type)
    text = documented.__doc__ or ""
    assert len(text.splitlines()) >= 3, f"{layer_type}: the docstring gives the equation, then every shape"
