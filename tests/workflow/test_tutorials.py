"""What README and tutorials tell users to do works: their blocks are run in a working directory."""

import csv
import os
import re
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


def follow(page: Path, folder: Path, found: list[Block] | None = None) -> None:
    """Do what a page says: write its configs, run its commands, and look for the output that it shows.

    Commands before a block that shows an error must fail, and end with it. All others must not fail; lines
    may show a part of those that are printed.

    Args:
        found: the first blocks of the page, if not all.
    """
    found = found or blocks(page)
    for block, following in zip(found, [*found[1:], None], strict=True):
        if block.language == "yaml":
            (folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "bash":
            printed, _, status = run(block.text, folder).rpartition("\nexit status ")
            shown = following.text if following is not None and following.language == "text" else ""
            place = f"{page.name}, line {block.line}:\n{printed[-3000:]}"
            assert (status == "0") != is_error(shown), place
            if is_error(shown):
                assert_ends_with(printed, shown, place)
            for line in [] if is_error(shown) else shown.splitlines():
                assert line.strip() in printed, f"{line!r} not in {place}"


def is_error(shown: str) -> bool:
    return "  hint:  " in shown


def assert_ends_with(printed: str, shown: str, place: str) -> None:
    """The last lines are those that are shown, of which one may be cut at " ..."."""
    lines = shown.splitlines()
    last = printed.rstrip().splitlines()[-len(lines) :]
    for line, other in zip(lines, last, strict=True):
        cut = line.removesuffix(" ...")
        assert other == line or (cut != line and other.startswith(cut)), f"{line!r} is {other!r} in {place}"


def in_errors(page: Path) -> list[Block]:
    """The blocks of a page up to the last error that it shows."""
    found = blocks(page)
    return found[: 1 + max(number for number, block in enumerate(found) if is_error(block.text))]


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


def test_the_errors_of_the_tutorial_are_those_that_the_commands_end_with(clone):
    page = ROOT / "docs/tutorials/your-texts.md"
    until = in_errors(page)
    errors = [block.text for block in until if is_error(block.text)]
    follow(page, clone, until)
    assert len(errors) == 3
    assert errors[0] in [block.text for block in blocks(ROOT / "docs/how-to/errors.md")]


@pytest.mark.slow
def test_the_tutorial_on_ones_own_texts_works(clone):
    follow(ROOT / "docs/tutorials/your-texts.md", clone)
    assert (clone / "results/reviews/report.html").exists()


@pytest.mark.parametrize("name", ["lab", "lora"])
def test_a_tutorial_that_takes_long_names_commands_and_files_that_are_there(clone, name):
    """Its experiments are planned, with every file of results that it names."""
    page = ROOT / f"docs/tutorials/{name}.md"
    text = page.read_text(encoding="utf-8")
    files = re.findall(r"(?<![\w/])results/[\w./-]+\.\w+\b", text)
    files += [f"{folder}/run.json" for folder in re.findall(r"\bRUN=(\S+)", text)]
    tables = re.findall(r"`(\w+\.csv)`", text)
    plans = [line for command in commands(page) for line in steps(command, clone)]
    workflows = [line.split("snakemake ", 1)[1] for line in plans if "snakemake " in line]
    experiment = Path(workflows[0].split()[-1]).stem
    files += [f"results/{experiment}/{table}" for table in tables]
    assert files
    for number, options in enumerate(workflows):
        targets = ["all", *files] if number == 0 else []
        planned = run(f"snakemake --dry-run --quiet rules {options} -- {' '.join(targets)}", clone)
        assert planned.endswith("exit status 0"), planned[-3000:]
    for script in re.findall(r"python (\S+\.py)", "\n".join(plans)):
        assert (clone / script).exists()


def commands(page: Path) -> list[str]:
    """The command lines of a page."""
    found = (block.text for block in blocks(page) if block.language in ("bash", "console"))
    return [line.removeprefix("$ ") for text in found for line in text.splitlines()]


def steps(command: str, folder: Path) -> list[str]:
    """What a command of make would run; any other command itself."""
    if not command.startswith("make "):
        return [command]
    planned = run(command.replace("make ", "make --dry-run ", 1), folder)
    assert planned.endswith("exit status 0"), planned
    return planned.splitlines()


@pytest.mark.slow
def test_the_tutorial_on_the_demo_works(clone):
    follow(ROOT / "docs/tutorials/demo.md", clone)
    assert (clone / "results/demo/report.html").exists()
