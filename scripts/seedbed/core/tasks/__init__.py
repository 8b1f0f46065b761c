"""The tasks: metrics, selection of checkpoints, tables, and words for people.

A task is a module of this package that defines `TASK`; no other code names it.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

from seedbed.core.tasks.metrics import (
    ANSWER_COLUMNS,
    CORRELATION,
    FRACTION,
    GROUP_COLUMN,
    METRIC_COLUMNS,
    METRICS,
    NATS,
    NUMBER,
    PERPLEXITY,
    SQUARES,
    VALUE_COLUMNS,
    Metric,
    class_of_metric,
    metric_named,
)
from seedbed.core.tasks.outside import OUTSIDE
from seedbed.core.tasks.task import ANSWERS, CAUSAL, CLASSES, ENCODER, LABEL_SETS, SCORES, VALUES, Task, Words

__all__ = [
    "ANSWERS", "ANSWER_COLUMNS", "CAUSAL", "CLASSES", "CORRELATION", "DEFAULT", "ENCODER", "FRACTION",
    "GROUP_COLUMN", "LABEL_SETS", "METRICS", "METRIC_COLUMNS", "NATS", "NO_PREDICTION", "NUMBER", "OUTSIDE",
    "PERPLEXITY", "SCORES", "SQUARES", "TASKS", "VALUES", "VALUE_COLUMNS", "Metric", "Task", "Words",
    "class_of_metric", "metric_named", "task_of",
]  # fmt: skip

NO_PREDICTION = "none"  # replaces a class in tables if a model returned no number
DEFAULT = "classification"  # the task of a dataset without `task`


def _found() -> dict[str, Task]:
    """The tasks that modules of this package define, by name."""
    modules = (
        importlib.import_module(f"{__name__}.{entry.name}") for entry in pkgutil.iter_modules(__path__)
    )
    tasks = (module.TASK for module in modules if hasattr(module, "TASK"))
    return {task.name: task for task in tasks}


TASKS = _found()


def task_of(reporting: Mapping[str, Any]) -> Task:
    """The task of an experiment with its main metric, both shared by all datasets of its grid.

    Args:
        reporting: `Plan.reporting()`, or a resolved config.
    """
    dataset = reporting["datasets"][reporting["grid"]["datasets"][0]]
    return {**TASKS, **OUTSIDE}[dataset["task"]].measured_by(dataset.get("metric"))
