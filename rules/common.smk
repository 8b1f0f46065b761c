"""
Shared by all rules: the checked plan of the experiment, paths, wildcards, and marks for Snakemake's report.

Paths are written with Snakemake's path variables: <sources>, <data> and <models> are shared between
experiments, <experiment> belongs to one; <logs> and <benchmarks> serve the shared rules.
"""

import gc
import sys
from pathlib import Path

# workflow.basedir would be another workflow's if this one is a module
SCRIPTS = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).parent / "scripts"
if not SCRIPTS.is_dir():
    raise WorkflowError(
        "Seedbed runs from a clone: give the path of its Snakefile, not github(...)"
    )
sys.path.insert(0, str(SCRIPTS))

import snakemake.benchmark
from snakemake.dag import DAG
from snakemake.logging import logger
from snakemake.scheduling.job_scheduler import JobScheduler

from seedbed.config import embedding, stages
from seedbed.config.params import canonical
from seedbed.config.plan import Plan
from seedbed.config.yaml_files import refuse_changed_labels, refuse_repeated_keys
from seedbed.core.errors import SeedbedError, explaining_system_errors
from seedbed.core.run_folder import RunFolder
from seedbed.core.splits import SPLITS
from seedbed.running import (
    ancient_inputs,
    gpu_slots,
    guard,
    mps,
    planned_runs,
    preflight,
    scheduler_timers,
    terminal,
)

# Seconds between two looks at a job's memory, of 18 ms each: two looks a second took 3.4 CPU s more of the demo.
snakemake.benchmark.BENCHMARK_INTERVAL_SHORT = 2
# Python looks through all modules several times at its end, which took 0.25 s, unless they are set apart.
gc.freeze()


configfile: embedding.config_file(workflow)


try:
    with explaining_system_errors():
        for path in workflow.configfiles if workflow.is_main_process else ():
            refuse_repeated_keys(path)
            refuse_changed_labels(path)
        config = embedding.adapt(workflow, config)
        PLAN = Plan(config)
        ancient_inputs.mend(DAG)
        scheduler_timers.mend(JobScheduler)
        if workflow.is_main_process and not embedding.is_module(workflow):
            terminal.take_over(workflow, logger, PLAN)
        if workflow.is_main_process:
            for note in preflight.check(PLAN, is_module=embedding.is_module(workflow)):
                logger.warning(note)
        gpu_slots.register(workflow, PLAN)
        guard.enter(workflow)
except SeedbedError as error:
    raise embedding.refusal(error, workflow) from None

# scripts read these from the config: no number depends on them, so they are not in params of rules
config.update(PLAN.untracked())


def before_jobs():
    try:
        gpu_slots.check(workflow, PLAN.config)
        if remark := mps.begin(workflow, PLAN.config, PLAN.batching.at_once):
            logger.warning(remark)
        guard.check_batches(workflow, PLAN.batching)
        guard.begin(workflow, Path(PLAN.experiment_folder))
        planned_runs.write(workflow, PLAN)
    except SeedbedError as error:
        raise embedding.refusal(error, workflow) from None


def after_jobs():
    try:
        guard.end(workflow, Path(PLAN.experiment_folder))
        if PLAN.stage and (
            remark := stages.open_questions(Path(PLAN.experiment_folder), PLAN.stage)
        ):
            logger.warning(remark)
    except SeedbedError as error:
        raise embedding.refusal(error, workflow) from None


onstart:
    before_jobs()


onsuccess:
    after_jobs()


if embedding.is_module(workflow):
    embedding.chain(workflow, before_jobs, after_jobs)


pathvars:
    sources=f"{PLAN.results}/sources",
    data=f"{PLAN.results}/data",
    models=f"{PLAN.results}/models",
    experiment=PLAN.experiment_folder,
    logs=f"{PLAN.results}/logs",
    benchmarks=f"{PLAN.results}/benchmarks",


wildcard_constraints:
    source=PLAN.pattern("sources"),
    dataset=PLAN.pattern("datasets"),
    model=PLAN.pattern("models"),
    recipe=PLAN.pattern("recipes"),
    framework="fairseq|transformers",
    init="pretrained|random",
    seed=PLAN.pattern("seeds"),
    batch=r"\d+",


def in_report(path, caption, category, **labels):
    """Mark an output for `snakemake --report`; its caption is resources/report/`caption`.rst."""
    caption = f"../resources/report/{caption}.rst"
    return report(path, caption=caption, category=category, labels=labels)


def table(name):
    """A table of the experiment, marked for Snakemake's report."""
    path = f"<experiment>/{name}.csv"
    return in_report(path, f"tables/{name}", "Tables", table=name, format="csv")


def table_for_people(name, ending):
    """A table with units in its header, marked for Snakemake's report."""
    path = f"<experiment>/tables/{name}.{ending}"
    return in_report(
        path, f"tables/{name}_for_people", "Tables", table=f"{name}, with units", format=ending
    )


def figure(name, ending):
    """A figure of the experiment, marked for Snakemake's report, which makes a toggle of the format."""
    path = f"<experiment>/figures/{name}.{ending}"
    labels = {"figure": name.replace("_", " "), "format": ending}
    return in_report(path, f"figures/{name}", "Figures", **labels)


def run_folder(framework):
    """The run folder of a framework, with wildcards."""
    names = ("{dataset}", "{model}", framework, "{init}", "{recipe}", "{seed}")
    return RunFolder(Path("<experiment>"), *names).target


def metrics_of_runs(framework):
    """metrics.csv of the runs of a framework, marked for Snakemake's report, which makes a toggle of the init.

    Snakemake shows one toggle per table: a label with two values that is not the first. So other labels that may
    have two values are also part of the subcategory; they stay labels, since searches find labels.
    """
    labels = {name: f"{{{name}}}" for name in ("seed", "dataset", "model", "recipe", "init")}
    return report(
        f"{run_folder(framework)}/metrics.csv",
        caption="../resources/report/tables/metrics.rst",
        category="Runs",
        subcategory=f"{framework}: {{dataset}}, {{model}}, {{recipe}}",
        labels={**labels, "framework": framework},
    )


def run_files(framework):
    """The files of a run folder, by their names in the rule."""
    folder = run_folder(framework)
    return {
        "metrics": metrics_of_runs(framework),
        "predictions": f"{folder}/predictions.csv",
        "run_json": f"{folder}/run.json",
        "events": directory(f"{folder}/tensorboard"),
    }


def binarized_files(*inputs, numbers=False):
    """The files of binarized data by their names in the rule.

    `inputs` are fairseq's folders of texts; labels are binarized classes, or numbers as text.
    """
    folder = "<data>/{{dataset}}/{{model}}/binarized"
    splits, endings = ["train", "valid", "test"], ["bin", "idx"]
    binary = list(inputs) if numbers else [*inputs, "label"]
    as_text = expand(f"{folder}/label/{{split}}.label", split=splits) if numbers else []
    return {
        "dictionaries": expand(f"{folder}/{{part}}/dict.txt", part=binary),
        "files": expand(
            f"{folder}/{{part}}/{{split}}.{{ending}}",
            part=binary,
            split=splits,
            ending=endings,
        )
        + as_text,
        "summary": "<data>/{dataset}/{model}/binarized/binarized.json",
    }
