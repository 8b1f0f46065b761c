"""`run`: the lab's way and Seedbed alternate on the same data; tables of both, and of the whole grid."""

import argparse
import collections
import functools
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import floor, reached, record_table, tables
from bench.floor import Peaks
from bench.processes import BenchError, Usage, describe_machine, run
from bench.tables import FRAMEWORKS, RUN_COLUMNS, Row
from bench.workload import (
    Workload,
    files,
    forget_runs,
    make_workload,
    merged,
    prepare,
    records,
    run_plain,
    setting,
    snakemake,
    write_slice,
)

SLICE = {"train": 256, "validation": 64, "test": 128}
FILES = ("runs.csv", "summary.csv", "grid.csv", "floor.csv", "bench.md", "machine.json")


@dataclass(frozen=True)
class Measured:
    """What was measured.

    Attributes:
        rows, grid, floors: of runs.csv, grid.csv and floor.csv; no floors where none is counted.
        told: what to say of them.
        peaks: of the machine, by what they were measured on.
        wall: seconds of Seedbed's grid; None: it was not run.
    """

    rows: list[Row]
    grid: list[Row]
    floors: list[Row]
    told: list[str]
    peaks: dict[str, Peaks]
    wall: float | None = None


def base_overlay(asked: argparse.Namespace, on_gpu: bool) -> dict[str, Any]:
    """What all commands set: where archives lie, the device, and the settings of the command line."""
    overlay: dict[str, Any] = {} if on_gpu else {"device": "cpu"}
    if asked.mirror:
        overlay["mirror"] = str(Path(asked.mirror).resolve())
    for text in asked.set:
        overlay = merged(overlay, setting(text))
    return overlay


def default_profile(asked: argparse.Namespace, on_gpu: bool) -> str:
    """The profile of Snakemake that the command line names; else, on a GPU, that of its slots."""
    if asked.profile is not None:
        return asked.profile
    return "profiles/local-gpu" if on_gpu else ""


def say(text: str) -> None:
    """Progress, at once."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def command(asked: argparse.Namespace) -> None:
    """Measure, and write runs.csv, summary.csv, grid.csv, floor.csv, bench.md and machine.json."""
    machine = describe_machine()
    gpus, on_gpu = len(machine["gpus"]), bool(machine["gpus"])
    mode = asked.mode if asked.mode != "auto" else "grid" if on_gpu else "slice"
    if asked.record and mode != "grid":
        raise BenchError("a record is of a grid that was run, not of a slice: --mode grid")
    if asked.repeats is None:
        asked.repeats = 1 if mode == "grid" else 3
    folder = asked.folder.resolve()
    work = make_workload(
        folder,
        asked.configfile,
        merged({"experiment": "bench_grid"}, base_overlay(asked, on_gpu)),
        asked.cores,
        default_profile(asked, on_gpu),
        asked.lab_workers,
        asked.lab_lean,
    )
    check(work, mode, on_gpu)
    files.write_json(folder / "machine.json", machine)
    say(f"{mode}: {work.dataset}, {work.model}, recipe {work.recipe['family']}; everything lies in {folder}")
    measure = _grid if mode == "grid" else _slice
    progress = Progress(folder / f"{mode}.json", asked.resume, measured(work, asked, machine))
    found = measure(work, asked, gpus, progress)
    write(folder, found, work.recipe["precision"], machine)
    if asked.keep:
        keep(folder, asked.keep)
    print((folder / "bench.md").read_text(encoding="utf-8"))
    if asked.record:
        add_record(work, asked, machine, found)
    name = record_table.experiment(asked.configfile)
    print(record_table.section(record_table.read(), name, len(work.runs())))


def add_record(
    work: Workload, asked: argparse.Namespace, machine: Mapping[str, Any], found: Measured
) -> None:
    """Add a grid that was run to the table of records."""
    measured = {
        "cores": asked.cores,
        "settings": " ".join(asked.set),
        "runs": len(work.runs()),
        "mode": "batches" if _share(work) else "separate",
        "precision": work.recipe["precision"],
        "wall_seconds": found.wall,
    }
    gpus = reached.devices(work, len(machine["gpus"]))
    (row,) = found.floors[-1:] or [None]
    record_table.add(record_table.record(machine, gpus, asked.configfile, measured, row, asked.keep))


def measured(work: Workload, asked: argparse.Namespace, machine: Mapping[str, Any]) -> str:
    """A hash of what is measured, of what code, and on what machine."""
    told = {
        "config": work.config,
        "cores": work.cores,
        "profile": work.profile,
        "lab_workers": work.lab_workers,
        "lab_lean": work.lab_lean,
        "options": [asked.repeats, asked.runs, asked.slice],
        "machine": {key: machine[key] for key in ("cpu", "gpus", "usable_cpus", "versions", "code")},
    }
    return files.fingerprint(told)


def check(work: Workload, mode: str, on_gpu: bool) -> None:
    """Refuse what the tables of `run` would tell wrongly.

    Raises:
        BenchError: fused seeds, whose times are those of all; a slice of runs that evaluate test every epoch,
            which the extrapolation does not know of; on a GPU seeds that are not numbers, which (a) has not.
    """
    if work.config["fused_seeds"]:
        raise BenchError("fused seeds share their time: `bench measure --kind fused` times them as a grid")
    if mode == "slice" and work.config["evaluation"]["test_curves"]:
        raise BenchError(
            "a slice is extrapolated without evaluation.test_curves: leave them out, or --mode grid"
        )
    crossed = [seed for seed in work.config["grid"]["seeds"] if not isinstance(seed, int)]
    if mode == "grid" and on_gpu and crossed:
        raise BenchError(f"the lab's way has one number for a seed, not {crossed[0]}")


def write(folder: Path, found: Measured, precision: str, machine: dict[str, Any]) -> None:
    """Write all tables, and bench.md, which is them for people."""
    summary = tables.summarise(found.rows)
    runs = ({column: row.get(column) for column in RUN_COLUMNS} for row in found.rows)
    files.write_rows(folder / "runs.csv", RUN_COLUMNS, runs)
    files.write_rows(folder / "summary.csv", tables.SUMMARY_COLUMNS, summary)
    files.write_rows(folder / "grid.csv", tables.GRID_COLUMNS, found.grid)
    files.write_rows(folder / "floor.csv", floor.COLUMNS, found.floors)
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if version)
    where = machine["gpus"][0] + " and " if machine["gpus"] else ""
    text = "\n".join(
        [
            *found.told,
            f"Machine: {where}{machine['usable_cpus']} usable cores of {machine['cpu']}, "
            f"{machine['memory_gib']} GiB; load before {machine['load_before']}; {versions}. Code: "
            f"{machine['code']}.",
            "",
            tables.summary_table(summary),
            tables.grid_table(found.grid),
            reached.section(found.floors, precision, found.peaks),
        ]
    )
    files.write_text(folder / "bench.md", text)


class Progress:
    """What has been measured, in a file, so that a benchmark that was stopped can go on.

    Args:
        path: the file.
        resume: whether what it holds counts; else the benchmark begins anew.
        of: says what is measured, of what code, and on what machine.

    Raises:
        BenchError: what it holds was measured of something else.
    """

    def __init__(self, path: Path, resume: bool, of: str = ""):
        self._path, self._of = path, of
        told = files.read_json(path) if resume and path.exists() else {"of": of, "values": {}}
        if told["of"] != of:
            raise BenchError(
                f"{path} holds measurements with other settings or code, or of another machine: leave out "
                "--resume"
            )
        self.values: dict[str, Any] = told["values"]

    def put(self, key: str, value: Any) -> None:
        """Keep what was measured."""
        self.values[key] = value
        files.write_json(self._path, {"of": self._of, "values": self.values})

    def get(self, key: str, measure: Callable[[], Any]) -> Any:
        """What was measured, now if it was not."""
        if key not in self.values:
            self.put(key, measure())
        return self.values[key]


# --- the runs of either side ---


def _lab_rows(work: Workload, seeds: Sequence[int], progress: Progress, at_once: int = 1) -> list[Row]:
    """Rows of one run a framework and seed of the lab's way, so many at a time."""
    frameworks = work.config["grid"]["frameworks"]
    cells = [(framework, "pretrained", seed) for seed in seeds for framework in frameworks]
    keys = {cell: f"lab {cell[0]} {cell[2]}" for cell in cells}
    missing = [cell for cell in cells if keys[cell] not in progress.values]

    def done(place: int, report: Row) -> None:
        framework, init, seed = cell = missing[place]
        say(f"(a) {framework}, seed {seed}: {report['wall_seconds']:.1f} s")
        names = {"side": "lab", "framework": framework, "init": init, "seed": seed, "repeat": seed}
        progress.put(
            keys[cell], tables.run_row(report, report["wall_seconds"], report["cpu_seconds"], **names)
        )

    run_plain(work, missing, at_once, done)
    return [progress.values[keys[cell]] for cell in cells]


def _seedbed_rows(
    work: Workload, usage: Usage, repeat: int, sizes: dict[str, int], seed: int | None = None
) -> list[Row]:
    """Rows of the runs that a call of Snakemake made; wall is that of the run's process, if it was its own.

    A process is matched to its run by the order in which both ended. With `seed`, it made that seed's alone.
    """
    rows = []
    made = [record for record in records(work) if record["written"] >= time.time() - usage.wall - 1]
    if seed is not None:  # the second of patience would let a run of the call before in
        made = [record for record in made if record["run"]["init_seed"] == seed]
    made.sort(key=lambda record: record["written"])
    diverged = [record["folder"] for record in made if record.get("diverged")]
    if diverged:
        raise BenchError(f"{diverged[0]}: the run diverged and stopped early, so that its time tells nothing")
    processes = sorted(
        (end, end - begin, cpu) for name, begin, end, cpu in usage.snakemake.scripts if name == "finetune"
    )
    alone = len(processes) == len(made) and not _share(work)
    for framework in FRAMEWORKS:
        for place, record in enumerate(made):
            if record["run"]["framework"] != framework:
                continue
            _, wall, cpu = processes[place] if alone else (None, record["seconds"]["total"], None)
            wall = max(wall, record["seconds"]["total"])  # processes are looked at a few times a second
            run = record["run"]
            evaluated = tables.evaluated_examples("seedbed", framework, work.recipe["epochs"], sizes)
            if record["evaluation"]["test_curves"]:
                evaluated += work.recipe["epochs"] * sizes["test"]
            names = {"side": "seedbed", "framework": framework, "init": run["init"], "seed": run["init_seed"]}
            rows.append(
                tables.run_row(record, wall, cpu, repeat=repeat, **names) | {"examples_evaluated": evaluated}
            )
    if not rows:
        raise BenchError("Snakemake made no run")
    return rows


def _share(work: Workload) -> bool:
    """Whether runs share a process."""
    return work.config["batches"]["runs"] > 1 or work.config["fused_seeds"]


# --- a slice, extrapolated ---


def sliced(
    work: Workload, examples: Sequence[int], seeds: int, experiment: str
) -> tuple[Workload, dict[str, int]]:
    """A slice of a prepared workload, one epoch of pretrained runs; and the sizes of its splits.

    Args:
        work: the whole.
        examples: of train, validation and test, at most.
        seeds: so many, from 0.
        experiment: name of the slice's own.
    """
    whole = work.sizes()
    sizes = {name: min(whole[name], examples[place]) for place, name in enumerate(SLICE)}
    overlay = merged(work.overlay, write_slice(work, sizes, work.folder / "slice"))
    overlay = merged(
        overlay,
        {
            "experiment": experiment,
            "grid": {"inits": ["pretrained"], "seeds": list(range(seeds))},
            "recipes": {work.config["grid"]["recipes"][0]: {"epochs": 1}},
            "checks": {"parity_reviews": 20},
            "batches": {"runs": 1, "at_once": 1},
        },
    )
    part = make_workload(
        work.folder, work.configs, overlay, work.cores, work.profile, work.lab_workers, work.lab_lean
    )
    return part, sizes


def _slice(work: Workload, asked: argparse.Namespace, gpus: int, progress: Progress) -> Measured:
    prepared = _prepare(work, progress)
    whole = work.sizes()
    part, sizes = sliced(work, asked.slice, asked.repeats, "bench_slice")
    prepare(part, "prepare_slice")
    if len(progress.values) == 1:  # nothing but the preparation
        forget_runs(part)
    rows, around = [], []
    for repeat in range(asked.repeats):
        rows += _lab_rows(part, [repeat], progress)
        done = progress.get(f"seedbed {repeat}", functools.partial(_pair, part, repeat, sizes))
        rows += done["rows"]
        around.append(done["around"])
    after = progress.get("after", functools.partial(_after, part, asked.cores))
    counts = collections.Counter(folder.split("/")[2] for folder in work.runs())
    lanes = 1 if gpus else max(1, asked.cores // work.config["threads"])
    grid = tables.extrapolate(
        rows,
        counts,
        work.updates(whole),
        work.recipe["epochs"],
        whole,
        lanes,
        tables.spread(around)["median"],
        after["wall"],
        after["own"],
    )
    told = [
        f"A slice of {work.dataset}: {sizes['train']} / {sizes['validation']} / {sizes['test']} examples of "
        f"{whole['train']:,} / {whole['validation']:,} / {whole['test']:,}, evenly spaced, one epoch, "
        f"{part.updates(sizes)} updates, {asked.repeats} repeats, alternating, one run at a time with "
        f"{work.config['threads']} thread(s), (a) with --num-workers {work.lab_workers}. "
        f"Preparation, in neither, took {prepared:.0f} s for the whole data. What is extrapolated says "
        "so: what only the first update costs is taken for a part of every update, on both sides.",
        *_settings(asked),
        "",
    ]
    floors, peaks = _floors_of_slice(work, part, rows, lanes)
    return Measured(rows, grid, floors, told, peaks)


def _floors_of_slice(
    work: Workload, part: Workload, rows: Sequence[Row], lanes: int
) -> tuple[list[Row], dict[str, Peaks]]:
    """Rows of floor.csv of the slice's runs and of the whole grid, and the peaks that were measured."""
    run_needs, whole = reached.needed(part), reached.needed(work)
    if run_needs is None or whole is None:
        return [], {}
    one, all_ = work.config["threads"], lanes * work.config["threads"]
    peaks = reached.measure_peaks(work, one, all_)
    found = reached.run_rows("run of the slice", run_needs, peaks[one], rows)
    found.append(reached.grid_row(whole, len(work.runs()), peaks[all_]))
    if not work.on_cpu:
        return found, {"one GPU": peaks[one]}
    return found, {
        f"a process with {one} thread(s), for a run of the slice": peaks[one],
        f"a process with {all_} thread(s), for the grid": peaks[all_],
    }


def _pair(part: Workload, repeat: int, sizes: dict[str, int]) -> dict[str, Any]:
    """A pretrained run a framework by Snakemake, one at a time; and Snakemake's seconds around a run."""
    for record in records(part):  # of a pair that was stopped
        if record["run"]["init_seed"] == repeat:
            shutil.rmtree(record["folder"])
    place = f"{part.results}/{part.experiment}/runs"
    names = [name for name in part.runs() if "/pretrained/" in name and name.endswith(f"/seed{repeat}")]
    targets = [f"{place}/{name}/run.json" for name in names]
    threads = part.config["threads"]
    if not targets:  # without any, Snakemake would make all
        raise BenchError(f"the experiment has no pretrained run of seed {repeat}")
    name = f"seedbed_alone_{repeat}"
    usage = snakemake(part, name, watch=True, cores=threads, targets=targets)
    rows = _seedbed_rows(part, usage, repeat, sizes, seed=repeat)
    around = (usage.wall - sum(row["wall_seconds"] for row in rows)) / len(rows)
    told = ", ".join(f"{row['framework']} {row['wall_seconds']:.1f} s" for row in rows)
    say(f"(b) seed {repeat}: {usage.wall:.1f} s, Snakemake around a run {around:.1f} s; {told}")
    return {"rows": rows, "around": around}


def _after(part: Workload, cores: int) -> dict[str, float]:
    """Tables, figures and report, once the runs are there."""
    usage = snakemake(part, "seedbed_after", watch=True)
    say(f"(b) tables, figures and report: {usage.wall:.1f} s")
    return {"wall": usage.wall, "own": usage.snakemake.own_seconds(usage.wall, cores)}


# --- the whole grid ---


def _prepare(work: Workload, progress: Progress) -> float:
    """Prepare the data, and return the seconds that it took the first time."""
    usage = prepare(work, "prepare")
    say(f"prepared in {usage.wall:.0f} s")
    return progress.get("prepared", lambda: usage.wall)


def _grid(work: Workload, asked: argparse.Namespace, gpus: int, progress: Progress) -> Measured:
    prepared = _prepare(work, progress)
    sizes = work.sizes()
    warm_up(work)
    rows, walls, own, training = [], [], [], []
    at_once = 1 if gpus else max(1, asked.cores // work.config["threads"])
    timed = work.config["grid"]["seeds"][: asked.runs] if gpus else list(range(asked.runs))
    alone = gpus > 0 and not _share(work)  # runs that share a GPU tell little of a run that has it to itself
    for repeat in range(asked.repeats + 1):
        seeds = timed[repeat :: asked.repeats + 1]
        rows += _lab_rows(work, seeds, progress, at_once)
        for seed in seeds if alone else ():
            pair = functools.partial(_pair, work, seed, sizes)
            rows += progress.get(f"seedbed alone {seed}", pair)["rows"]
        if repeat < asked.repeats:
            done = progress.get(
                f"seedbed {repeat}", functools.partial(_whole, work, repeat, sizes, asked.cores)
            )
            walls.append(done["wall"])
            own.append(done["own"])
            training.append(done["training"])
            rows += [{**row, "side": "seedbed_grid"} for row in done["rows"]] if alone else done["rows"]
    counts = collections.Counter(folder.split("/")[2] for folder in work.runs())
    grid = tables.whole_grid(rows, counts, walls, own, at_once)
    told = [
        f"The whole of {work.dataset}: {sizes['train']:,} / {sizes['validation']:,} / {sizes['test']:,} "
        f"examples, {work.updates(sizes):,} updates a run. (a): {len(timed)} a framework, {at_once} at a "
        f"time with {work.config['threads']} thread(s), --num-workers {work.lab_workers}"
        f"{', --lab-lean' if work.lab_lean else ''}; their sum stands "
        f"for the grid. (b): {counts.total()} runs with Snakemake on {asked.cores} cores"
        f"{', profile ' + work.profile if work.profile else ''}; "
        f"a run's times are those {'alone, of as many runs as of (a)' if alone else 'beside others'}. "
        f"Preparation, in neither, took {prepared:.0f} s.",
        *_settings(asked),
        "",
    ]
    taken = statistics.median(training)
    floors, peaks = _floors_of_grid(work, rows if alone or not gpus else [], taken, at_once, gpus)
    return Measured(rows, grid, floors, told, peaks, statistics.median(walls))


def _floors_of_grid(
    work: Workload, rows: Sequence[Row], taken: float, at_once: int, gpus: int
) -> tuple[list[Row], dict[str, Peaks]]:
    """Rows of floor.csv of runs and grid, and the peaks that were measured.

    Args:
        work: the workload, prepared.
        rows: of runs.csv, of runs that had a GPU alone, or a part of the cores.
        taken: seconds of the grid's training.
        at_once: runs that shared the cores; 1 on a GPU.
        gpus: of the machine; 0: the grid ran on the CPU.
    """
    need = reached.needed(work)
    if need is None:
        return [], {}
    threads = at_once * work.config["threads"]
    peaks = reached.measure_peaks(work, threads)[threads]
    devices = reached.devices(work, gpus)
    found = reached.run_rows("run", need, peaks.times(1 / at_once), rows)
    found.append(reached.grid_row(need, len(work.runs()), peaks.times(devices or 1), taken))
    if devices:
        return found, {f"one GPU of {devices}": peaks}
    return found, {f"a process with {threads} thread(s), which {at_once} run(s) at a time share": peaks}


def warm_up(work: Workload) -> None:
    """Have what both sides import, and the GPU's libraries, in memory: the first run timed is of (a)."""
    code = (
        "import sys; sys.path.insert(0, 'scripts'); "
        "from seedbed.models.fairseq_launcher import prepare_import; "
        "prepare_import(); import fairseq_cli.train, torch; from transformers import Trainer; "
        f"x = torch.ones(8, 8, device={'cpu' if work.on_cpu else 'cuda'!r}); (x @ x).sum().item()"
    )
    run([sys.executable, "-c", code], work.folder / "logs" / "warm_up.log")


def _whole(work: Workload, repeat: int, sizes: dict[str, int], cores: int) -> dict[str, Any]:
    """The whole grid by Snakemake, from the first run to the report."""
    forget_runs(work)
    usage = snakemake(work, f"seedbed_{repeat}", watch=True)
    training = reached.training_wall(records(work))
    rows, own = _seedbed_rows(work, usage, repeat, sizes), usage.snakemake.own_seconds(usage.wall, cores)
    idle, cpu = usage.wall - usage.snakemake.working, usage.snakemake.own_cpu
    say(
        f"(b) {len(rows)} runs, tables and report: {usage.wall:.1f} s, of which Snakemake's own {own:.1f} s "
        f"(no script at work {idle:.1f} s, CPU {cpu:.1f} s)"
    )
    return {"rows": rows, "wall": usage.wall, "own": own, "training": training}


def _settings(asked: argparse.Namespace) -> list[str]:
    """The settings of the command line; their precision is plain Trainer's only with --lab-lean."""
    return [f"Settings: {' '.join(asked.set)}."] if asked.set else []


def keep(folder: Path, target: Path) -> None:
    """Copy tables and machine into a folder, such as benchmarks/results/speed/NAME."""
    target.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copyfile(folder / name, target / name)
