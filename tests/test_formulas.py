"""docs/formulas.md is true: each line stands in the function that it names, and each test exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "formulas.md").read_text()
ROWS = re.findall(r"^\| (.+?) \| `([\w/.]+)` `([\w.]+)` \| `(.+)` \| `([\w/.]+)` `(\w+)` \|$", PAGE, re.MULTILINE)


def source(path: str, name: str) -> str:
    """The source of the function or method ``name`` in the file ``path``."""
    text = (ROOT / path).read_text()
    body = ast.parse(text).body
    for part in name.split("."):
        node = next(node for node in body if getattr(node, "name", None) == part)
        body = node.body
    return ast.get_source_segment(text, node) or ""


def test_every_row_is_read():
    tables = [line for line in PAGE.splitlines() if line.startswith("| ") and "`layers/" in line]
    assert len(ROWS) == len(tables) > 40


@pytest.mark.parametrize(("formula", "path", "name", "line", "test_path", "test"), ROWS)
def test_the_line_and_the_test_are_there(formula, path, name, line, test_path, test):
    assert line in source(path, name), f"{formula}: {path} {name} has no {line!r}"
    assert source(test_path, test)
