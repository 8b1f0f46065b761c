"""Print an experiment's answer and its test scores on the terminal: python scripts/show.py results/demo

It only imports light modules, so that it prints at once.
"""

import argparse
import csv
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core import checksums
from seedbed.core.bag_of_words import bag_name
from seedbed.core.errors import SeedbedError, explaining_system_errors
from seedbed.core.files import read_json
from seedbed.core.printable import for_terminal
from seedbed.core.words import (
    better,
    capital,
    framework_name,
    mean_sd,
    metric_name,
    percent,
    recipe_text,
    unit_of,
    value_range,
)

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
    """The text to print: the answer, the table of summary.csv, and the places of other results.

    Args:
        experiment: the experiment's folder, such as results/demo.
        width: columns of the terminal.

    Raises:
        SeedbedError: the experiment has no summary yet, or the summary was changed since its rule wrote it.
    """
    folder = Path(experiment)
    facts, table = folder / "summary.json", folder / "summary.csv"
    for path in (facts, table):
        if not path.exists():
            raise SeedbedError(
                "this experiment has no summary yet",
                where=str(path),
                hint="run it first: make demo, or snakemake --cores 2",
            )
    checksums.compare([facts, table])
    found = read_json(facts)
    with open(table, encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["test_set"] == "all"]
    metrics = dict.fromkeys(row["metric"] for row in rows)
    titled = len(metrics) > 1
    tables = [score_table(rows, found["recipes"], metric, titled=titled) for metric in metrics]
    parts = [answer(found["answer"], width), *tables, baselines(rows), places(folder)]
    return "\n\n".join(filter(None, parts))


def answer(texts: Sequence[str | Sequence[str]], width: int) -> str:
    """The paragraphs and lists of the answer, wrapped."""
    lines = []
    for text in texts:
        if isinstance(text, str):
            lines.append(textwrap.fill(text, width))
        else:
            lines += [textwrap.fill(f"- {item}", width, subsequent_indent="  ") for item in text]
    return "\n".join(lines)


def score_table(
    rows: Sequence[dict[str, str]], recipes: Mapping[str, Mapping[str, Any]], metric: str, *, titled: bool
) -> str:
    """One line for each group of seeds, for one metric; * marks the best recipe on validation.

    Args:
        rows: of summary.csv, as text.
        recipes: family and swept values of each.
        metric: the metric to show.
        titled: whether a line above names the metric, its unit and its direction.
    """
    rows = [row for row in rows if row["metric"] == metric]
    name = metric_name(metric)
    columns = (f"test {name}", "over seeds, these examples", "n", "collapsed", f"validation {name}")
    keys = [key for key in ("dataset", "model") if len({row[key] for row in rows}) > 1]
    keys += ["framework", "init", "recipe"]
    best = {_place(row) for row in rows if row["selection"] == "best"}
    lines = [[*keys, *columns]]
    for row in rows:
        if row["selection"] != "equal":
            continue
        words = {
            **row,
            "framework": framework_name(row["framework"]),
            "recipe": recipe_text(recipes, row["recipe"]),
        }
        names = [words[key] for key in keys]
        names[-1] += " *" if _place(row) in best else ""
        lines.append(
            [
                *names,
                mean_sd(metric, _number(row["mean"]), _number(row["sd"])),
                value_range(metric, _number(row["ci_low"]), _number(row["ci_high"])),
                row["n_seeds"],
                row["n_collapsed"],
                mean_sd(metric, _number(row["validation_mean"]), _number(row["validation_sd"])),
            ]
        )
    text = _aligned(lines)
    if titled:
        unit = unit_of(metric)
        inside = ", ".join(filter(None, ("" if unit.sign else unit.value, better(metric))))
        text = f"{capital(name)} ({inside})\n{text}"
    notes = ["* best recipe on validation"] if best else []
    if any(row["n_collapsed"] not in ("", "0") for row in rows):
        notes.append(
            "collapsed: one class, or one answer, throughout validation or test; or a loss not finite"
        )
    return "\n".join([text, *notes])


def _place(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[key] for key in ("dataset", "model", "framework", "init", "recipe"))


def _number(text: str) -> float | None:
    return float(text) if text else None


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([rows[0], "  ".join("-" * width for width in widths), *rows[1:]])


def baselines(rows: Sequence[dict[str, str]]) -> str:
    """The baselines on each dataset's test split; empty if the task has none."""
    found = {row["dataset"]: row for row in rows if row["majority_share"]}
    return "\n".join(
        f"To beat on {dataset}, test: majority class {percent(_number(row['majority_share']))}, "
        f"{bag_name(row)} {percent(_number(row['bag_of_words']))}"
        for dataset, row in found.items()
    )


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
