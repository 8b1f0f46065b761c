"""Tasks: what each declares holds together, and a task of a known kind of outputs is one module."""

import dataclasses
import importlib

import pytest

from seedbed.analysis.runs import run_columns
from seedbed.core import tasks
from seedbed.core.methods import METHODS
from seedbed.core.tasks import DEFAULT, METRICS, TASKS, task_of
from seedbed.figures import registry
from seedbed.running import identity
from seedbed.training.metrics import MEASURES

RECIPES = {"recipes": {}}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_what_a_task_declares_holds_together(task):
    assert {task.selection, task.tie_break} <= set(task.metrics) <= set(METRICS)
    assert set(task.reported) <= {*task.metrics, *task.final}
    assert set(task.counted) <= {*task.metrics, *task.final}
    assert task.outputs in MEASURES
    assert {metric for _, metric in task.curves} <= set(task.metrics)
    assert set(task.figure_titles) <= {spec.name for spec in registry.FIGURES}
    assert "full" in task.methods
    assert task.has_classes != task.writes_answers
    hash(task)


def test_the_default_is_a_task():
    assert DEFAULT in TASKS
    assert set(METHODS) == {method for task in TASKS.values() for method in task.methods}


def test_each_task_is_a_module_of_its_name():
    for name, task in TASKS.items():
        assert importlib.import_module(f"seedbed.core.tasks.{name}").TASK is task


def test_a_new_module_is_a_task_without_another_change(tmp_path, monkeypatch):
    source = (
        "import dataclasses\n"
        "from seedbed.core.tasks import generation\n"
        "TASK = dataclasses.replace(\n"
        "    generation.TASK, name='summarisation', meaning='a summary of a text', reported=('f1', 'loss')\n"
        ")\n"
    )
    (tmp_path / "summarisation.py").write_text(source)
    monkeypatch.setattr(tasks, "__path__", [*tasks.__path__, str(tmp_path)])
    found = tasks._found()
    assert [*found] == [*TASKS, "summarisation"]
    monkeypatch.setitem(TASKS, "summarisation", found["summarisation"])
    blocks = {"datasets": {"news": {"task": "summarisation"}}, "grid": {"datasets": ["news"]}}
    assert task_of(blocks) is found["summarisation"]
    assert run_columns(blocks | RECIPES) == run_columns(
        {"datasets": {"news": {"task": "generation"}}, "grid": {"datasets": ["news"]}} | RECIPES
    )
    assert identity.modules_of("transformers summarisation") == identity.modules_of("transformers generation")
    assert identity.extra_packages("summarisation", "full") == ("tokenizers",)
    # but a run of it is not one of the other task
    assert identity.training_code("transformers summarisation") != identity.training_code(
        "transformers generation"
    )


def test_words_for_people_change_no_identity(monkeypatch):
    kind = "transformers classification"
    before = identity.training_code.__wrapped__(kind)
    task = TASKS["classification"]
    words = dataclasses.replace(task.words, question="Does it help?")
    monkeypatch.setitem(TASKS, task.name, dataclasses.replace(task, words=words, figure_titles={"a": "b"}))
    assert identity.training_code.__wrapped__(kind) == before
    monkeypatch.setitem(TASKS, task.name, dataclasses.replace(task, selection="loss"))
    assert identity.training_code.__wrapped__(kind) != before
