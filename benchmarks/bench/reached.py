"""The floor of a workload's runs on this machine, and the share of it that they reached."""

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench import floor, tables
from bench.floor import Peaks, Work
from bench.processes import covered, run
from bench.tables import Row
from bench.workload import HERE, SPLITS, Workload, files, plain_environment


@dataclass(frozen=True)
class Needed:
    """What a run of a workload needs: all updates, and all evaluations."""

    training: Work
    evaluation: Work

    @property
    def whole(self) -> Work:
        return self.training + self.evaluation


def needed(work: Workload) -> Needed | None:
    """The work of a run on prepared data; None for models of the format auto, which are not counted.

    Validation is read after every epoch, and validation and test with the selected weights.
    """
    told = work.shape()
    if told["format"] == "auto":
        return None
    shape = floor.Shape(told["layers"], told["embed_dim"], told["ffn_dim"], _classes(work))
    recipe, evaluation = work.recipe, work.config["evaluation"]
    split = {name: floor.read_texts(_ids(work, name), work.limit()) for name in SPLITS}
    passes = {"validation": recipe["epochs"] + 1, "test": 1}
    if evaluation["test_curves"]:
        passes["test"] += recipe["epochs"]
    precision = recipe["precision"]
    evaluated = Work()
    for name, number in passes.items():
        evaluated += floor.evaluation(shape, split[name], evaluation["batch_size"], precision) * number
    trained = floor.training(shape, split["train"], recipe["epochs"], recipe["batch_size"], precision)
    return Needed(trained, evaluated)


def _classes(work: Workload) -> int:
    return len(files.read_json(work.results / "data" / work.dataset / "labels.json")["names"])


def _ids(work: Workload, split: str) -> list[list[int]]:
    return [row["ids"] for row in files.read_jsonl(work.data / "tokens" / f"{split}.jsonl")]


def measure_peaks(work: Workload, *threads: int) -> dict[int, Peaks]:
    """What the device of the runs does at most in their precision, by number of threads.

    On a CPU the threads are those of one process, also where so many runs are at work at a time.

    Raises:
        BenchError: the measurement failed.
    """
    asked = {
        "device": "cpu" if work.on_cpu else "cuda",
        "precision": work.recipe["precision"],
        "graphs": work.config["cuda_graphs"],
        "threads": sorted(set(threads)),
    }
    log = work.folder / "logs" / "peaks.log"
    run([sys.executable, str(HERE / "peaks.py"), json.dumps(asked)], log, **plain_environment(work))
    # warnings may stand around it
    (found,) = (json.loads(line) for line in log.read_text("utf-8").splitlines() if line.startswith("[{"))
    return {number: Peaks(**one) for number, one in zip(asked["threads"], found, strict=True)}


def training_wall(records: Sequence[Mapping[str, Any]]) -> float:
    """Seconds in which at least one of the runs trained or evaluated.

    A run does so from the end of its start-up until it writes its results, at the end of which run.json is
    written. Runs of one process that follow one another wait for none, and fused seeds share all phases.

    Args:
        records: run.json of each run with `written`, as `workload.records` gives them.
    """
    spans = []
    for record in records:
        seconds, end = record["seconds"], record["written"]
        spans.append((end - seconds["total"] + seconds["start_up"], end - seconds["write"]))
    return covered(spans)


# --- rows of floor.csv ---


def run_rows(name: str, need: Needed, peaks: Peaks, rows: Sequence[Row]) -> list[Row]:
    """A framework's training and evaluation beside the medians of Seedbed's runs.

    Args:
        name: of a run, such as "run of the slice".
        need: of a run.
        peaks: of the part of the machine that a run has.
        rows: of runs.csv.
    """
    found = []
    for framework in tables.FRAMEWORKS:
        mine = [row for row in rows if (row["side"], row["framework"]) == ("seedbed", framework)]
        parts = (("training", need.training, "train"), ("evaluation", need.evaluation, "evaluate"))
        for part, work, phase in parts if mine else ():
            taken = statistics.median(row[f"{phase}_seconds"] for row in mine)
            found.append(floor.row(f"{tables.NAMES[framework]} {name}: {part}", work, peaks, taken))
    return found


def grid_row(need: Needed, runs: int, peaks: Peaks, taken: float | None = None) -> Row:
    """The training and evaluation of all runs.

    Args:
        need: of a run.
        runs: of the grid.
        peaks: of all devices and cores that the grid has.
        taken: seconds, see `training_wall`; None: the grid was not run.
    """
    return floor.row(f"the grid, {runs} runs: training and evaluation", need.whole * runs, peaks, taken)


def devices(work: Workload, gpus: int) -> int:
    """How many of the machine's GPUs the grid uses: one without a profile that hands them out, 0 on a CPU."""
    if work.on_cpu or not work.profile:
        return 0 if work.on_cpu else 1
    chosen = work.config["gpus"]["devices"]
    return gpus if chosen == "auto" else len(chosen)


# --- for people ---


def section(rows: Sequence[Row], precision: str, peaks: Mapping[str, Peaks]) -> str:
    """The section "Floor" of bench.md.

    Args:
        rows: of floor.csv; none: the model's products are not counted.
        precision: of the products.
        peaks: what was measured, by what it was measured on, such as "one GPU".
    """
    if not rows:
        return "## Floor\n\nIt is counted for RoBERTa alone, not for models of the format auto.\n"
    lines = []
    for row in rows:
        share = "" if row["share"] is None else f"{100 * row['share']:.0f}%"
        lines.append((row["what"], *map(tables.number, floor.cells(row)), share))
    header = (
        "", "arithmetic (s)", "memory traffic (s)", "launches (s)", "floor (s)", "measured (s)",
        "share reached",
    )  # fmt: skip
    measured = "; ".join(_peaks_text(where, one) for where, one in peaks.items())
    text = (
        "The least time that the work takes on this machine. Arithmetic: operations without padding / "
        f"measured peak of {precision} products. Memory traffic: bytes / measured bandwidth of a copy. "
        "Launches: one an update and evaluated batch. The floor is the larger of arithmetic and traffic, and "
        f"the share reached is floor / measured. Peaks of {measured}. benchmarks/bench/floor.py says what is "
        "counted."
    )
    return f"## Floor\n\n{text}\n\n{tables.table(header, lines)}"


def _peaks_text(where: str, peaks: Peaks) -> str:
    launch = f", {1e6 * peaks.launch:.1f} µs a launch" if peaks.launch else ""
    operations, moved = (tables.number(value / 1e9) for value in (peaks.operations, peaks.bytes))
    return f"{where}: {operations} GFLOP/s, {moved} GB/s{launch}"
