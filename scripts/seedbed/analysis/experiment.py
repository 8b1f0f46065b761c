"""An experiment as its tables tell it: what report and figures ask of them."""

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Self

from seedbed.analysis.differences import Contrast
from seedbed.analysis.equal_recipes import equal_recipe
from seedbed.analysis.table_rows import (
    RunRow,
    SummaryRow,
    read_summary,
    run_columns,
    seed_values,
    value_column,
)
from seedbed.core.known import all_known
from seedbed.core.rows import CELL, Row, grouped, on_test_set, read_table
from seedbed.core.tasks import Task, task_of
from seedbed.core.words import level_text, metric_name, recipe_text

INITS = ("pretrained", "random")


@dataclass(frozen=True)
class Experiment:
    """An experiment as its tables tell it, on one test set and by one metric.

    Figures read it as `figures.base.Data`, which adds how they look. Summary and report read it beside
    `report.sources.Sources`, which holds other files. `finished.Finished` is an experiment that is known by
    its folder alone.

    Attributes:
        runs: rows of runs.csv.
        summary, contrasts: rows of those tables, of one test set and one metric.
        reporting: `Plan.reporting()`.
        others: the same experiment by the task's other metrics.
        tables: rows of other tables by name, such as churn.
        adapter_mib: size in MiB of a run's adapter file, by `RunRow.folder`, of the runs that have one.
        without_leaks: the same experiment on the test examples that did not leak; None if it was not read.
    """

    runs: Sequence[RunRow]
    summary: Sequence[SummaryRow]
    contrasts: Sequence[Contrast]
    reporting: Mapping[str, Any]
    others: Mapping[str, Self] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    adapter_mib: Mapping[str, float] = field(default_factory=dict)
    without_leaks: Self | None = None

    @classmethod
    def read(
        cls,
        paths: Mapping[str, Any],
        reporting: Mapping[str, Any],
        tables: Collection[str] = (),
        adapter_mib: Mapping[str, float] | None = None,
    ) -> Self:
        """The experiment by the first metric that its task reports, with the others beside it.

        Args:
            paths: of the tables, by name: runs, summary, contrasts where there are any, and `tables`; others
                are not read.
            reporting: `Plan.reporting()`.
            tables: names of the other tables to read.
            adapter_mib: see `Experiment`.

        Raises:
            SeedbedError: a table is missing or cut, or lacks a column, as tables of earlier versions may.
        """
        differences = Contrast.read(paths["contrasts"], "table of contrasts") if "contrasts" in paths else []
        whole = cls(
            RunRow.read(paths["runs"], needed=run_columns(reporting)),
            read_summary(paths["summary"]),
            differences,
            reporting,
            tables={name: read_table(paths[name]) for name in tables},
            adapter_mib=adapter_mib or {},
        )
        return replace(whole._on("all"), without_leaks=whole._on("without leaks"))

    def _on(self, test_set: str) -> Self:
        """The rows of one test set, by the first metric that the task reports, with the others beside it."""
        summary, contrasts = on_test_set(self.summary, test_set), on_test_set(self.contrasts, test_set)
        first, *rest = (
            replace(
                self,
                summary=[row for row in summary if row.metric == metric],
                contrasts=[row for row in contrasts if row.metric == metric],
            )
            for metric in self.task.reported
        )
        return replace(first, others={one.metric: one for one in rest if one.summary})

    @functools.cached_property
    def task(self) -> Task:
        """What the runs were trained for."""
        return task_of(self.reporting)

    @property
    def metric(self) -> str:
        """The metric of summary and contrasts: the first that the task reports, unless they say another."""
        return self.summary[0].metric if self.summary else self.task.reported[0]

    @property
    def scored(self) -> str:
        """What is compared, in words: test accuracy."""
        return f"test {metric_name(self.metric)}"

    @property
    def by_metric(self) -> dict[str, Self]:
        """This experiment and the others, by metric."""
        return {self.metric: self, **self.others}

    @property
    def confidence(self) -> float:
        """Level of intervals."""
        return self.reporting["statistics"]["confidence"]

    @property
    def level(self) -> str:
        """The level in words: 95% interval."""
        return f"{level_text(self.confidence)} interval"

    @property
    def power(self) -> float:
        """Power for which numbers of seeds are given."""
        return self.reporting["statistics"]["power"]

    def recipe(self, name: str) -> str:
        """A recipe in words: learning rate 1e-5."""
        return recipe_text(self.reporting["recipes"], name)

    def recipes(self, family: str) -> list[str]:
        """The recipes of a family, in the order of its sweep; of a range that grows, a side may lack some."""
        return [name for name, block in self.reporting["recipes"].items() if block["family"] == family]

    def reference(self, family: str) -> str:
        """The equal recipe of a family that answers speak of."""
        return equal_recipe(family, self.reporting)

    def tried(self, family: str, place: tuple[str, ...]) -> list[str]:
        """The recipes of a family that a side has, by (dataset, model, framework, init)."""
        return [name for name in self.recipes(family) if (*place, name) in self.cells]

    def group(self, row: SummaryRow) -> list[RunRow]:
        """The runs behind a row of the summary."""
        return self.cells.get(row.cell, [])

    @functools.cached_property
    def cells(self) -> dict[tuple[str, ...], list[RunRow]]:
        """Runs by dataset, model, framework, init and recipe."""
        return grouped(self.runs, *CELL)

    @functools.cached_property
    def frameworks(self) -> list[str]:
        """Frameworks of the runs, in the order of the grid."""
        return list(dict.fromkeys(run.framework for run in self.runs))

    @functools.cached_property
    def inits(self) -> list[str]:
        """Inits of the runs."""
        found = {run.init for run in self.runs}
        return [init for init in INITS if init in found]

    def adapter_size(self, runs: Iterable[RunRow]) -> float | None:
        """The median size in MiB of the adapters of some runs; None where none has one."""
        sizes = [self.adapter_mib[run.folder] for run in runs if run.folder in self.adapter_mib]
        return median(sizes) if sizes else None

    def side(self, contrast: Row, side: str) -> list[RunRow]:
        """The runs behind side `a` or `b` of a contrast; none for a difference of gains."""
        framework, init = contrast[side].split("/")
        other = "_b" if side == "b" else ""
        dataset, model = (contrast[key + other] for key in ("dataset", "model"))
        return self.cells.get((dataset, model, framework, init, contrast[f"recipe_{side}"]), [])

    def values(self, contrast: Row) -> tuple[list[float], list[float]]:
        """The test values of both sides of a contrast, in the same order of seeds."""
        column = value_column(contrast)
        a, b = (all_known(seed_values(self.side(contrast, side), column)) for side in ("a", "b"))
        order = a if set(a) == set(b) else b
        return list(a.values()), [b[seed] for seed in order]

    @property
    def has_families(self) -> bool:
        """Whether there are several families of recipes, so that a sentence has to name its own."""
        return len({block["family"] for block in self.reporting["recipes"].values()}) > 1
