"""`measure` and `scaling`: how a grid's time grows with seeds, GPUs and batch size, and what limits it."""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import reached, record_table, tables
from bench.floor import Peaks
from bench.processes import BenchError, describe_machine
from bench.sidebyside import base_overlay, default_profile, say
from bench.tables import Row
from bench.workload import Workload, files, forget_runs, make_workload, merged, prepare, records, snakemake
from seedbed.config.plan import Plan
from seedbed.core.rows import grouped, read_table, write_table
from seedbed.running import gpus

MODES = ("separate", "batches", "fused")
PARTS = ("start_up", "train", "evaluate", "write")
LABELS = {"seeds": "seeds", "gpus": "GPUs", "runs_per_gpu": "runs a GPU", "cores": "cores"}
HELD = ("mode", "frameworks", "inits", "seeds", "gpus", "runs_per_gpu", "cores", "precision", "note")
# what a curve does not hold either: a host with more GPUs has more cores, and each GPU fewer of the runs
VARIES_WITH = {"gpus": ("runs_per_gpu", "cores")}
PART_NAMES = {"start_up": "start-up", "train": "training", "evaluate": "evaluation", "write": "writing"}
COLUMNS = (
    "mode", "seeds", "gpus", "runs_per_gpu", "batch_runs", "at_once", "batch_size", "precision", "dataset",
    "model", "frameworks", "inits", "cores", "device", "runs", "units", "lanes", "wall_seconds",
    "start_up_seconds", "train_seconds", "evaluate_seconds", "write_seconds", "snakemake_seconds",
    "samples_per_second", "peak_memory_mib", "note",
)  # fmt: skip
TOLD = ("seeds", "runs_per_gpu", "batch_runs", "at_once", "batch_size")  # in the settings of a record

# --- measuring ---


def measure(asked: argparse.Namespace) -> None:
    """Run the grid of an experiment once, preparation left out, and add a row to the CSV."""
    machine = describe_machine()
    if asked.gpus > len(machine["gpus"]):
        raise BenchError(f"{asked.gpus} GPUs were asked for, PyTorch sees {len(machine['gpus'])}")
    overlay = merged(base_overlay(asked, asked.gpus > 0), _overlay(asked))
    profile = default_profile(asked, asked.gpus > 0)
    folder = asked.folder.resolve()
    work = make_workload(folder, asked.configfile, overlay, asked.cores, profile)
    if asked.batch_size:
        name = work.config["grid"]["recipes"][0]
        overlay = merged(overlay, {"recipes": {name: {"batch_size": asked.batch_size}}})
        work = make_workload(folder, asked.configfile, overlay, asked.cores, profile)
    prepare(work, "prepare")
    forget_runs(work)
    usage = snakemake(work, "measure", watch=True)
    found = records(work)
    units = _units(work, len(found), asked.kind)
    row = {
        **{
            name: getattr(asked, name)
            for name in ("seeds", "gpus", "runs_per_gpu", "at_once", "cores", "note")
        },
        "mode": asked.kind,
        "batch_runs": work.config["batches"]["runs"],
        "batch_size": work.recipe["batch_size"],
        "precision": work.recipe["precision"],
        "dataset": work.dataset,
        "model": work.model,
        "frameworks": " ".join(work.config["grid"]["frameworks"]),
        "inits": " ".join(work.config["grid"]["inits"]),
        "device": found[0]["device"],
        "runs": len(found),
        "units": units,
        "lanes": min(_lanes(asked, work.config["threads"]), units),
        "wall_seconds": round(usage.wall, 2),
        **{f"{part}_seconds": round(_median(found, part), 3) for part in PARTS},
        "snakemake_seconds": round(usage.snakemake.own_seconds(usage.wall, asked.cores), 2),
        "samples_per_second": round(_samples(work) * len(found) / usage.wall, 2),
        "peak_memory_mib": max(record["peak_memory_mib"] for record in found),
    }
    rows = read_table(asked.csv, COLUMNS) if asked.csv.exists() else []
    write_table(asked.csv, COLUMNS, [*rows, row])
    files.write_json(asked.csv.with_suffix(".machine.json"), machine)
    say(f"{asked.kind}, {asked.seeds} seeds: {len(found)} runs in {usage.wall:.1f} s")
    floors, peaks = _floors(work, asked, found)
    print(reached.section(floors, work.recipe["precision"], peaks))
    if asked.record:
        add_record(asked, machine, row, floors)


def _floors(
    work: Workload, asked: argparse.Namespace, found: Sequence[Row]
) -> tuple[list[Row], dict[str, Peaks]]:
    """The grid's row of floor.csv, if its work is counted, and the peaks that were measured."""
    need = reached.needed(work)
    if need is None:
        return [], {}
    threads = work.config["threads"] * (1 if asked.gpus else _lanes(asked, work.config["threads"]))
    peaks = reached.measure_peaks(work, threads)[threads]
    taken = reached.training_wall(found)
    row = reached.grid_row(need, len(found), peaks.times(asked.gpus or 1), taken)
    return [row], {f"one GPU of {asked.gpus}" if asked.gpus else f"a process with {threads} thread(s)": peaks}


def add_record(
    asked: argparse.Namespace, machine: Mapping[str, Any], row: Row, floors: Sequence[Row]
) -> None:
    """Add a measured grid to the table of records; `row` is the one of the CSV."""
    told = [f"{name}={row[name]}" for name in TOLD if name == "seeds" or row[name] > 1]
    measured = {
        "cores": row["cores"],
        "settings": " ".join([*told, *asked.set, *([asked.note] if asked.note else [])]),
        **{name: row[name] for name in ("runs", "mode", "precision", "wall_seconds")},
    }
    (counted,) = floors or [None]
    record_table.add(record_table.record(machine, asked.gpus, asked.configfile, measured, counted, asked.csv))


def _overlay(asked: argparse.Namespace) -> dict[str, Any]:
    overlay: dict[str, Any] = {"experiment": "bench_measure", "grid": {"seeds": list(range(asked.seeds))}}
    if asked.gpus:
        visible = gpus.devices({}) or list(range(asked.gpus))
        overlay["gpus"] = {"devices": visible[: asked.gpus], "runs_per_gpu": asked.runs_per_gpu}
    if asked.kind == "batches":
        overlay["batches"] = {"runs": asked.batch_runs or 2 * asked.seeds, "at_once": asked.at_once}
    if asked.kind == "fused":
        overlay |= {"fused_seeds": True, "batches": {"runs": asked.batch_runs or 1, "at_once": 1}}
    return overlay


def _lanes(asked: argparse.Namespace, threads: int) -> int:
    """How many runs, or groups of fused seeds, may be at work at a time: as many as cores and GPUs allow."""
    of_a_job = asked.at_once if asked.kind == "batches" else 1
    jobs = max(1, asked.cores // (threads * of_a_job))
    if asked.gpus:
        jobs = min(jobs, asked.gpus * asked.runs_per_gpu)
    return jobs * of_a_job


def _units(work: Workload, runs: int, mode: str) -> int:
    """What has the phases of run.json to itself: a run; of fused seeds, their group."""
    return len({run.batch for run in Plan(work.raw()).runs}) if mode == "fused" else runs


def _median(found: Sequence[Row], part: str) -> float:
    return statistics.median(record["seconds"][part] for record in found)


def _samples(work: Workload) -> int:
    return work.recipe["epochs"] * work.sizes()["train"]


# --- the page ---


def command(asked: argparse.Namespace) -> None:
    """Draw the plots of a CSV of measurements, and write the page."""
    rows = read_table(asked.csv, COLUMNS)
    if not rows:
        raise BenchError(f"{asked.csv} has no rows")
    drawn = draw(rows, asked.page.parent)
    files.write_text(asked.page, page(rows, drawn))
    print(asked.page)


def limits(row: Row) -> str:
    """What a measured grid's time went to, in words.

    A unit is a run, or a group of fused seeds; lanes are how many units may be at work at a time. The lanes'
    seconds are the wall time times their number; a unit's phases take a part of them, and what is left are
    jobs that start, Snakemake, tables and report, and lanes without work at the end.
    """
    whole = row["wall_seconds"] * row["lanes"]
    parts = {PART_NAMES[part]: row[f"{part}_seconds"] * row["units"] / whole for part in PARTS}
    parts["between runs and after them"] = max(0.0, 1 - sum(parts.values()))
    ordered = sorted(parts.items(), key=lambda part: -part[1])
    return ", ".join(f"{name} {100 * share:.0f}%" for name, share in ordered[:3])


def page(rows: Sequence[Row], drawn: Sequence[tuple[str, str]]) -> str:
    """The page: plots with captions, then a table of all measurements and what limits each."""
    lines = [
        (
            row["mode"], str(row["seeds"]), row["frameworks"].replace(" ", ", "),
            row["inits"].replace(" ", ", "), row["precision"], row["device"],
            str(row["gpus"] or "–"), str(row["lanes"]), str(row["batch_size"]), str(row["runs"]),
            tables.number(row["wall_seconds"]), tables.number(row["wall_seconds"] / row["runs"]),
            tables.number(row["samples_per_second"]), tables.number(row["peak_memory_mib"]),
            limits(row), str(row["note"] or ""),
        )
        for row in rows
    ]  # fmt: skip
    header = (
        "mode", "seeds", "frameworks", "inits", "precision", "device", "GPUs", "at a time",
        "batch size", "runs", "wall (s)", "wall a run (s)", "samples/s", "peak memory (MiB)",
        "what the time goes to", "note",
    )  # fmt: skip
    text = [
        "# How a grid scales",
        "",
        "Each point is one grid with Snakemake, tables and report, preparation left out. `separate`: a "
        "process a run; `batches`: several runs a job; `fused`: a cell's seeds as one batched model. Samples "
        "a second are training examples of all runs by wall second; memory is the largest of a process. What "
        "the time goes to is a part of the seconds of all places in which a run may be at work; each row's "
        "first part is what limits it. Where several rows are one point of a curve, it shows the fastest.",
        "",
    ]
    text += [part for name, caption in drawn for part in (f"![{name}]({name}.svg)", "", caption, "")]
    return "\n".join([*text, tables.table(header, lines, 6)])


def draw(rows: Sequence[Row], folder: Path) -> list[tuple[str, str]]:
    """Draw what the rows have two values of: seeds, GPUs, batch size; names and captions of the plots."""
    drawn = []
    default = statistics.mode(row["batch_size"] for row in rows)
    sweeps = (
        ("seeds", "seeds", [row for row in rows if row["batch_size"] == default], f"batch size {default}"),
        ("gpus", "GPUs", [row for row in rows if row["gpus"] and row["batch_size"] == default],
         f"batch size {default}"),
        ("batch_size", "batch size", rows, "equal seeds in a line"),
    )  # fmt: skip
    for column, name, chosen, held in sweeps:
        fixed = [key for key in HELD if key not in (column, *VARIES_WITH.get(column, ()))]
        lines = {
            key: _fastest(members, column)
            for key, members in grouped(chosen, *fixed).items()
            if len({row[column] for row in members}) > 1
        }
        if lines:
            caption = (
                f"Wall seconds of the grid by run (left, both axes logarithmic) and the largest memory of a "
                f"process (right) by {name}; {held}."
            )
            _draw(
                column,
                name,
                {_label(fixed, key, lines): line for key, line in lines.items()},
                caption,
                folder,
            )
            drawn.append((f"scaling_{column}", caption))
    return drawn


def _fastest(rows: Sequence[Row], column: str) -> list[Row]:
    """Of each value of the column the row with the least wall time, in the order of the values."""
    places = sorted(grouped(rows, column).items())
    return [min(same, key=lambda row: row["wall_seconds"]) for _, same in places]


def _label(names: Sequence[str], key: Sequence[Any], lines: dict[Any, Any]) -> str:
    """What tells a line from the others; its mode, where nothing does."""
    told = []
    for place, name in enumerate(names):
        differs = name == "mode" or len({other[place] for other in lines}) > 1
        if differs and key[place] not in (None, ""):  # there may be no note
            told.append(f"{LABELS[name]}: {key[place]}" if name in LABELS else str(key[place]))
    return ", ".join(told)


def _draw(column: str, name: str, lines: dict[str, list[Row]], caption: str, folder: Path) -> None:
    # seaborn and matplotlib take two seconds to import, and measuring needs neither
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator, StrMethodFormatter

    from seedbed.figures import base
    from seedbed.figures.captions import Caption

    base.set_style()
    looks = base.make_looks(list(lines))
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
    for label, line in lines.items():
        look, x = looks[label], [row[column] for row in line]
        style = {"color": look.colour, "linestyle": look.line, "marker": look.marker}
        left.plot(x, [row["wall_seconds"] / row["runs"] for row in line], **style)
        right.plot(x, [row["peak_memory_mib"] for row in line], **style)
    ticks = sorted({row[column] for line in lines.values() for row in line})
    for axis, title in ((left, "wall seconds a run"), (right, "peak memory (MiB)")):
        axis.set(xscale="log", xlabel=name, title=title)
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.xaxis.set_minor_locator(NullLocator())
    left.set_yscale("log")
    left.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 4, 5, 7)))
    left.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    left.yaxis.set_minor_formatter(NullFormatter())
    right.set_ylim(bottom=0)
    said = Caption(caption)
    base.finish(figure, [base.line_handle(look) for look in looks.values()], said)
    path = folder / f"scaling_{column}"
    folder.mkdir(parents=True, exist_ok=True)
    base.save(figure, said, path.with_suffix(".svg"), path.with_suffix(".png"))
