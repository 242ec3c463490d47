"""Who may import whom (docs/architecture.md): a module imports from its own level or below, and CuPy in one place."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

LEVELS = [
    {"proto"},
    {
        "framework.aligned",
        "framework.backend",
        "framework.checks",
        "framework.errors",
        "framework.fusable",
        "framework.hdf5",
        "framework.kernels",
        "framework.matmul",
        "framework.random_numbers",
        "framework.threads",
        "framework.crew",
    },
    {"framework.blob", "framework.filler"},
    {
        "framework.backward_plan",
        "framework.composite",
        "framework.graph",
        "framework.layer",
        "framework.learnable_params",
        "framework.net_state",
        "framework.splits",
    },
    {"layers"},
    {"framework.net"},
    {
        "framework.clipping",
        "framework.diagnostics",
        "framework.learning_rate",
        "framework.observer",
        "framework.saved_state",
        "framework.snapshot",
        "framework.solver",
        "framework.solver_nets",
        "framework.updates",
        "framework.weights",
    },
    {
        "framework.alignment",
        "framework.attention_picture",
        "framework.attention_weights",
        "framework.beam_search",
        "framework.carried",
        "framework.cli",
        "framework.generation",
        "framework.gradient_check",
        "framework.layer_case",
        "framework.layer_checks",
        "framework.score_output",
        "framework.single_layer",
        "framework.strict_array",
        "framework.strict_backend",
        "framework.transduction",
        "framework.translation",
    },
    {"api"},
]

# Net.copy_from and Net.save are pycaffe's methods; what they do stands a level above and is imported when called.
DEFERRED = {("framework.net", "framework.weights")}

SOURCES = [path for folder in ("proto", "framework", "layers") for path in sorted((ROOT / folder).rglob("*.py"))]


def level(module: str) -> int:
    for number, names in enumerate(LEVELS):
        if any(module == name or module.startswith(name + ".") for name in names):
            return number
    raise AssertionError(f"{module} has no level: add it to docs/architecture.md and here")


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[:2] == ["framework", "api"]:
        return "api"
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """The recaffe modules that ``path`` imports, by folder name."""
    package = list(path.relative_to(ROOT).parent.parts)
    if package == ["framework", "api"]:
        package = []
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            if node.level == 0:
                assert not (node.module or "").startswith("recaffe"), f"{path}: use relative imports inside the package"
                continue
            base = package[: len(package) - node.level + 1]
            target = [*base, *(node.module.split(".") if node.module else [])]
            names = [".".join([*target, alias.name]) for alias in node.names]
            is_package = (ROOT / Path(*target)).is_dir() if target else True
            found |= {name for name in names if is_package and exists(name)} or {".".join(target)}
    return {name for name in found if name}


def exists(module: str) -> bool:
    path = ROOT / Path(*module.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_downwards_only(path):
    module = module_name(path)
    if module == "framework":
        return
    for target in imported(path):
        if target in ("framework", "recaffe") or (module, target) in DEFERRED:
            continue
        if (own := level(module)) == level(target) == 0 or module == target:
            continue
        assert level(target) <= own, f"{module} (level {own}) imports {target} (level {level(target)})"


def test_cupy_is_imported_in_one_file():
    importers = {
        str(path.relative_to(ROOT))
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "cupy" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "cupy")
    }
    assert importers == {"framework/backend.py"}


def test_the_architecture_page_names_every_module():
    page = (ROOT / "docs" / "architecture.md").read_text()
    for names in LEVELS:
        for name in names:
            assert (
                f"`{name}`" in page or f"`{name.rpartition('.')[2]}`" in page or f"`{name}.*`" in page or name == "api"
            )
