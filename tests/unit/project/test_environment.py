"""The lock, the conda environments and the installed packages agree."""

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
CONDA = sorted((ROOT / "envs").glob("*.yaml"))
# installed before the lock, as a build for the machine
TORCH = re.compile(r"torch|torchaudio|triton|nvidia-(?!ml-py$).*|cuda-.*")


def pins(lines: list[str]) -> dict[str, str]:
    """{package: version} of the requirements that are meant for this interpreter, all pinned with ==."""
    found = {}
    for line in lines:
        text = line.split("#")[0].strip()
        if not text:
            continue
        requirement = Requirement(text)
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", f"not pinned: {line}"
        if requirement.marker is None or requirement.marker.evaluate():
            found[canonicalize_name(requirement.name)] = specifier.version
    return found


def read_pins(name: str) -> dict[str, str]:
    return pins((ROOT / "envs" / name).read_text(encoding="utf-8").splitlines())


def installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


# --- requirements.in, requirements.lock, what is installed ----------------------------------------


def test_the_lock_holds_every_direct_dependency_at_its_version():
    lock = read_pins("requirements.lock")
    direct = {name: version for name, version in read_pins("requirements.in").items() if name != "torch"}
    assert {name: lock.get(name) for name in direct} == direct, "run `make lock`"


def test_the_lock_is_complete():
    """Whatever a package of the lock asks for on this machine is in the lock too, torch apart."""
    lock = read_pins("requirements.lock")
    missing = set()
    for package in [*lock, "torch"]:
        for text in importlib.metadata.requires(package) or []:
            try:
                requirement = Requirement(text)
            except InvalidRequirement:  # old metadata, such as omegaconf's `PyYAML (>=5.1.*)`
                continue
            name = canonicalize_name(requirement.name)
            wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if wanted and name not in lock and not TORCH.fullmatch(name):
                missing.add(f"{name}, for {package}")
    assert not missing, "run `make lock`"


def test_the_lock_leaves_torch_to_the_machine_and_is_sorted():
    lock = list(read_pins("requirements.lock"))
    assert not [name for name in lock if TORCH.fullmatch(name)]
    assert lock == sorted(lock)


def test_the_installed_packages_are_those_of_the_lock():
    lock = read_pins("requirements.lock")
    assert {name: installed(name) for name in lock} == lock, "run `make install`"


def test_the_installed_torch_is_the_pinned_one_whatever_its_build():
    assert installed("torch").split("+")[0] == read_pins("requirements.in")["torch"]


def test_torchaudio_is_not_installed():
    assert installed("torchaudio") is None


# --- what envs/install.sh refuses ---------------------------------------------------------------------


def install(folder: Path, **variables: str) -> str:
    """What a refused installation says; it must leave no stamp."""
    environment = os.environ | {"TORCH": "", "PYTHON": ""} | variables
    command = ["bash", str(ROOT / "envs/install.sh"), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert not (folder / "seedbed-installed").exists()
    return done.stderr


def test_an_old_python_is_refused(tmp_path):
    python = tmp_path / "python3.9"
    python.write_text("#!/bin/sh\nif [ $1 = --version ]; then echo Python 3.9.1; fi\nexit 1\n")
    python.chmod(0o755)
    told = install(tmp_path / "venv", PYTHON=str(python))
    assert f"PYTHON={python} is not Python 3.11 or later\n  found: Python 3.9.1\n  hint: " in told
    assert not (tmp_path / "venv").exists()


def test_a_folder_that_is_no_venv_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    told = install(tmp_path)
    assert f"{tmp_path} exists and is not a virtual environment\n  hint:  remove it" in told
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_a_missing_compiler_is_told_before_anything_is_installed(tmp_path):
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("bash", "dirname", "rm", "sed"):
        (commands / name).symlink_to(shutil.which(name))
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    told = install(tmp_path / "venv", PATH=str(commands), PYTHON=str(base), CXX="")
    assert "no C++ compiler was found" in told
    assert "apt install build-essential" in told
    assert not (tmp_path / "venv").exists()


def test_an_unknown_build_of_torch_is_refused(tmp_path):
    assert "found: TORCH=gpu\n  hint:  TORCH=cpu or TORCH=cuda" in install(tmp_path / "venv", TORCH="gpu")


# --- conda environments ---------------------------------------------------------------------------


def conda_pins(path: Path) -> dict[str, str]:
    """The pins of an environment's pip part, and of the script that finishes the environment."""
    environment = yaml.safe_load(path.read_text(encoding="utf-8"))
    (pip,) = (item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    finish = path.with_suffix(".post-deploy.sh")
    script = finish.read_text(encoding="utf-8") if finish.exists() else ""
    return pins([*pip, *re.findall(r"\S+==\S+", script)])


@pytest.mark.parametrize("path", CONDA, ids=lambda path: path.name)
def test_a_conda_environment_has_the_versions_of_the_lock(path):
    expected = read_pins("requirements.lock") | {"torch": read_pins("requirements.in")["torch"]}
    found = conda_pins(path)
    assert found == {name: expected.get(name) for name in found}


@pytest.mark.parametrize("path", CONDA, ids=lambda path: path.name)
def test_a_conda_environment_has_a_tested_python(path):
    assert "python=3.11" in yaml.safe_load(path.read_text(encoding="utf-8"))["dependencies"]


def test_the_conda_environment_of_fairseq_has_a_pip_that_accepts_omegaconf():
    dependencies = yaml.safe_load((ROOT / "envs/fairseq.yaml").read_text(encoding="utf-8"))["dependencies"]
    assert "pip<24.1" in dependencies


def rules() -> Iterator[tuple[str, str, str]]:
    """(rule, conda environment, script) of the rules that have both."""
    for path in sorted((ROOT / "rules").glob("*.smk")):
        for block in re.split(r"^rule ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            conda = re.search(r'conda:\s*"\.\./(.+?)"', block)
            script = re.search(r'script:\s*"\.\./(.+?)"', block)
            if conda and script:
                yield block.split(":")[0], conda[1], script[1]


def imported(path: Path) -> set[str]:
    """Dotted names that a file imports; `from a import b` counts as both a and a.b."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def third_party(script: Path) -> set[str]:
    """Top-level packages that a script imports, itself or through the library, and not Python's own."""
    waiting, seen, found = [script], set(), set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in imported(path):
            if name.split(".")[0] != "seedbed":
                found.add(name.split(".")[0])
                continue
            module = ROOT / "scripts" / name.replace(".", "/")
            waiting += [file for file in (module.with_suffix(".py"), module / "__init__.py") if file.exists()]
    return found - set(sys.stdlib_module_names)


@pytest.mark.parametrize(("rule", "conda", "script"), rules())
def test_a_conda_environment_has_what_its_rules_import(rule, conda, script):
    """Optional packages, which the environment of the lock lacks too, do not count."""
    owners = importlib.metadata.packages_distributions()
    needed = {canonicalize_name(owners[name][0]) for name in third_party(ROOT / script) if name in owners}
    assert needed - set(conda_pins(ROOT / conda)) == set(), f"{conda} lacks what rule {rule} imports"
