"""What a workflow prints on the terminal: one line a run, one for each stage before and after the runs.

Snakemake prints a paragraph for each job. Its log file, .snakemake/log, keeps them all, since only the
handler of the terminal is replaced. Warnings and errors that no job has explained (`failures`) stay as they
are, as do all commands that run nothing. --printshellcmds (-p), --verbose and --quiet bring Snakemake's own
messages back. A dry run ends with the warnings and the line about the runs, since a screen of plan is long.

A plugin for `--logger` would have to be installed wherever a profile names it; this needs no installation.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.common import LogEvent

from seedbed.config.plan import Plan
from seedbed.config.runs import Run
from seedbed.core.files import read_json
from seedbed.core.run_folder import experiment_of_batch, name_of
from seedbed.core.words import count, framework_name, metric_name, recipe_text, value_text
from seedbed.running import forecast, planned_runs
from seedbed.running.durations import Durations, about
from seedbed.running.failures import Failures
from seedbed.running.forecast import Cell

REPLACED = "DefaultStreamHandler"  # Snakemake's, of the terminal
END_OF_DRY_RUN = "This was a dry-run"
# messages of progress, and the beginnings of those that Snakemake and its plugin for Slurm mark by nothing
PROGRESS = {
    LogEvent.WORKFLOW_STARTED, LogEvent.RUN_INFO, LogEvent.JOB_INFO, LogEvent.JOB_STARTED,
    LogEvent.JOB_FINISHED, LogEvent.GROUP_INFO, LogEvent.PROGRESS, LogEvent.RESOURCES_INFO, LogEvent.SHELLCMD,
}  # fmt: skip
BEGINNINGS = (
    "Building DAG of jobs", "Using shell: ", "Conda environments: ", "Singularity containers: ",
    "Select jobs to execute", "Execute ", "Removing temporary output ", "SLURM run ID: ",
    "Cleaning up SLURM log files ",
)  # fmt: skip
SUBMITTED = "has been submitted with SLURM jobid"

_STAGES = {
    "fetching the sources": ("fetch_source",),
    "preparing data and models": (
        "prepare", "prepare_questions", "tokenize_texts", "tokenize_for_encoder", "tokenize_prompts",
        "binarize", "binarize_pairs", "binarize_numbers", "binarize_numbers_of_pairs", "bag_of_words",
        "draw_subset", "bags_of_sizes", "encode_states", "probe", "probes_of_sizes", "convert_checkpoint",
        "convert_encoder", "convert_causal_model", "audit", "check_limits", "count_parameters",
        "count_trainable", "print_architecture", "print_encoder",
    ),
    "comparing the model's outputs in both frameworks": ("check_parity",),
    "making tables, figures and report": ("aggregate", "probes", "write_report", "decide"),
    "": ("all",),
}  # fmt: skip
STAGES = {rule: stage for stage, rules in _STAGES.items() for rule in rules}


def take_over(workflow: Any, logger: logging.Logger, plan: Plan) -> None:
    """Replace Snakemake's handler of the terminal, unless its own messages are asked for.

    Warnings of a dry run that come later stand at its end.

    Args:
        workflow: Snakemake's, of the main process.
        logger: Snakemake's.
        plan: the experiment's.
    """
    asked = workflow.output_settings
    if not asked.dryrun and (asked.quiet or asked.verbose or asked.printshellcmds):
        return
    for handler in list(logger.handlers):
        if handler.name == REPLACED:
            logger.removeHandler(handler)
            runs = Runs(workflow, plan)
            logger.addHandler(
                DryRun(handler, logger, runs) if asked.dryrun else Terminal(handler, workflow, runs)
            )


class Terminal(logging.Handler):
    """Prints lines about runs and stages once jobs run, and leaves all else to Snakemake's handler.

    Args:
        original: Snakemake's handler.
        workflow: see `take_over`.
        runs: of that workflow.
    """

    def __init__(self, original: Any, workflow: Any, runs: "Runs"):
        super().__init__(original.level)
        self._original, self._workflow, self._runs = original, workflow, runs
        self._failures = Failures(self._show, self._write, workflow.local_exec)
        self._executes, self._printed = False, 0.0
        self._said = {""}

    def emit(self, record: logging.LogRecord) -> None:
        """Print the lines of a record, and the record itself unless it only tells of progress."""
        try:
            self._print(record)
        except BrokenPipeError:
            # The main thread ends the workflow. In the thread of a job the error would be lost, and with it
            # the end of the job, for which Snakemake would wait for ever.
            if threading.current_thread() is threading.main_thread():
                raise
        except Exception:  # costs a line, and no run
            self.handleError(record)

    def _print(self, record: logging.LogRecord) -> None:
        event = getattr(record, "event", None)
        self._executes |= event == LogEvent.WORKFLOW_STARTED and not self._workflow.touch
        if self._executes:
            self._write("".join(f"{line}\n" for line in self._lines(event, record)))
            if is_progress(event, record) or self._failures.takes(event, record, self._printed):
                return
        self._show(record)

    def _write(self, lines: str) -> None:
        if lines:
            self._original.stream.write(lines)
            self._original.flush()
            self._printed = time.time()

    def _show(self, record: logging.LogRecord) -> None:
        self._original.handle(record)
        self._printed = time.time()

    def _lines(self, event: Any, record: Any) -> Iterator[str]:
        if event == LogEvent.RUN_INFO:
            yield from self._runs.planned()
        elif event == LogEvent.JOB_INFO:
            self._failures.started(record)
            stage = self._runs.started(record.jobid) or STAGES.get(
                record.rule_name, f"rule {record.rule_name}"
            )
            name = stage.partition(":")[0]
            if name not in self._said:
                yield stage
            self._said.add(name)
        elif event == LogEvent.JOB_FINISHED:
            yield from self._runs.finished(record.job_id)
        elif event == LogEvent.JOB_ERROR:
            self._runs.failed(record.jobid)

    def flush(self) -> None:
        """Flush the terminal."""
        self._original.flush()

    def close(self) -> None:
        """Close Snakemake's handler as well."""
        self._failures.close()
        self._original.close()
        super().close()


class DryRun(logging.Handler):
    """Prints the plan of a dry run as Snakemake does, and below it the warnings and the line about the runs.

    Args:
        original: Snakemake's handler.
        logger: Snakemake's.
        runs: of the workflow.
    """

    def __init__(self, original: Any, logger: logging.Logger, runs: "Runs"):
        super().__init__(original.level)
        self._original, self._logger, self._runs = original, logger, runs
        self._warnings: list[logging.LogRecord] = []
        self._planned: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record, or keep a warning for the end."""
        ends = str(record.msg).startswith(END_OF_DRY_RUN)
        if record.levelno == logging.WARNING:
            self._warnings.append(record)
            return
        if record.levelno > logging.WARNING:
            self._warn()  # an error is the last thing that is told
        elif getattr(record, "event", None) == LogEvent.RUN_INFO and not self._planned:
            self._planned = list(self._runs.planned())
        self._original.handle(record)
        if ends:
            self._warn()
            for line in self._planned:
                self._logger.info(line)

    def _warn(self) -> None:
        warnings, self._warnings = self._warnings, []
        for record in warnings:
            self._original.handle(record)

    def close(self) -> None:
        """Print the warnings of a dry run that has ended in another way, and close Snakemake's handler."""
        self._warn()
        self._original.close()
        super().close()


def is_progress(event: Any, record: logging.LogRecord) -> bool:
    """Whether a record of Snakemake only tells of progress."""
    if event is not None or record.levelno > logging.INFO:
        return event in PROGRESS
    text = str(record.msg)
    return text.startswith(BEGINNINGS) or SUBMITTED in text


class Runs:
    """The runs of a workflow: how many there are, and how long those that are left will take.

    Args:
        workflow: Snakemake's.
        plan: the experiment's.
    """

    def __init__(self, workflow: Any, plan: Plan):
        self._workflow, self._plan = workflow, plan
        self._durations = Durations(plan.results)
        self._batches: dict[str, list[Run]] = {}
        for run in plan.runs:
            self._batches.setdefault(run.batch, []).append(run)
        self._total = self._done = 0
        self._publishing: dict[int, Run] = {}  # by the number of the job
        self._training: dict[int, list[Run]] = {}
        self._left: Counter[Cell] = Counter()
        self._working: dict[int, float] = {}  # since when each job trains
        self._began: float | None = None

    # --- jobs ---

    def planned(self) -> Iterator[str]:
        """Read the jobs; the line before the first one, if there are runs to train."""
        dag = self._workflow.dag
        for job in dag.jobs:
            if not job.rule.name.startswith("finetune_"):
                continue
            path, number = Path(str(job.output[0])), dag.jobid(job)
            if job.rule.name.endswith("_batch"):
                if dag.needrun(job):
                    self._training[number] = self._batches[experiment_of_batch(path)[1]]
                continue
            self._total += 1
            if dag.needrun(job):
                run = self._publishing[number] = self._plan.find_run(name_of(path.parent))
                self._left[self._cell(run)] += 1
                if not self._plan.batched:
                    self._training[number] = [run]
        if not self._publishing:
            return
        seconds = self._rest() if self._workflow.local_exec else None
        by_earlier = "" if seconds is None else f", about {about(seconds)} judging by earlier ones"
        yield (
            f"{self._plan.config['experiment']}: {len(self._publishing):,} of {count(self._total, 'run')} to "
            f"train, {self._at_a_time()}{by_earlier}"
        )

    def _at_a_time(self) -> str:
        if self._workflow.local_exec:
            return f"{self._slots():,} at a time"
        return f"in at most {count(self._workflow.nodes, 'job')} at a time"

    def started(self, job: int) -> str | None:
        """Note the start of a job; the stage of those that train or publish runs."""
        if job in self._training:
            self._working[job] = time.monotonic()
            if self._began is None:
                self._began = time.monotonic()
                return f"training{self._time_of_training()}"
        return "training" if job in self._training or job in self._publishing else None

    def _time_of_training(self) -> str:
        if not self._workflow.local_exec:
            return ""
        seconds = self._rest()
        return ": the first run shows how long it takes" if seconds is None else f": about {about(seconds)}"

    def finished(self, job: int) -> Iterator[str]:
        """Note the end of a job; the line of the run that it has published."""
        self._working.pop(job, None)
        if run := self._publishing.get(job):
            self._done += 1
            self._left[self._cell(run)] -= 1
            number = self._total - len(self._publishing) + self._done
            yield f"{number:,}/{self._total:,} {self._name(run)}: {', '.join(self._outcome(run))}"

    def failed(self, job: int) -> None:
        """Note that a job has failed."""
        self._working.pop(job, None)

    def _name(self, run: Run) -> str:
        """A run for people, by what differs in the grid."""
        grid, recipes = self._plan.config["grid"], self._plan.config["recipes"]
        start = "from the checkpoint" if run.init == "pretrained" else "from random weights"
        names = {
            "datasets": run.dataset,
            "models": run.model,
            "frameworks": framework_name(run.framework),
            "inits": start,
        }
        first = " ".join(name for key, name in names.items() if len(grid[key]) > 1)
        recipe = recipe_text({name: recipes[name] for name in grid["recipes"]}, run.recipe)
        recipe = recipe if len(grid["recipes"]) > 1 else ""
        return ", ".join(filter(None, [first, recipe, run.seed.replace("seed", "seed ")]))

    def _outcome(self, run: Run) -> list[str]:
        """Score and seconds of a published run, and the time that the others will take."""
        path = Path(self._plan.experiment_folder, "runs", run.folder, "run.json")
        try:
            record = read_json(path)
            metric = self._plan.task.reported[0]
            seconds, together = round(record["seconds"]["total"]), len(record.get("fused_with", ()))
            parts = ["diverged"] if record.get("diverged") else []
            parts.append(f"{metric_name(metric)} {value_text(metric, record['test'][metric])}")
            parts.append(f"{seconds:,} s" + (f" for {together} runs" if together > 1 else ""))
            self._durations.add(record)
        except (OSError, ValueError, KeyError):
            parts = ["done"]  # its files are in a bucket
        if (left := self._time_left()) is not None:
            parts.append(f"about {about(left)} left")
        return parts

    # --- time ---

    def _time_left(self) -> float | None:
        """Seconds until all runs are trained; None after the last one."""
        runs = self._left.total()
        if not runs or self._began is None:
            return None
        if self._workflow.local_exec:
            return self._rest()
        # how many jobs work at the same time is up to the cluster
        return (time.monotonic() - self._began) * runs / self._done

    def _rest(self) -> float | None:
        """Seconds until all runs are trained on this host; None if that is not known.

        Once some are trained, the others are taken to last as long, if nothing like them is known.
        """
        working = [
            (
                [self._cell(run) for run in self._training[job]],
                (time.monotonic() - since) * self._plan.batching.at_once,
            )
            for job, since in self._working.items()
        ]
        return forecast.seconds_left(self._left, self._durations, working, self._slots(), self._done > 0)

    def _cell(self, run: Run) -> Cell:
        return planned_runs.plan_cell(self._plan, run)

    def _slots(self) -> int:
        return planned_runs.runs_at_once(self._workflow, self._plan)
