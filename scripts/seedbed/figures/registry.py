"""The figures that an experiment may have: when each is drawn, from which tables, and where it stands.

To add a figure:

1. Write its drawing function, `NAME(data) -> (figure, Caption)`, in a module of this package; base.py holds
   what figures share. The caption says what is shown, its unit and the number of seeds; its
   details say the kind of interval.
2. Add a `FigureSpec` to FIGURES below, and its title to data/titles.yaml. The report shows the figures of a
   section in this order. Where a task needs another title, put it into `figure_titles` of that task in
   core/tasks. The words of its caption go into templates, those of its axes and legend into data/labels.yaml.
3. Write resources/report/figures/NAME.rst, the caption in Snakemake's own report.

Rules, report and tests take the rest from here. This module loads no drawing library, since the Snakefile
imports it in the process of every job.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seedbed.core import wording
from seedbed.core.tasks import ANSWERS, CLASSES, LABEL_SETS, VALUES, Task
from seedbed.core.words import metric_name

if TYPE_CHECKING:  # results from outside have figures without a plan, and without what a plan needs
    from seedbed.config.plan import Plan

RULE = "write_report"  # draws all figures but those that name another rule
COMMON = ("runs", "summary")  # tables that every figure of that rule is drawn from


# --- when a figure is drawn ---------------------------------------------------------------------------------


def always(plan: "Plan") -> bool:
    """In every experiment."""
    return True


def compares(plan: "Plan") -> bool:
    """Where two inits, models, frameworks or methods can be compared."""
    grid, recipes = plan.config["grid"], plan.config["recipes"]
    return (
        any(len(grid[axis]) > 1 for axis in ("inits", "models"))
        or len({run.framework for run in plan.runs}) > 1
        or len({recipes[name]["method"] for name in grid["recipes"]}) > 1
    )


def several_datasets(plan: "Plan") -> bool:
    """Where the grid has more than one dataset."""
    return len(plan.config["grid"]["datasets"]) > 1


def sweeps(plan: "Plan") -> bool:
    """Where a family has several recipes to choose from."""
    families = [plan.config["recipes"][name]["family"] for name in plan.config["grid"]["recipes"]]
    return len(set(families)) < len(families)


def has_sizes(plan: "Plan") -> bool:
    """Where sizes of training are swept."""
    return bool(plan.sizes)


def has_one_size(plan: "Plan") -> bool:
    """Where every run trains on all texts."""
    return not plan.sizes


def has_test_curves(plan: "Plan") -> bool:
    """Where the test split is evaluated while training."""
    return plan.config["evaluation"]["test_curves"]


# --- the figures --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FigureSpec:
    """A figure of an experiment.

    Attributes:
        name: of its files and of its drawing function.
        module: of this package, which has that function.
        section: of the report, as its sections ask for their figures (`report.parts.figures`).
        outputs: of the tasks that it is drawn for; none for all.
        when: whether an experiment of these tasks has it.
        one_metric: whether it is drawn where a single metric is told, or where several are; None for both.
        tables: what it is drawn from beside COMMON.
        rule: the rule that draws it.
    """

    name: str
    module: str
    section: str
    outputs: tuple[str, ...] = ()
    when: Callable[["Plan"], bool] = always
    one_metric: bool | None = None
    tables: tuple[str, ...] = ()
    rule: str = RULE

    def title_for(self, task: Task) -> str:
        """The title in the report of a task, see data/titles.yaml."""
        own = task.figure_titles.get(self.name)
        metric = metric_name(task.selection)
        return own or wording.fill(wording.data("figures/titles")[self.name], metric=metric)

    def is_drawn(self, plan: "Plan") -> bool:
        """Whether rule write_report draws it for this experiment."""
        fits = not self.outputs or plan.task.outputs in self.outputs
        fits = fits and self.one_metric in (None, plan.task.has_one_metric)
        return self.rule == RULE and fits and self.when(plan)

    def function(self) -> Callable[..., Any]:
        """The drawing function; loads the drawing libraries."""
        return getattr(importlib.import_module(f"seedbed.figures.{self.module}"), self.name)


FIGURES = (
    FigureSpec(
        "data_audit",
        module="audit_figure",
        section="data",
        rule="audit",  # before any training, from the data themselves
    ),
    FigureSpec(
        "scores_by_size",
        module="sizes",
        section="first",
        when=has_sizes,
        tables=("learning_curves", "label_worth"),
    ),
    FigureSpec(
        "test_accuracy",
        module="accuracy",
        section="first",
        outputs=(CLASSES,),
        when=has_one_size,
        one_metric=True,
    ),
    FigureSpec(
        "test_metric",
        module="accuracy",
        section="first",
        outputs=(CLASSES, LABEL_SETS, VALUES),
        when=has_one_size,
        one_metric=False,
    ),
    FigureSpec(
        "test_scores",
        module="scores",
        section="first",
        outputs=(ANSWERS,),
        when=has_one_size,
    ),
    FigureSpec(
        "contrasts",
        module="contrasts",
        section="differences",
        when=compares,
        tables=("contrasts",),
    ),
    FigureSpec(
        "performance_profile",
        module="profiles",
        section="scores",
        outputs=(CLASSES, LABEL_SETS),
        when=several_datasets,
    ),
    FigureSpec(
        "test_accuracy_by_recipe",
        module="accuracy",
        section="sweep",
        outputs=(CLASSES,),
        when=sweeps,
        one_metric=True,
    ),
    FigureSpec(
        "test_metric_by_recipe",
        module="accuracy",
        section="sweep",
        outputs=(CLASSES, LABEL_SETS, VALUES),
        when=sweeps,
        one_metric=False,
    ),
    FigureSpec(
        "test_scores_by_recipe",
        module="scores",
        section="sweep",
        outputs=(ANSWERS,),
        when=sweeps,
    ),
    FigureSpec(
        "expected_validation",
        module="profiles",
        section="search",
        when=sweeps,
        tables=("expected_validation",),
    ),
    FigureSpec(
        "learning_curves",
        module="curves",
        section="training",
        tables=("curves",),
    ),
    FigureSpec(
        "test_curves",
        module="curves",
        section="training",
        when=has_test_curves,
        tables=("curves",),
    ),
    FigureSpec(
        "calibration",
        module="predictions",
        section="predictions",
        outputs=(CLASSES,),
        tables=("calibration",),
    ),
    FigureSpec(
        "confusion",
        module="predictions",
        section="predictions",
        outputs=(CLASSES,),
        tables=("confusion",),
    ),
    FigureSpec(
        "time_and_memory",
        module="costs",
        section="time",
    ),
)
TABLES = tuple(dict.fromkeys([*COMMON, *(table for spec in FIGURES for table in spec.tables)]))


def names_for(plan: "Plan") -> list[str]:
    """Names of the figures that rule write_report draws for this experiment."""
    return [spec.name for spec in FIGURES if spec.is_drawn(plan)]
