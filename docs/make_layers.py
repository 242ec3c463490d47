"""Write docs/layers.md, the catalogue of layers, from their docstrings: ``python docs/make_layers.py``."""

import inspect
from pathlib import Path

from recaffe import registered_types
from recaffe.framework.layer import layer_class
from recaffe.layers import FAMILIES

CATALOGUE = Path(__file__).parent / "layers.md"


def catalogue() -> str:
    """The whole page."""
    lines = ["# Layers", "", "Written by `python docs/make_layers.py` from the docstrings.", ""]
    families: dict[str, list[str]] = {family: [] for family in FAMILIES}
    for name in registered_types():
        found = layer_class(name)
        assert found is not None
        parts = found.__module__.split(".")
        if parts[:2] == ["recaffe", "layers"]:
            families[parts[2]].append(name)
    for family, names in families.items():
        lines += [f"- **{family}**: " + ", ".join(f"[{name}](#{name.lower()})" for name in names)]
    for family, names in families.items():
        lines += ["", f"## {family}"]
        for name in names:
            found = layer_class(name)
            lines += ["", f"### {name}", "", "```text", inspect.getdoc(found) or "", "```"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    CATALOGUE.write_text(catalogue())
