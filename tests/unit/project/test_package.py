"""The installed package: what is in its wheel, and what it needs."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import seedbed

ROOT = Path(__file__).parents[3]
LIBRARY = ROOT / "scripts" / "seedbed"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LEFT_OUT = ("training", "models")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # building leaves files beside the code
    shutil.copytree(LIBRARY, source / "scripts" / "seedbed", ignore=shutil.ignore_patterns("*.pyc"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = "wheel --quiet --no-deps --no-build-isolation --no-index --disable-pip-version-check"
    subprocess.run(
        [sys.executable, "-m", "pip", *command.split(), "--wheel-dir", str(folder), str(source)], check=True
    )
    (built,) = folder.glob("*.whl")
    assert built.stat().st_size < 2**20
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def files(library: Path) -> set[str]:
    found = (path.relative_to(library) for path in library.rglob("*") if path.is_file())
    return {str(path) for path in found if path.parts[0] not in LEFT_OUT and path.suffix != ".pyc"}


def test_the_wheel_has_every_file_but_those_of_training(wheel):
    assert files(wheel / "seedbed") == files(LIBRARY)


def test_the_wheel_names_the_command_and_its_version(wheel):
    (told,) = wheel.glob("*.dist-info")
    assert "seedbed = seedbed.commands:main" in (told / "entry_points.txt").read_text(encoding="utf-8")
    assert PROJECT["version"] == seedbed.__version__


def test_what_the_package_needs_is_what_the_lock_has():
    for requirement in PROJECT["dependencies"]:
        name, least = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement).groups()
        installed = importlib.metadata.version(name)
        assert [*map(int, installed.split(".")[:2])] >= [*map(int, least.split(".")[:2])], requirement
