"""An experiment whose runs are made-up files, with real locks, for those who watch it."""

import json
import os
import platform
import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from builders import load_config

from seedbed.config.plan import Plan
from seedbed.config.runs import Run
from seedbed.core import locks
from seedbed.core.files import write_json, write_text
from seedbed.core.run_folder import RunFolder, plan_file, workflows_folder
from seedbed.running import claims, planned_runs

ROOT = Path(__file__).parents[1]
STARTED = 1_000.0  # seconds before now
HARDWARE = {"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count()}


class Watched:
    """The demo, with changes of its config, on 2 cores of this host or on a cluster.

    Its workflow began STARTED seconds ago, and planned to make the runs that were not finished by then.

    Attributes:
        folder: results/demo.
        plan: of the config.
        runs: of the plan.
    """

    def __init__(self, folder: Path, local: bool = True, **config: Any):
        raw = load_config([ROOT / "config.yaml"])
        raw["grid"] |= config.pop("grid", {})
        self.plan = Plan(raw | {"results": str(folder / "results")} | config)
        self.runs, self.folder, self._local = self.plan.runs, Path(self.plan.experiment_folder), local
        self._locks: list[locks.Lock] = []
        for dataset in {run.dataset for run in self.runs}:
            write_json(self.plan.results / "data" / dataset / "splits.json", {"read": {"train": 80}})

    def begin(self, to_make: set[str] | None = None) -> None:
        """Write the plan of a workflow; it makes these runs, or those that are not finished."""
        jobs = [
            SimpleNamespace(
                rule=SimpleNamespace(script="../scripts/finetune.py"),
                output=SimpleNamespace(run_json=str(self.place(run).target / "run.json")),
                name=run.folder,
                made=(self.place(run).target / "run.json").exists(),
            )
            for run in self.runs
        ]
        needed = {job.name for job in jobs if not job.made} if to_make is None else to_make
        workflow = SimpleNamespace(
            is_main_process=True,
            dryrun=False,
            touch=False,
            local_exec=self._local,
            resource_settings=SimpleNamespace(cores=2),
            global_resources={},
            dag=SimpleNamespace(jobs=jobs, needrun=lambda job: job.name in needed),
        )
        planned_runs.write(workflow, self.plan)
        self.set_time(plan_file(self.folder), STARTED)

    def place(self, run: Run) -> RunFolder:
        """The folders of a run."""
        return RunFolder(self.folder, *run.folder.split("/"))

    def finish(self, run: Run, seconds: float = 20.0, ago: float = 10.0, kept: bool = False) -> None:
        """Write the record of a finished run, `ago` seconds ago; `kept`: as a batch keeps it."""
        place = self.place(run)
        path = (place.work / "kept" if kept else place.target) / "run.json"
        together = self.plan.together(run)
        record = {
            "run": asdict(run), "settings": self.plan.config["recipes"][run.recipe], "hardware": HARDWARE,
            "seconds": {"start_up": 0.0, "total": seconds * together}, "total_updates": self.updates(run),
        }  # fmt: skip
        if together > 1:
            record["fused_with"] = [""] * together
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            json.dumps(record), encoding="utf-8"
        )  # not flushed to disk: a thousand would take long
        self.set_time(path, ago)

    def updates(self, run: Run) -> int:
        """The updates of a run."""
        recipe = self.plan.config["recipes"][run.recipe]
        return recipe["epochs"] * -(-80 // recipe["batch_size"])

    def hold(self, run: Run, ago: float = 5.0) -> locks.Lock:
        """Be at work on a run for `ago` seconds."""
        return self.lock(self.place(run).work / claims.FILE, ago)

    def workflow(self) -> locks.Lock:
        """Be a workflow that works on the experiment."""
        return self.lock(workflows_folder(self.folder) / "1-a.lock", STARTED)

    def lock(self, path: Path, ago: float) -> locks.Lock:
        """Hold a lock for `ago` seconds."""
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = locks.take(path)
        assert lock
        self.set_time(path, ago)
        self._locks.append(lock)
        return lock

    def leave_lock(self, run: Run, ago: float = 5.0) -> None:
        """Leave the lock file of a process that has ended on a run."""
        lock = self.hold(run, ago)
        os.close(lock.descriptor)
        lock.descriptor = None
        self._locks.remove(lock)

    def write_log(self, run: Run, text: str, ago: float = 5.0, place: int = -1) -> Path:
        """Write a log of a run: its own, or one at another place of `PlannedRuns.logs`."""
        planned = planned_runs.read(self.folder)
        (found,) = [other for other in planned.runs if other.name == run.folder]
        path = list(planned.logs(found))[place]
        write_text(path, text)
        self.set_time(path, ago)
        return path

    def set_time(self, path: Path, ago: float) -> None:
        """Let a file be written `ago` seconds ago."""
        then = time.time() - ago
        os.utime(path, (then, then))

    def end(self) -> None:
        """Release all locks."""
        for lock in self._locks:
            lock.release()
