"""Print an experiment's answer and its test scores on the terminal: python scripts/show.py results/demo

It only imports light modules, so that it prints at once.
"""

import argparse
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core import checksums
from seedbed.core.errors import SeedbedError, explaining_system_errors
from seedbed.core.files import read_json
from seedbed.core.printable import for_terminal

MAX_WHOLE = 2  # questions whose lines are all shown; of more the answers alone
ROOT = Path(__file__).resolve().parents[1]


def folder_of(configs: Sequence[Path]) -> Path:
    """The folder of an experiment, from config.yaml and its config files; later ones override."""
    import yaml

    told = {"results": "results"}
    for path in (ROOT / "config.yaml", *configs):
        found = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        told |= {key: found[key] for key in ("results", "experiment") if key in found}
    return Path(told["results"]).expanduser() / str(told["experiment"])


def show(experiment: str | Path, width: int = 100) -> str:
    """The text to print: the opening, the table of scores, and the places of other results.

    Args:
        experiment: the experiment's folder, such as results/demo.
        width: columns of the terminal.

    Raises:
        SeedbedError: the experiment has no summary yet, or the summary was changed since its rule wrote it.
    """
    folder = Path(experiment)
    facts = folder / "summary.json"
    if not facts.exists():
        raise SeedbedError(
            "this experiment has no summary yet",
            where=str(facts),
            hint="run it first: make demo, or snakemake --cores 2",
        )
    checksums.compare([facts])
    found = read_json(facts)
    parts = [opening(found, width), table(found["table"], width), places(folder)]
    return "\n\n".join(parts)


def opening(found: Mapping[str, Any], width: int) -> str:
    """The lines of the opening behind their labels; of many questions the answers alone."""
    parts = [textwrap.fill(found["lead"], width)] if found["lead"] else []
    groups = found["groups"]
    if len(groups) > MAX_WHOLE:
        parts.append(labelled([(one["place"], one["lines"][0]["text"]) for one in groups], width))
    else:
        parts += [
            "\n".join(filter(None, [one["place"], labelled(pairs(one["lines"]), width)])) for one in groups
        ]
    return "\n".join([*parts, *([labelled(pairs(found["others"]), width)] if found["others"] else [])])


def pairs(lines: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    """Label and text of each line."""
    return [(line["label"], line["text"]) for line in lines]


def labelled(lines: Sequence[tuple[str, str]], width: int) -> str:
    """Texts behind their labels, wrapped."""
    indent = max(len(label) for label, _ in lines) + 2
    told = []
    for label, text in lines:
        indents = dict.fromkeys(("initial_indent", "subsequent_indent"), " " * indent)
        filled = textwrap.fill(text, width, break_on_hyphens=False, **indents)
        told.append(label + filled[len(label) :])
    return "\n".join(told)


def table(found: Mapping[str, Any], width: int) -> str:
    """The scores, aligned, above what they are; headers are as wide as their columns."""
    columns = list(zip(found["header"], *found["rows"], strict=True))
    widths = [max(map(len, [*name.split(), *cells])) for name, *cells in columns]
    names = [textwrap.wrap(name, size) for (name, *_), size in zip(columns, widths, strict=True)]
    deepest = max(map(len, names))
    header = zip(*([""] * (deepest - len(name)) + name for name in names), strict=True)
    rows = [*header, ["-" * size for size in widths], *found["rows"]]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, textwrap.fill(found["caption"], width)])


def places(folder: Path) -> str:
    """The places of report, summary and figures."""
    report = folder / "report.html"
    lines = [f"Summary: {folder / 'summary.md'}", f"Figures: {folder / 'figures'}"]
    return "\n".join([f"Report:  {report} (opens in a browser)", *lines] if report.exists() else lines)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "experiment", type=Path, nargs="?", help="the experiment's folder, such as results/demo"
    )
    parser.add_argument("--configfile", type=Path, nargs="+", default=[], help="or its config files")
    asked = parser.parse_args()
    try:
        experiment = asked.experiment or folder_of(asked.configfile)
        with explaining_system_errors():
            print(for_terminal(show(experiment, min(100, shutil.get_terminal_size().columns))))
    except SeedbedError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
