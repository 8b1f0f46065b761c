"""From measured runs to tables: medians with spreads, ratios, extrapolation; pure functions."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

FRAMEWORKS = ("fairseq", "transformers")
NAMES = {"fairseq": "fairseq", "transformers": "Transformers"}
SIDES = ("lab", "seedbed")
RUN_COLUMNS = (
    "side", "framework", "init", "seed", "repeat", "wall_seconds", "cpu_seconds", "start_up_seconds",
    "train_seconds", "evaluate_seconds", "rest_seconds", "samples_per_second", "tokens_per_second",
    "padding_share", "peak_memory_mib", "updates", "examples_evaluated", "device",
)  # fmt: skip
# column, what people read, whether less is better
MEASURES = (
    ("wall_seconds", "run: wall (s)", True),
    ("cpu_seconds", "run: CPU time (s)", True),
    ("start_up_seconds", "start-up (s)", True),
    ("train_seconds", "training (s)", True),
    ("evaluate_seconds", "evaluation (s)", True),
    ("rest_seconds", "writing, end of the process (s)", True),
    ("samples_per_second", "training: samples/s", False),
    ("tokens_per_second", "training: real tokens/s", False),
    ("padding_share", "padding share", True),
    ("peak_memory_mib", "peak memory (MiB)", True),
)
SUMMARY_COLUMNS = (
    "framework", "measure", "lab_median", "lab_min", "lab_max", "lab_n", "seedbed_median", "seedbed_min",
    "seedbed_max", "seedbed_n", "ratio",
)  # fmt: skip
GRID_COLUMNS = ("quantity", "kind", "seconds", "formula")

Row = dict[str, Any]


def run_row(record: Mapping[str, Any], wall: float, cpu: float | None, **names: Any) -> Row:
    """A row of runs.csv.

    Args:
        record: a report of the lab's way, or run.json.
        wall: wall seconds of the run's process; where it trained other runs too, those of the run.
        cpu: CPU seconds of the process and what it started; None where it trained other runs too.
        names: side, framework, init, seed, repeat, and examples_evaluated unless the record has it.
    """
    seconds = record["seconds"]
    phases = {f"{name}_seconds": seconds.get(name, 0.0) for name in ("start_up", "train", "evaluate")}
    copied = {name: record.get(name) for name in RUN_COLUMNS[11:]}
    rest = wall - sum(phases.values())
    return {**copied, **phases, "wall_seconds": wall, "cpu_seconds": cpu, "rest_seconds": rest, **names}


def spread(values: Sequence[float]) -> Row:
    """Median, smallest, largest and number."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}


def summarise(rows: Sequence[Row]) -> list[Row]:
    """Rows of summary.csv: each measure of both sides by framework, and how many times better Seedbed is.

    The ratio is that of the medians: the lab's by Seedbed's where less is better, else the reverse; None
    where a side is missing, zero, or the measure is a share.
    """
    found = []
    for framework in FRAMEWORKS:
        for column, _, less in MEASURES:
            row: Row = {"framework": framework, "measure": column}
            for side in SIDES:
                values = _values(rows, side, framework, column)
                told = spread(values) if values else dict.fromkeys(("median", "min", "max", "n"))
                row |= {f"{side}_{name}": value for name, value in told.items()}
            pair = row["lab_median"], row["seedbed_median"]
            known = all(pair) and column not in ("padding_share", "rest_seconds")
            row["ratio"] = (pair[0] / pair[1] if less else pair[1] / pair[0]) if known else None
            if row["lab_n"] or row["seedbed_n"]:
                found.append(row)
    return found


def _values(rows: Sequence[Row], side: str, framework: str, column: str) -> list[float]:
    chosen = [row for row in rows if (row["side"], row["framework"]) == (side, framework)]
    return [row[column] for row in chosen if row[column] is not None]


# --- whole grids ---


def whole_run(rows: Sequence[Row], updates: int, evaluated: int) -> float:
    """Seconds of a whole run, extrapolated from runs on a slice: medians of start-up, of training by update
    times `updates`, of evaluation by example times `evaluated`, and of the rest."""
    middle = {
        "start_up": statistics.median(row["start_up_seconds"] for row in rows),
        "update": statistics.median(row["train_seconds"] / row["updates"] for row in rows),
        "example": statistics.median(row["evaluate_seconds"] / row["examples_evaluated"] for row in rows),
        "rest": statistics.median(row["rest_seconds"] for row in rows),
    }
    return middle["start_up"] + updates * middle["update"] + evaluated * middle["example"] + middle["rest"]


def evaluated_examples(side: str, framework: str, epochs: int, sizes: Mapping[str, int]) -> int:
    """Examples that a run evaluates.

    fairseq-train the lab's way: validation and test after every epoch; the Trainer: validation after every
    epoch, test once; Seedbed: validation after every epoch, then both with the selected weights.
    """
    validation, test = sizes["validation"], sizes["test"]
    if side == "seedbed":
        return (epochs + 1) * validation + test
    return epochs * (validation + test) if framework == "fairseq" else epochs * validation + test


def extrapolate(
    rows: Sequence[Row],
    counts: Mapping[str, int],
    updates: int,
    epochs: int,
    sizes: Mapping[str, int],
    cores: int,
    around_run: float,
    after_runs: float,
    own_after_runs: float,
) -> list[Row]:
    """Rows of grid.csv for a grid on a CPU, from runs on a slice of its data.

    Args:
        rows: of runs.csv.
        counts: runs of the grid by framework.
        updates, epochs, sizes: of the whole run.
        cores: runs that work side by side, each on a core of its own.
        around_run: Snakemake's seconds around a run, measured with one job at a time.
        after_runs: seconds from the last run to the report, measured.
        own_after_runs: the part of it that is Snakemake's own.
    """
    found, totals, one_run = [], {}, {}
    for side in SIDES:
        for framework, number in counts.items():
            chosen = [row for row in rows if (row["side"], row["framework"]) == (side, framework)]
            evaluated = evaluated_examples(side, framework, epochs, sizes)
            seconds = whole_run(chosen, updates, evaluated)
            totals[side] = totals.get(side, 0.0) + number * seconds
            one_run[side, framework] = seconds
            formula = f"start-up + {updates:,} x an update + {evaluated:,} x an evaluated example + rest"
            found.append(_grid_row(f"{side}, a {framework} run", "extrapolated", seconds, formula))
    for framework in counts:
        ratio = one_run["lab", framework] / one_run["seedbed", framework]
        found.append(_grid_row(f"ratio of a {framework} run", "extrapolated", ratio, "lab / seedbed"))
    runs = sum(counts.values())
    lab = totals["lab"] / cores
    seedbed = (totals["seedbed"] + runs * around_run) / cores + after_runs
    own = runs * around_run / cores + own_after_runs
    found += [
        _grid_row("lab, grid, one run after another", "extrapolated", totals["lab"], "sum over the runs"),
        _grid_row(f"lab, grid, {cores} runs side by side without any loss", "extrapolated", lab,
                  f"sum over the runs / {cores}"),
        _grid_row("seedbed, around a run (Snakemake)", "measured", around_run,
                  "(wall of Snakemake - wall of its runs) / runs, one job at a time"),
        _grid_row("seedbed, after the runs: tables, figures, report", "measured on the slice",
                  after_runs, "wall"),
        _grid_row(f"seedbed, grid on {cores} cores", "extrapolated", seedbed,
                  f"(sum over the runs + {runs} x around a run) / {cores} + after the runs"),
        _grid_row("seedbed, Snakemake's own part of the grid", "extrapolated", own,
                  f"{runs} x around a run / {cores} + its own part after the runs"),
        _grid_row("ratio of the grids, both side by side", "extrapolated", lab / seedbed, "lab / seedbed"),
        _grid_row("Snakemake's own share of the grid", "extrapolated", own / seedbed, "its own part / grid"),
    ]  # fmt: skip
    return found


def whole_grid(
    rows: Sequence[Row], counts: Mapping[str, int], walls: Sequence[float], own: Sequence[float], at_once: int
) -> list[Row]:
    """Rows of grid.csv where Seedbed's whole grid was timed, and some runs a framework of the lab's way.

    Args:
        rows: of runs.csv.
        counts: runs of the grid by framework.
        walls: of Snakemake, one a repeat.
        own: Snakemake's own part of it in seconds, one a repeat.
        at_once: how many runs of the lab's way were timed at a time, and would be at work in its grid.
    """
    found, total, parts = [], 0.0, []
    for framework, number in counts.items():
        timed = _values(rows, "lab", framework, "wall_seconds")
        total += sum(timed) * number / len(timed)
        parts.append(f"{number}/{len(timed)} x the sum of {len(timed)} timed {framework} runs")
    wall = statistics.median(walls)
    lab, formula, how = total, " + ".join(parts), "one run after another"
    if at_once > 1:
        lab, formula, how = total / at_once, f"({formula}) / {at_once}", f"{at_once} runs at a time"
    found.append(_grid_row(f"lab, grid, {how}", "extrapolated", lab, formula))
    told = spread(walls)
    found += [
        _grid_row("seedbed, grid, Snakemake included", "measured", wall,
                  f"median of {told['n']}, {told['min']:.1f} to {told['max']:.1f} s"),
        _grid_row("ratio of the grids", "extrapolated", lab / wall, "lab / seedbed"),
        _grid_row("seedbed, Snakemake's own part of the grid", "measured", statistics.median(own),
                  "wall without any script at work + its CPU seconds beside scripts / cores"),
        _grid_row("Snakemake's own share of the grid", "measured",
                  statistics.median(part / whole for part, whole in zip(own, walls, strict=True)),
                  "its own part / wall, median"),
    ]  # fmt: skip
    return found


def _grid_row(quantity: str, kind: str, seconds: float, formula: str) -> Row:
    return {"quantity": quantity, "kind": kind, "seconds": seconds, "formula": formula}


# --- Markdown ---


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table; the first `left` columns are text, the others numbers."""
    rule = ["---"] * left + ["---:"] * (len(header) - left)
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *rows))


def number(value: float | None) -> str:
    """Three significant digits or all before the point; nothing for None."""
    if value is None:
        return ""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def _spread_text(row: Row, side: str) -> str:
    if not row[f"{side}_n"]:
        return ""
    low, high = number(row[f"{side}_min"]), number(row[f"{side}_max"])
    return f"{number(row[f'{side}_median'])} ({low} to {high}; n = {row[f'{side}_n']})"


def summary_table(rows: Sequence[Row]) -> str:
    """summary.csv for people."""
    names = {column: text for column, text, _ in MEASURES}
    lines = [
        (
            NAMES[row["framework"]],
            names[row["measure"]],
            _spread_text(row, "lab"),
            _spread_text(row, "seedbed"),
            number(row["ratio"]),
        )
        for row in rows
    ]
    header = ("framework", "median (smallest to largest)", "(a) the lab's way", "(b) Seedbed", "times better")
    return table(header, lines, 2)


def grid_table(rows: Sequence[Row]) -> str:
    """grid.csv for people; shares in per cent, ratios as such."""
    lines = []
    for row in rows:
        is_share, is_ratio = "share" in row["quantity"], row["quantity"].startswith("ratio")
        value = f"{100 * row['seconds']:.1f}%" if is_share else number(row["seconds"])
        lines.append(
            (row["quantity"], row["kind"], row["formula"], value if is_share or is_ratio else f"{value} s")
        )
    return table(("quantity", "", "how", "value"), lines, 3)
