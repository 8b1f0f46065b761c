"""What README and tutorials tell users to do works: their blocks are run in a working directory."""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from builders_pages import README, ROOT, Block, blocks
from harness import succeeded

LINKED = (
    "Makefile", "Snakefile", "benchmarks", "envs", "experiments", "profiles", "resources", "rules", "schemas",
    "scripts",
)  # fmt: skip
# the environment is there: nothing is installed
PRELUDE = 'set -eo pipefail\nmake() { command make --no-print-directory -o install "$@"; }\n'


@pytest.fixture
def clone(tmp_path) -> Path:
    """A folder like a clone with an installed environment."""
    folder = tmp_path / "clone"
    folder.mkdir()
    shutil.copy(ROOT / "config.yaml", folder)
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def run(commands: str, folder: Path) -> str:
    """What commands print; those of a block that shows an error must fail."""
    path = os.pathsep.join((str(Path(sys.prefix) / "bin"), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "PYTHONPATH": "", "CORES": "2"}
    command = ["bash", "-c", PRELUDE + commands]
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return f"{done.stdout}\nexit status {done.returncode}"


def follow(page: Path, folder: Path) -> None:
    """Do what a page says: write its configs, run its commands, and look for the output that it shows.

    Commands before a block that shows an error must fail, all others must not. Lines may show a part of those
    that are printed.
    """
    found = blocks(page)
    for block, following in zip(found, [*found[1:], None], strict=True):
        if block.language == "yaml":
            (folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "bash":
            printed = run(block.text, folder)
            shown = following if following is not None and following.language == "text" else None
            check(printed, block, shown, page)


def check(printed: str, block: Block, shown: Block | None, page: Path) -> None:
    place = f"{page.name}, line {block.line}:\n{printed[-3000:]}"
    refused = shown is not None and "  hint:  " in shown.text
    assert printed.endswith("exit status 0") != refused, place
    for line in shown.text.splitlines() if shown else ():
        assert line.strip() in printed, f"{line!r} not in {place}"


def test_the_overlay_of_the_readme_plans_six_runs(project):
    (block,) = (block for block in blocks(README) if block.language == "yaml")
    (project.folder / "data").mkdir()
    for name in ("train", "test"):
        with open(project.folder / f"data/{name}.csv", "w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([("text", "label"), ("bon livre", "positive"), ("non", "negative")])
    overlay = project.folder / "mine.yaml"
    overlay.write_text(block.text, encoding="utf-8")
    out = succeeded(project.snakemake("--dry-run", "--configfile", str(overlay))).stdout
    assert out.count("rule finetune_transformers:") == 6
    assert "finetune_fairseq" not in out


@pytest.mark.slow
def test_the_tutorial_on_ones_own_texts_works(clone):
    follow(ROOT / "docs/tutorials/your-texts.md", clone)
    assert (clone / "results/mine/report.html").exists()


@pytest.mark.slow
def test_the_tutorial_on_the_demo_works(clone):
    follow(ROOT / "docs/tutorials/demo.md", clone)
    assert (clone / "results/demo/report.html").exists()
