"""The pages of docs/reference that the code determines."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import columns

from seedbed.commands import subcommands
from seedbed.config import documentation

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "reference"
SCRIPTS = ("show.py", "plan_labels.py", "merge_adapter.py")
WHERE = (
    "`pip install .` installs it. In the repository call it `PYTHONPATH=scripts .venv/bin/python -m seedbed`."
)
MADE = "`make reference` writes this page from"


def all_pages() -> dict[Path, Callable[[], str]]:
    """Every generated file with what makes its text, the schema of the config among them."""
    return {
        documentation.SCHEMA: documentation.schema_text,
        documentation.PAGE: documentation.page,
        PAGES / "outputs.md": columns.page,
        PAGES / "rules.md": rules,
        PAGES / "commands.md": commands,
        PAGES / "experiments.md": experiments,
    }


# --- rules --------------------------------------------------------------------------------------------------


def rules() -> str:
    """Every rule with its docstring, by file."""
    parts = ["# Rules", f"{MADE} the rules. A file's text says what its rules need and make."]
    parts.append("`snakemake --list-rules` lists them; `make dag` draws them.")
    for path in _rule_files():
        text = path.read_text(encoding="utf-8")
        found = list(_rules_of(text))
        if not found:
            continue
        rows = "".join(f"| `{name}` | {_in_cell(about)} |\n" for name, about in found)
        about = _paragraphs(re.match(r'"""\n(.*?)"""', text, re.DOTALL)[1])
        parts.append(f"## {path.relative_to(ROOT)}\n\n{about}")
        parts.append(f"| rule | what it does |\n| --- | --- |\n{rows}".rstrip())
    return "\n\n".join(parts) + "\n"


def _rule_files() -> list[Path]:
    """The Snakefile's files of rules, in its order."""
    snakefile = (ROOT / "Snakefile").read_text(encoding="utf-8")
    return [ROOT / name for name in re.findall(r'^include: "(.+)"$', snakefile, re.MULTILINE)]


def _rules_of(text: str) -> Iterator[tuple[str, str]]:
    """The name and the docstring of each rule; that of a rule made from another names it."""
    pattern = r'^(?:rule (\w+):\n    """(.*?)"""|use rule (\w+) as (\w+) with:)'
    for found in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        yield (found[1], found[2]) if found[1] else (found[4], f"As {found[3]}, with files of its own.")


# --- commands -----------------------------------------------------------------------------------------------


def commands() -> str:
    """The targets of the Makefile, and the options of the commands."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):.*## (.*)$", makefile, re.MULTILINE)
    rows = "".join(f"| `make {name}` | {_in_cell(about)} |\n" for name, about in targets)
    parts = ["# Commands", f"{MADE} the Makefile, the scripts and the command.", "## make"]
    parts.append(f"| target | what it does |\n| --- | --- |\n{rows}".rstrip())
    for name in SCRIPTS:
        told = _help(str(ROOT / "scripts" / name))
        parts.append(f"## scripts/{name}\n\n```text\n{told}\n```")
    parts.append(f"## The command seedbed\n\n{WHERE}")
    for name in subcommands():
        parts.append(f"### seedbed {name}\n\n```text\n{_help('-m', 'seedbed', name)}\n```")
    return "\n\n".join(parts) + "\n"


def _help(*command: str) -> str:
    """What a script or a subcommand prints for --help, on lines of 100 characters."""
    command = [sys.executable, *command, "--help"]
    environment = {"COLUMNS": "100", "PYTHONPATH": str(ROOT / "scripts"), "NO_COLOR": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


# --- experiments --------------------------------------------------------------------------------------------


def experiments() -> str:
    """The comments at the head of each file of experiments/."""
    parts = ["# Experiments", f"{MADE} the comments at the head of each file of experiments/."]
    parts.append("`make run CONFIG=experiments/NAME.yaml` runs one. Overlays go on top of another file.")
    for path in sorted((ROOT / "experiments").glob("*.yaml")):
        name = path.relative_to(ROOT)
        parts.append(f"## [{path.stem}](../../{name})\n\n{_head(path.read_text(encoding='utf-8'))}")
    return "\n\n".join(parts) + "\n"


def _head(text: str) -> str:
    """The first comment of a file as Markdown: lines that are indented are commands."""
    lines = [line[1:].removeprefix(" ") for line in re.match(r"(#.*\n)*", text)[0].splitlines()]
    return _paragraphs("\n".join(lines))


def _paragraphs(text: str) -> str:
    """Text with paragraphs on one line each; indented lines become a block of commands."""
    parts = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if block.startswith("  "):
            commands = "\n".join(line.strip() for line in block.splitlines())
            parts.append(f"```console\n{commands}\n```")
        else:
            parts.append(_escaped(" ".join(block.split())))
    return "\n\n".join(parts)


def _escaped(text: str) -> str:
    """Markdown that shows < as it is."""
    return text.replace("<", "&lt;")


def _in_cell(text: str) -> str:
    return _escaped(" ".join(text.split()).replace("|", "\\|"))
