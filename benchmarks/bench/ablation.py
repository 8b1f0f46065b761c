"""`ablate`: runs of Seedbed with all of its savings, and without each; what each of them is worth."""

import argparse
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from bench import tables
from bench.processes import describe_machine, run
from bench.sidebyside import base_overlay, say, sliced
from bench.tables import Row
from bench.without import SAVINGS
from bench.workload import HERE, Workload, files, make_workload, merged, prepare
from seedbed.config.plan import Plan
from seedbed.running import jobs

COLUMNS = (
    "framework", "without", "repeat", "wall_seconds", "cpu_seconds", "start_up_seconds", "train_seconds",
    "evaluate_seconds", "peak_memory_mib", "updates", "device",
)  # fmt: skip
SHOWN = {
    "cpu_seconds": "run: CPU time (s)",
    "wall_seconds": "run: wall (s)",
    "start_up_seconds": "start-up (s)",
    "train_seconds": "training (s)",
    "evaluate_seconds": "evaluation (s)",
}


def command(asked: argparse.Namespace) -> None:
    """Run a slice with all savings and without each, in turn, and write a CSV and a table of medians."""
    machine = describe_machine()
    overlay = merged({"experiment": "bench_ablation"}, base_overlay(asked, bool(machine["gpus"])))
    work = make_workload(asked.folder.resolve(), asked.configfile, overlay, asked.cores)
    prepare(work, "prepare")
    part, sizes = sliced(work, asked.slice, 1, "bench_ablation")
    prepare(part, "prepare_ablation")
    rows = []
    for repeat in range(asked.repeats):
        for framework in part.config["grid"]["frameworks"]:
            there = savings(framework, "gpu" if machine["gpus"] else "cpu", _params(part, framework))
            for without in (name for name in there if name in ("nothing", *(asked.only or there))):
                rows.append(_run(part, framework, without, repeat))
                say(f"{framework} without {without}: CPU {rows[-1]['cpu_seconds']:.1f} s")
    told = (
        f"{sizes['train']} / {sizes['validation']} / {sizes['test']} examples of {work.dataset}, one epoch, "
        f"{rows[0]['updates']} updates, {asked.repeats} repeats in turn, one run at a time with "
        f"{work.config['threads']} thread(s). Medians; in brackets, times as much as with all savings."
    )
    where = f"{machine['usable_cpus']} usable cores of {machine['cpu']}, load before {machine['load_before']}"
    files.write_rows(asked.csv, COLUMNS, rows)
    text = f"{told}\n\nMachine: {where}.\n\n{summary(rows)}"
    files.write_text(asked.csv.with_suffix(".md"), text)
    files.write_json(asked.csv.with_suffix(".machine.json"), machine)
    print(text)


def savings(framework: str, device: str, run: dict[str, Any]) -> list[str]:
    """Names of what can be left out of a run with these params: what it has."""
    return [
        name
        for name, saving in SAVINGS.items()
        if framework in saving.frameworks and device in saving.on and saving.is_in(run)
    ]


def _run(part: Workload, framework: str, without: str, repeat: int) -> Row:
    """A run in a process of its own, begun anew."""
    experiment = part.results / part.experiment
    shutil.rmtree(experiment / "runs", ignore_errors=True)
    shutil.rmtree(experiment / "work", ignore_errors=True)
    request = part.folder / "configs" / "ablation.json"
    files.write_json(request, _request(part, framework, without))
    log = part.folder / "logs" / f"ablation_{framework}_{without.replace(' ', '_')}_{repeat}.log"
    threads = {"OMP_NUM_THREADS": str(part.config["threads"])}
    usage = run([sys.executable, str(HERE / "without.py"), str(request)], log, **threads)
    (path,) = (experiment / "runs").glob("**/run.json")
    record = files.read_json(path)
    names = {"framework": framework, "without": without, "repeat": repeat}
    row = tables.run_row(record, usage.wall, usage.cpu, **names)
    return {name: row[name] for name in COLUMNS}


def _request(part: Workload, framework: str, without: str) -> dict[str, Any]:
    params = _params(part, framework)
    saving = SAVINGS[without]
    return {
        "run": {**params, **saving.params, "settings": {**params["settings"], **saving.settings}},
        "experiment": str(part.results / part.experiment),
        "threads": part.config["threads"],
        "pace": jobs.checkpointing(part.config),
        "without": without,
    }


def _params(part: Workload, framework: str) -> dict[str, Any]:
    """The params of a pretrained run."""
    plan = Plan(part.raw())
    run = next(run for run in plan.runs if run.framework == framework and run.init == "pretrained")
    wildcards = argparse.Namespace(**{**vars(run), "seed": run.seed})
    return {"fairseq": plan.fairseq_run, "transformers": plan.transformers_run}[framework](wildcards)


def summary(rows: Sequence[Row]) -> str:
    """Medians by framework and what was left out, as a table for people."""
    lines = []
    for framework in dict.fromkeys(row["framework"] for row in rows):
        mine = [row for row in rows if row["framework"] == framework]
        whole = _medians(mine, "nothing")
        for without in dict.fromkeys(row["without"] for row in mine):
            medians = _medians(mine, without)
            cells = [f"{medians[key]:.1f} ({medians[key] / whole[key]:.2f})" for key in SHOWN]
            lines.append([tables.NAMES[framework], without, *cells])
    return tables.table(["framework", "without", *SHOWN.values()], lines, left=2)


def _medians(rows: Sequence[Row], without: str) -> dict[str, float]:
    chosen = [row for row in rows if row["without"] == without]
    return {key: tables.spread([row[key] for row in chosen])["median"] for key in SHOWN}
