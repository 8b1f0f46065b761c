"""The lines on the terminal: Snakemake's records go in, lines come out; test_failures.py has failed jobs."""

import io
import logging
import os
import platform
import re
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from builders import load_config
from snakemake.logging import ColorizingTextHandler, DefaultFormatter
from snakemake_interface_logger_plugins.common import LogEvent

from seedbed.config.plan import Plan
from seedbed.core.files import write_json
from seedbed.running import terminal
from seedbed.sources.locations import ROOT

# of Snakemake's first record
INFO = (
    "datetime", "workflow_id", "platform", "host", "user", "snakemake_version", "python_version", "cmd",
    "snakefile_main", "basedir", "rundir", "cwd", "configfiles", "config_md5",
)  # fmt: skip


class Job(SimpleNamespace):
    """A job of Snakemake's; jobs of runs have the number of their run."""

    def __init__(self, number: int, rule: str, path: str):
        super().__init__(number=number, rule=SimpleNamespace(name=rule), output=[path])


class Workflow:
    """As much of Snakemake's workflow as the terminal asks, and its logger."""

    def __init__(self, folder, monkeypatch, done: int = 0, local: bool = True, **config):
        monkeypatch.chdir(folder)
        raw = load_config([ROOT / "config.yaml"])
        raw["grid"] |= config.pop("grid", {})
        self.plan = Plan(raw | config)
        self.folder, self.local_exec, self.touch, self.nodes = folder, local, False, 100
        names = ("dryrun", "quiet", "verbose", "printshellcmds")
        self.output_settings = SimpleNamespace(**dict.fromkeys(names, False))
        self.resource_settings = SimpleNamespace(cores=2)
        self.global_resources: dict = {}
        self.dag = SimpleNamespace(jobid=lambda job: job.number, needrun=lambda job: job.number >= done)
        self.dag.jobs = [
            Job(number, f"finetune_{run.framework}", f"results/demo/runs/{run.folder}/metrics.csv")
            for number, run in enumerate(self.plan.runs)
        ]
        if self.plan.batched:
            batches = dict.fromkeys(run.batch for run in self.plan.runs)
            self.dag.jobs += [
                Job(100 + number, "finetune_x_batch", f"results/demo/work/batches/{batch}.json")
                for number, batch in enumerate(batches)
            ]
        self.logger = logging.Logger("snakemake")
        self.stream = io.StringIO()
        handler = ColorizingTextHandler(stream=self.stream, formatter=DefaultFormatter())
        handler.name = "DefaultStreamHandler"
        self.logger.addHandler(handler)

    def take_over(self) -> "Workflow":
        terminal.take_over(self, self.logger, self.plan)
        return self

    def log(self, event: LogEvent | None = None, text: str = "", level: int = logging.INFO, **fields) -> str:
        """Log a record of Snakemake's; what the terminal prints."""
        before = len(self.stream.getvalue())
        self.logger.log(level, text, extra={"event": event, **fields} if event else fields)
        return self.stream.getvalue()[before:]

    def begin(self) -> str:
        self.log(LogEvent.WORKFLOW_STARTED)
        return self.log(LogEvent.RUN_INFO, "Job stats")

    def start(self, number: int, rule: str = "finetune_fairseq") -> str:
        return self.log(LogEvent.JOB_INFO, jobid=number, rule_name=rule, log=[])

    def finish(self, number: int, seconds: float = 20.6, **record) -> str:
        if number < len(self.plan.runs):
            path = self.folder / "results/demo/runs" / self.plan.runs[number].folder / "run.json"
            plain = {"test": {"accuracy": 0.748}, "seconds": {"start_up": 0.6, "total": seconds}}
            write_json(path, plain | record)
        return self.log(LogEvent.JOB_FINISHED, job_id=number)


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now.seconds)
    return now


@pytest.fixture
def workflow(tmp_path, monkeypatch, clock):
    """The demo, of which two runs are there, on two cores."""
    return Workflow(tmp_path, monkeypatch, done=2).take_over()


def of_kind(workflow: Workflow, number: int) -> dict:
    """The rest of the record of a run, on this machine."""
    run = workflow.plan.runs[number]
    hardware = {"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count()}
    settings = workflow.plan.config["recipes"][run.recipe]
    return {"run": asdict(run), "settings": settings, "hardware": hardware, "total_updates": 10}


def test_one_line_before_the_runs_and_one_for_each(workflow, clock):
    write_json(workflow.folder / "results/data/reviews_fr/splits.json", {"read": {"train": 24}})
    assert workflow.begin() == "demo: 10 of 12 runs to train, 2 at a time\n"
    assert workflow.start(50, "fetch_source") == "fetching the sources\n"
    assert workflow.start(51, "fetch_source") == ""
    assert workflow.finish(50) == ""
    assert workflow.start(2) == "training: the first run shows how long it takes\n"
    assert workflow.start(3) == ""
    run = workflow.plan.runs[2]
    assert (run.framework, run.init, run.seed) == ("transformers", "pretrained", "seed0")
    clock.seconds += 20
    # 9 runs of 20 x 9 / 10 updates and 0.6 s, of which one works since 20 s, two at a time
    line = workflow.finish(2, **of_kind(workflow, 2))
    told = "Transformers from the checkpoint, seed 0: accuracy 74.8%, 21 s, about 2 min left\n"
    assert line == f"3/12 {told}"
    for number in range(3, 12):
        workflow.start(number)
        line = workflow.finish(number)
    assert line == "12/12 Transformers from random weights, seed 2: accuracy 74.8%, 21 s\n"
    assert workflow.start(60, "aggregate") == "making tables, figures and report\n"
    assert workflow.start(61, "write_report") == ""


def test_the_estimate_before_the_first_run_is_of_earlier_runs(tmp_path, monkeypatch):
    workflow = Workflow(tmp_path, monkeypatch, done=4)
    write_json(tmp_path / "results/data/reviews_fr/splits.json", {"read": {"train": 27}})
    for number in range(4):
        workflow.finish(number, seconds=60.6, **of_kind(workflow, number))
    workflow.take_over()
    # 8 runs of 0.6 and 60 x 12 / 10 s
    assert workflow.begin() == (
        "demo: 8 of 12 runs to train, 2 at a time, about 5 min judging by earlier ones\n"
    )
    assert workflow.start(4) == "training: about 5 min\n"


def test_what_differs_in_the_grid_names_a_run(tmp_path, monkeypatch):
    grid = {"seeds": [{"init": 4, "data": 1}], "inits": ["random"], "recipes": ["low", "high"]}
    recipes = {"low": {"learning_rate": 1e-5}, "high": {"learning_rate": 1e-3}}
    workflow = Workflow(tmp_path, monkeypatch, grid=grid, recipes=recipes).take_over()
    workflow.begin()
    workflow.start(0)
    assert workflow.finish(0).startswith("1/4 fairseq, low, seed 4-1: accuracy 74.8%")


def test_a_diverged_run_is_called_so(workflow):
    workflow.begin()
    workflow.start(2)
    assert "seed 0: diverged, accuracy 74.8%, 21 s" in workflow.finish(2, diverged=True)


def test_a_run_whose_record_is_elsewhere_is_counted(workflow):
    workflow.begin()
    workflow.start(2)
    assert workflow.log(LogEvent.JOB_FINISHED, job_id=2).endswith("seed 0: done\n")


def test_on_a_cluster_the_pace_so_far_tells_how_long_the_rest_takes(tmp_path, monkeypatch, clock):
    workflow = Workflow(tmp_path, monkeypatch, local=False).take_over()
    assert workflow.begin() == "demo: 12 of 12 runs to train, in at most 100 jobs at a time\n"
    assert workflow.start(0) == "training\n"
    clock.seconds += 600
    assert workflow.finish(0).endswith(", about 1.9 h left\n")
    assert workflow.finish(1).endswith(", about 50 min left\n")
    assert "submitted" not in workflow.log(None, "Job 5 has been submitted with SLURM jobid 12 (log: x).")


@pytest.mark.parametrize("kind", [{"batches": {"runs": 3, "at_once": 1}}, {"fused_seeds": True}])
def test_runs_of_a_batch_are_counted_one_by_one(tmp_path, monkeypatch, kind):
    workflow = Workflow(tmp_path, monkeypatch, **kind).take_over()
    assert workflow.begin() == "demo: 12 of 12 runs to train, 2 at a time\n"
    assert workflow.start(100, "finetune_fairseq_batch").startswith("training")
    assert workflow.finish(100) == ""
    assert workflow.start(0) == ""
    assert workflow.finish(0, fused_with=[0, 1, 2]).startswith("1/12 fairseq from the checkpoint, seed 0: ")
    assert "21 s for 3 runs" in workflow.stream.getvalue()


def test_errors_warnings_and_other_messages_stay_snakemakes(workflow):
    workflow.begin()
    assert workflow.log(None, "Nothing to be done") == "Nothing to be done\n"
    assert workflow.log(None, "Complete log(s): x") == "Complete log(s): x\n"
    assert workflow.log(None, "Execute 2 jobs...") == ""
    assert workflow.log(None, "Execute 2 jobs...", logging.WARNING) == "Execute 2 jobs...\n"
    fields = dict.fromkeys(("rule_msg", "conda_env", "shellcmd"))
    fields |= {"rule_name": "prepare", "jobid": 2, "input": [], "output": ["x.csv"], "log": [], "aux": {}}
    shown = workflow.log(LogEvent.JOB_ERROR, "Error", logging.ERROR, **fields)
    assert "Error in rule prepare:" in shown
    assert "x.csv" in shown


def test_before_jobs_run_nothing_is_left_out(workflow):
    assert workflow.log(None, "Building DAG of jobs...") == "Building DAG of jobs...\n"
    workflow.touch = True
    workflow.log(LogEvent.WORKFLOW_STARTED, **dict.fromkeys(INFO))
    assert workflow.log(None, "Select jobs to execute...") == "Select jobs to execute...\n"


@pytest.mark.parametrize("option", ["quiet", "verbose", "printshellcmds"])
def test_whoever_asks_for_snakemakes_messages_gets_them(tmp_path, monkeypatch, option):
    workflow = Workflow(tmp_path, monkeypatch)
    setattr(workflow.output_settings, option, True)
    (before,) = workflow.logger.handlers
    assert workflow.take_over().logger.handlers == [before]


@pytest.fixture
def dry_run(tmp_path, monkeypatch):
    """A dry run of the demo, after a warning."""
    workflow = Workflow(tmp_path, monkeypatch)
    workflow.output_settings.dryrun = True
    workflow.take_over()
    assert workflow.log(None, "few seeds", logging.WARNING) == ""
    assert workflow.log(LogEvent.RUN_INFO, "Job stats") == "Job stats\n"
    return workflow


def test_a_dry_run_ends_with_the_warnings_and_the_line_about_the_runs(dry_run):
    assert dry_run.log(LogEvent.RUN_INFO, "Job stats, again") == "Job stats, again\n"
    end = "This was a dry-run (flag -n)."
    assert dry_run.log(None, end) == f"{end}\nfew seeds\ndemo: 12 of 12 runs to train, 2 at a time\n"


def test_after_an_error_of_a_dry_run_no_warning_follows(dry_run):
    assert dry_run.log(None, "a fault", logging.ERROR) == "few seeds\na fault\n"
    dry_run.logger.handlers[0].close()
    assert dry_run.stream.getvalue().endswith("a fault\n")


def test_a_dry_run_without_jobs_tells_its_warnings(dry_run):
    dry_run.logger.handlers[0].close()
    assert dry_run.stream.getvalue().endswith("few seeds\n")


def test_the_handler_of_a_plugin_stays(tmp_path, monkeypatch):
    workflow = Workflow(tmp_path, monkeypatch)
    (handler,) = workflow.logger.handlers
    handler.name = "of a plugin"
    assert workflow.take_over().logger.handlers == [handler]


def test_a_fault_in_a_line_costs_no_run(workflow, monkeypatch, capsys):
    monkeypatch.setattr(terminal.Runs, "planned", lambda self: 1 / 0)
    assert workflow.begin() == ""
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert workflow.log(None, "Nothing to be done") == "Nothing to be done\n"


def test_every_rule_has_a_stage_or_trains():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "rules").glob("*.smk"))
    rules = set(re.findall(r"^(?:use )?rule (?:\w+ as )?(\w+)(?::| with:)", text, re.MULTILINE))
    assert rules - {name for name in rules if name.startswith("finetune_")} == set(terminal.STAGES) - {"all"}
