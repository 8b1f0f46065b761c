"""
What all rules share: the checked plan of the experiment, the paths, the wildcards.

Paths are written with Snakemake's path variables: <sources>, <data> and <models> are shared between
experiments, <experiment> belongs to one; <logs> and <benchmarks> serve the shared rules.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(workflow.basedir) / "scripts"))

from seedbed.errors import SeedbedError
from seedbed.plan import SPLITS, Plan

try:
    PLAN = Plan(config)
except SeedbedError as error:
    raise WorkflowError(str(error)) from None


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
