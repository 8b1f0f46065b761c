"""The packages of the library are stages: each imports only those to its left."""

import ast
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[3] / "scripts" / "seedbed"
STAGES = (
    "core", "sources", "config", "data", "models", "running", "training", "prediction", "analysis", "figures",
    "report", "outside", "bundle", "commands",
)  # fmt: skip


def imports(path: Path) -> set[str]:
    """The stages that a module imports from, at its top or within a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("seedbed.")}
    return found & set(STAGES)


def test_every_module_is_of_a_stage():
    assert {path.name for path in LIBRARY.iterdir() if path.is_dir()} - {"__pycache__"} == set(STAGES)
    assert sorted(path.name for path in LIBRARY.glob("*.py")) == ["__init__.py", "__main__.py"]


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_imports_only_those_before_it(stage):
    allowed = set(STAGES[: STAGES.index(stage) + 1])
    backwards = {
        f"{path.relative_to(LIBRARY)}: {name}"
        for path in (LIBRARY / stage).rglob("*.py")
        for name in imports(path) - allowed
    }
    assert backwards == set()


@pytest.mark.parametrize("stage", STAGES)
def test_a_package_says_what_comes_in_and_what_goes_out(stage):
    text = ast.get_docstring(ast.parse((LIBRARY / stage / "__init__.py").read_text(encoding="utf-8")))
    assert "In: " in text
    assert "Out: " in text
