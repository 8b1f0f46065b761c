"""Every direct dependency is used where its reason in envs/requirements.in says."""

import ast
import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
REQUIREMENTS = (ROOT / "envs/requirements.in").read_text(encoding="utf-8")
PINS = dict(re.findall(r"^([\w.-]+)==\S+ +# (.+)$", REQUIREMENTS, re.MULTILINE))
# no Python file imports these: the file that names them, and how
NAMED = {
    "accelerate": ("scripts/seedbed/running/identity.py", r'"accelerate"'),
    "snakemake-executor-plugin-slurm": ("profiles/slurm/config.yaml", r"^executor: slurm$"),
    "pytest": ("Makefile", r"-m pytest "),
    "pytest-xdist": ("Makefile", r"pytest -n .* --dist "),
    "ruff": ("Makefile", r"/ruff check"),
    "snakefmt": ("Makefile", r"/snakefmt "),
    "mypy": ("pyproject.toml", r"^\[tool\.mypy\]$"),
}
# needed by another pin at this very version, which its maintainers keep in step
NEEDED_BY = {"snakemake-executor-plugin-slurm-jobstep": "snakemake-executor-plugin-slurm"}
FOR_TESTS = re.compile(r"\btests?\b|properties")


def imported(folder: Path) -> Iterator[str]:
    """Top-level modules that Python files below a folder import, at the top or where they need them."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module


def distributions(folder: str) -> set[str]:
    """The packages that the Python files of a folder import."""
    owners = importlib.metadata.packages_distributions()
    # protobuf and others share the namespace google
    owners["google"] = ["protobuf"]
    top = {name.partition(".")[0] for name in imported(ROOT / folder)}
    return {canonicalize_name(owner) for name in top for owner in owners.get(name, [])}


@pytest.fixture(scope="module")
def product() -> set[str]:
    return distributions("scripts")


@pytest.fixture(scope="module")
def of_tests() -> set[str]:
    return distributions("tests")


@pytest.mark.parametrize("package", PINS)
def test_a_pinned_package_is_used_as_its_reason_says(package, product, of_tests):
    name = canonicalize_name(package)
    if package in NAMED:
        file, pattern = NAMED[package]
        assert re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), file
    elif package in NEEDED_BY:
        needs = importlib.metadata.requires(NEEDED_BY[package])
        assert any(canonicalize_name(re.match(r"[\w.-]+", text)[0]) == name for text in needs)
    elif FOR_TESTS.search(PINS[package]) and name not in product:
        assert name in of_tests
    else:
        assert name in product, f"no file of scripts/ imports {package}: {PINS[package]}"


def test_every_pin_has_a_reason():
    lines = [line for line in REQUIREMENTS.splitlines() if re.match(r"[\w.-]+==", line)]
    assert len(lines) == len(PINS) > 40
