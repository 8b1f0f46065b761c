"""The folder of an analysis of results from outside: tables, figures, summary and report, all or nothing."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.files import publish_folder, write_json, write_text
from seedbed.core.rows import Row, write_table
from seedbed.core.tasks.metrics import SCORES_OF
from seedbed.outside import document, drawing
from seedbed.outside.analysis import Analysis, Question

RECORD = "analysis.json"  # tells a folder that an analysis made from any other
# Columns by table, with the names and meanings that they have in the tables of an experiment. A system stands
# in the place of model, framework, init and recipe, and `seed` in that of both seeds.
COLUMNS = {
    "runs": ("test_examples", "test_majority_share", "collapsed", "not_above_majority"),
    "summary": (
        "dataset", "system", "metric", "n_seeds", "n_collapsed", "n_not_above_majority", "mean", "sd",
        "sd_new_examples", "ci_low", "ci_high", "ci_method", "both_low", "both_high", "median", "iqm", "min",
        "max", "mean_without_collapsed", "sd_without_collapsed", "binomial_se", "majority_share",
    ),
    "contrasts": (
        "dataset", "a", "b", "metric", "paired", "n_a", "n_b", "delta", "error_reduction", "ci_low",
        "ci_high", "p_value", "p_holm", "direction", "bootstrap_low", "bootstrap_high", "standard_error",
        "se_seeds", "se_interaction", "se_examples", "t_low", "t_high", "seed_correlation", "pairing_ratio",
        "p_exact", "probability_of_improvement", "aso_eps_min", "interval", "test", "method", "no_verdict",
        "delta_without_collapsed", "ci_low_without_collapsed", "ci_high_without_collapsed",
    ),
    "pairs": (
        "dataset", "a", "b", "seed", "examples", "both_right", "only_a_right", "only_b_right", "both_wrong",
        "p_value", "p_holm",
    ),
    "churn": (
        "dataset", "system", "n_seeds", "examples", "changed", "changed_share", "mean_disagreement",
        "always_right", "never_right", "never_right_share",
    ),
    "never_right": ("dataset", "example", "label", "runs", "most_common_prediction"),
    "confusion": ("dataset", "system", "label", "prediction", "count"),
}  # fmt: skip


def check_folder(folder: Path) -> None:
    """Refuse a folder with anything but an earlier analysis, before anything is computed.

    Raises:
        SeedbedError: something else is there.
    """
    if folder.is_dir() and (not any(folder.iterdir()) or (folder / RECORD).is_file()):
        return
    around = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if around == folder or not around.is_dir():
        raise SeedbedError(
            "an analysis is written into a folder of its own",
            where=str(folder),
            found="a folder with other files"
            if folder.is_dir()
            else f"{around if not folder.exists() else folder} is a file",
            hint="name a folder that is not there yet, or one that an analysis made: --output FOLDER",
        )


def write(analysis: Analysis, question: Question, folder: Path) -> dict[str, Any]:
    """Write everything into a folder, which appears whole; an earlier analysis there gives way.

    Returns:
        What the terminal shows, see `report.summary.facts_of`.

    Raises:
        SeedbedError: see `check_folder`.
    """
    check_folder(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as private:
        ready = Path(private) / "ready"  # with the access that other folders have
        ready.mkdir()
        facts = _write(analysis, question, ready)
        publish_folder(ready, folder)
    return facts


def _write(analysis: Analysis, question: Question, folder: Path) -> dict[str, Any]:
    figures = folder / "figures"
    figures.mkdir()
    tables = _tables(analysis)
    for name, (columns, rows) in tables.items():
        told = ({column: row[column] for column in columns} for row in rows)
        write_table(folder / f"{name}.csv", columns, told)
    captions = drawing.draw(analysis.experiment, figures)
    write_json(folder / RECORD, document.record(analysis, question))
    drawn = {name: figures / f"{name}.svg" for name in captions}
    write_text(folder / "report.html", document.report(analysis, question, drawn, captions))
    text, facts = document.summary(
        analysis, [*(f"{name}.csv" for name in tables), "report.html", "figures/", RECORD]
    )
    write_text(folder / "summary.md", text)
    write_json(folder / "summary.json", facts)
    return facts


# --- tables -------------------------------------------------------------------------------------------------

Named = tuple[Sequence[str], Sequence[Row]]  # columns, and rows that have at least these


def _tables(analysis: Analysis) -> dict[str, Named]:
    """The tables by name; those of predictions only where these are known."""
    experiment = analysis.experiment
    column = f"test_{_name(experiment.metric)}"
    scores = [{**run, column: run.value(f"test_{experiment.metric}")} for run in experiment.runs]
    rows: dict[str, Sequence[Row]] = {
        "runs": scores,
        "summary": experiment.summary,
        "contrasts": experiment.contrasts,
        **{name: found for name, found in experiment.tables.items() if found},
    }
    columns = {**COLUMNS, "runs": ("dataset", "system", "seed", column, *COLUMNS["runs"])}
    return {name: (columns[name], [_of_systems(row) for row in found]) for name, found in rows.items()}


# columns that an experiment calls otherwise
CALLED = {"recipe": "system", "recipe_a": "a", "recipe_b": "b", "init_seed": "seed"}


def _of_systems(row: Row) -> Row:
    """The row with systems in the place of recipes, and the metric as the files call it."""
    called = {name: row[own] for own, name in CALLED.items() if own in row}
    return {**row, **called, **({"metric": _name(row["metric"])} if "metric" in row else {})}


def _name(metric: str) -> str:
    """The metric as the files call it."""
    for beginning in SCORES_OF:
        metric = metric.removeprefix(beginning)
    return metric
