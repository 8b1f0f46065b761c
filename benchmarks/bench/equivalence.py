"""`equivalence`: seeds of the lab's way; `compare`: the test whether Seedbed reaches the same accuracies."""

import argparse
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import tables
from bench.processes import BenchError, describe_machine
from bench.sidebyside import base_overlay, say
from bench.tables import Row
from bench.workload import files, make_workload, merged, prepare, run_plain, statistics_of
from seedbed.analysis import statistics
from seedbed.analysis.spread import seed_error
from seedbed.analysis.table_rows import RunRow
from seedbed.config.runs import RUN_KEYS
from seedbed.core.rows import grouped, read_table, write_table

COLUMNS = (
    "dataset", "model", "framework", "init", "seed", "best_epoch", "validation_accuracy", "test_accuracy",
    "wall_seconds", "device",
)  # fmt: skip
RESULT_COLUMNS = (
    "framework", "init", "n_lab", "n_seedbed", "lab_mean", "lab_sd", "seedbed_mean", "seedbed_sd", "delta",
    "standard_error", "degrees", "low", "high", "equivalence_low", "equivalence_high", "margin",
    "p_equivalence", "p_equivalence_holm", "equivalence",
)  # fmt: skip


# --- the runs ---


def train(asked: argparse.Namespace) -> None:
    """Train the seeds that the CSV lacks, so many at a time, and add a row for each."""
    machine = describe_machine()
    asked.csv.parent.mkdir(parents=True, exist_ok=True)
    overlay = merged({"experiment": "bench_grid"}, base_overlay(asked, bool(machine["gpus"])))
    work = make_workload(
        asked.folder.resolve(),
        asked.configfile,
        overlay,
        asked.cores,
        lab_workers=asked.lab_workers,
        lab_lean=asked.lab_lean,
    )
    trained = {
        "dataset": work.dataset,
        "model": work.model,
        "recipe": work.recipe,
        "recipe_weights": asked.recipe_weights,
    }
    rows = kept_rows(asked.csv, trained)
    say(f"prepared in {prepare(work, 'prepare').wall:.0f} s")
    files.write_json(asked.csv.with_suffix(".machine.json"), {**machine, "trained": trained})
    there = {(row["framework"], row["init"], row["seed"]) for row in rows}
    grid = work.config["grid"]
    wanted = itertools.product(asked.seeds, grid["inits"], grid["frameworks"])
    cells = [(framework, init, seed) for seed, init, framework in wanted]
    cells = [cell for cell in cells if cell not in there]

    def done(place: int, report: Row) -> None:
        (framework, init, seed), wall = cells[place], report["wall_seconds"]
        row = {
            "dataset": work.dataset,
            "model": work.model,
            "framework": framework,
            "init": init,
            "seed": seed,
        }
        rows.append(row | selected(report["epochs"]) | {"wall_seconds": wall, "device": report["device"]})
        rows.sort(key=lambda row: (row["framework"], row["init"], row["seed"]))
        write_table(asked.csv, COLUMNS, rows)
        reached = 100 * selected(report["epochs"])["test_accuracy"]
        say(f"{framework}, {init}, seed {seed}: test accuracy {reached:.1f}%, {wall:.0f} s")

    run_plain(work, cells, asked.at_once, done, test_every_epoch=True, recipe_weights=asked.recipe_weights)
    say(f"{len(rows)} runs are in {asked.csv}")


def kept_rows(csv: Path, trained: Mapping[str, Any]) -> list[Row]:
    """The rows of a CSV of `train` to which runs are to be added; `trained` tells of what data and recipe.

    Raises:
        BenchError: it holds runs of another dataset or model; or, by the file beside it that tells of its
            machine, of another recipe or other initial weights.
    """
    rows = read_table(csv, COLUMNS) if csv.exists() else []
    beside = csv.with_suffix(".machine.json")
    told = files.read_json(beside).get("trained") if rows and beside.exists() else None
    found = [told] if told else [{name: row[name] for name in ("dataset", "model")} for row in rows]
    for one in found:
        other = [name for name in one if one[name] != trained[name]]
        if other:
            raise BenchError(f"{csv} holds runs with another {other[0]} than asked for: name another file")
    return rows


def selected(epochs: Sequence[Mapping[str, Mapping[str, float]]]) -> Row:
    """Accuracies at the best validation epoch: the highest accuracy, then the lowest loss, then the first.

    Args:
        epochs: accuracy and loss of validation and test after every epoch.
    """
    order = range(len(epochs))
    best = max(order, key=lambda index: (
        epochs[index]["validation"]["accuracy"], -epochs[index]["validation"]["loss"], -index
    ))  # fmt: skip
    told = {f"{split}_accuracy": epochs[best][split]["accuracy"] for split in ("validation", "test")}
    return {"best_epoch": best + 1, **told}


# --- the test ---


def compare(lab: Sequence[Row], runs: Sequence[RunRow], settings: Mapping[str, Any]) -> list[Row]:
    """Seedbed minus the lab's way, by framework and init: two one-sided tests within the margin of the init.

    The test is the one that Seedbed makes of its frameworks where predictions are not known, over seeds: both
    sides have the same test examples. Standard errors and degrees of freedom after Welch (1947), p-values of
    equivalence after Schuirmann (1987), adjusted over the rows of this call after Holm (1979).

    Args:
        lab: rows with dataset, model, framework, init, seed and test_accuracy, a fraction.
        runs: rows of an experiment's runs.csv, of one dataset, model and recipe.
        settings: `statistics` of the config: confidence and equivalence_margin by init.

    Raises:
        BenchError: the sides are not of the same dataset, model, frameworks, inits and seeds.

    Returns:
        Rows of RESULT_COLUMNS. `equivalence` is equivalent (the adjusted p is below 1 - confidence),
        different (the interval at the confidence excludes 0), inconclusive, or None where no error is known.
    """
    if len(grouped(runs, "dataset", "model", "recipe")) > 1:
        raise BenchError("runs.csv has several datasets, models or recipes")
    _check_same({_cell(row, row["seed"]) for row in lab}, {_cell(run, run.init_seed) for run in runs})
    by_lab, by_run = (grouped(rows, "framework", "init") for rows in (lab, runs))
    rows = [_difference(key, by_lab[key], by_run[key], settings) for key in by_lab]
    adjusted = statistics.holm([row["p_equivalence"] for row in rows])
    for row, p_holm in zip(rows, adjusted, strict=True):
        row["p_equivalence_holm"] = p_holm
        row["equivalence"] = _verdict(row, 1 - settings["confidence"])
    return rows


def _cell(row: Mapping[str, Any], seed: int) -> tuple[str | int, ...]:
    return (*(row[key] for key in ("dataset", "model", "framework", "init")), seed)


def _check_same(lab: set[tuple[str | int, ...]], runs: set[tuple[str | int, ...]]) -> None:
    for side, cells in (("the lab's way", lab - runs), ("Seedbed", runs - lab)):
        if cells:
            first = "/".join(map(str, min(cells)))
            raise BenchError(
                f"only {side} has {first} ({len(cells)} such runs): compare equal grids of one dataset"
            )


def _difference(
    key: tuple[str, str], lab: Sequence[Row], runs: Sequence[RunRow], settings: Mapping[str, Any]
) -> Row:
    framework, init = key
    a = {run.seeds: run.value("test_accuracy") for run in runs}
    b = {(row["seed"], row["seed"]): row["test_accuracy"] for row in lab}
    errors = [found for side in (a, b) if (found := seed_error(list(side.values()), tuple(side)))]
    delta = statistics.mean(list(a.values())) - statistics.mean(list(b.values()))
    row: Row = dict.fromkeys(RESULT_COLUMNS)
    row |= {
        "framework": framework,
        "init": init,
        "delta": delta,
        "margin": settings["equivalence_margin"][init],
    }
    for name, side in (("seedbed", a), ("lab", b)):
        values = list(side.values())
        row |= {f"n_{name}": len(values), f"{name}_mean": statistics.mean(values)}
        row[f"{name}_sd"] = statistics.sample_sd(values)
    if min(len(a), len(b)) < 2 or not errors:
        return row
    variance = sum(error**2 for error, _ in errors)
    error, degrees = math.sqrt(variance), variance**2 / sum(part**4 / free for part, free in errors)
    confidence = settings["confidence"]
    for low, high, level in (
        ("low", "high", confidence),
        ("equivalence_low", "equivalence_high", 2 * confidence - 1),
    ):
        half = statistics.t_quantile(level, degrees) * error
        row |= {low: delta - half, high: delta + half}
    row |= {"standard_error": error, "degrees": degrees}
    row["p_equivalence"] = statistics.equivalence_p(delta, error, degrees, row["margin"])
    return row


def _verdict(row: Row, level: float) -> str | None:
    if row["p_equivalence_holm"] is None:
        return None
    if row["p_equivalence_holm"] < level:
        return "equivalent"
    return "inconclusive" if row["low"] <= 0 <= row["high"] else "different"


def command(asked: argparse.Namespace) -> None:
    """Compare a CSV of `train` with an experiment's runs.csv, and print and write the result."""
    needed = (*RUN_KEYS, "test_accuracy")
    lab, runs = (
        [row for row in rows if row["framework"] in asked.frameworks and row["init"] in asked.inits]
        for rows in (read_table(asked.csv, COLUMNS[:8]), RunRow.read(asked.runs, needed=needed))
    )
    if not lab:
        raise BenchError(f"{asked.csv} has no rows of {asked.frameworks} and {asked.inits}")
    rows = compare(lab, runs, statistics_of(asked.configfile))
    text = result_table(rows)
    print(text)
    if asked.output:
        write_table(asked.output.with_suffix(".csv"), RESULT_COLUMNS, rows)
        files.write_text(asked.output.with_suffix(".md"), text)


def result_table(rows: Sequence[Row]) -> str:
    """The result for people, in per cent and points."""

    def points(value: float | None) -> str:
        return "" if value is None else f"{100 * value:+.2f}"

    lines = []
    for row in rows:
        sides = [
            f"{100 * row[f'{side}_mean']:.2f} ± {100 * (row[f'{side}_sd'] or 0):.2f} (n = {row[f'n_{side}']})"
            for side in ("lab", "seedbed")
        ]
        bounds = [points(row[name]) for name in ("equivalence_low", "equivalence_high")]
        interval = " to ".join(filter(None, bounds))
        p_value = "" if row["p_equivalence_holm"] is None else f"{row['p_equivalence_holm']:.3g}"
        named = (tables.NAMES[row["framework"]], row["init"], f"{100 * row['margin']:g}")
        lines.append(
            (*named, row["equivalence"] or "not known", *sides, points(row["delta"]), interval, p_value)
        )
    sides = ("(a) the lab's way", "(b) Seedbed", "b minus a", "90% interval", "p after Holm")
    header = ("framework", "init", "margin (points)", "result", *sides)
    return tables.table(header, lines, 4)
