"""Tasks: what each declares holds together, and a task of a known kind of outputs is one module."""

import dataclasses
import importlib
import os
import shutil
import subprocess
import sys

import pytest

from seedbed.core.methods import METHODS
from seedbed.core.tasks import CAUSAL, DEFAULT, ENCODER, METRICS, TASKS
from seedbed.figures import registry
from seedbed.running import identity
from seedbed.sources.locations import ROOT
from seedbed.training.metrics import MEASURES, measure_of


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_what_a_task_declares_holds_together(task):
    assert {task.selection, task.tie_break} <= set(task.metrics) <= set(METRICS)
    assert set(task.reported) <= {*task.metrics, *task.final}
    assert set(task.counted) <= {*task.metrics, *task.final}
    assert callable(measure_of(task, {"labels": ["a", "b"], "mean": 0.0, "sd": 1.0}))
    assert {metric for _, metric in task.curves} <= set(task.metrics)
    assert set(task.figure_titles) <= {spec.name for spec in registry.FIGURES}
    assert "full" in task.methods
    assert task.outputs in MEASURES
    assert task.loss in task.metrics
    assert task.model in (ENCODER, CAUSAL)
    hash(task)


def test_the_default_is_a_task():
    assert DEFAULT in TASKS
    assert set(METHODS) == {method for task in TASKS.values() for method in task.methods}


def test_each_task_is_a_module_of_its_name():
    for name, task in TASKS.items():
        assert importlib.import_module(f"seedbed.core.tasks.{name}").TASK is task


SUMMARISATION = """
import dataclasses
from seedbed.core.tasks import generation

TASK = dataclasses.replace(
    generation.TASK, name="summarisation", meaning="a summary of a text", reported=("f1", "loss")
)
"""
# what Snakemake asks of a plan, and what tables and identities need to know
ASKED = """
import sys
from pathlib import Path

import yaml
from seedbed.analysis.table_rows import run_columns
from seedbed.config.plan import Plan
from seedbed.figures import registry
from seedbed.running import identity

raw = {**yaml.safe_load(Path("config.yaml").read_text()), **yaml.safe_load(Path(sys.argv[2]).read_text())}
raw["results"] = sys.argv[1]
before = Plan(raw)
raw["datasets"]["questions_fr"]["task"] = "summarisation"
plan = Plan(raw)
assert plan.task.name == plan.reporting()["task"] == "summarisation"
assert len(plan.runs) == len(before.runs) == 12
assert registry.names_for(plan) == registry.names_for(before)
assert plan.pattern("datasets", "answers") == before.pattern("datasets", "answers") == "questions_fr"
assert run_columns(plan.reporting()) == run_columns(before.reporting())
kinds = "transformers summarisation", "transformers generation"
assert identity.modules_of(kinds[0]) == identity.modules_of(kinds[1])
assert identity.training_code(kinds[0]) != identity.training_code(kinds[1])
"""


def test_a_new_module_is_a_task_without_another_change(tmp_path):
    """From the config to the columns of the tables; its runs are not those of the other task."""
    root = tmp_path / "workflow"
    shutil.copytree(ROOT / "scripts" / "seedbed", root / "scripts" / "seedbed")
    for name in ("experiments", "resources", "schemas", "config.yaml"):
        (root / name).symlink_to(ROOT / name)
    (root / "scripts" / "seedbed" / "core" / "tasks" / "summarisation.py").write_text(SUMMARISATION)
    command = [sys.executable, "-c", ASKED, str(tmp_path / "results"), "experiments/demo_lora.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(root / "scripts")}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_words_for_people_change_no_identity(monkeypatch):
    kind = "transformers classification"
    before = identity.training_code.__wrapped__(kind)
    task = TASKS["classification"]
    words = dataclasses.replace(task.words, question="Does it help?")
    monkeypatch.setitem(TASKS, task.name, dataclasses.replace(task, words=words, figure_titles={"a": "b"}))
    assert identity.training_code.__wrapped__(kind) == before
    monkeypatch.setitem(TASKS, task.name, dataclasses.replace(task, selection="loss"))
    assert identity.training_code.__wrapped__(kind) != before
