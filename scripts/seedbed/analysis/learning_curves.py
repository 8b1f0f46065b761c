"""Learning curves of an experiment with several sizes of training: learning_curves.csv."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from seedbed.analysis.table_rows import SummaryRow
from seedbed.core.known import known
from seedbed.core.recipes import declared
from seedbed.core.rows import TypedRow


@dataclass(frozen=True, kw_only=True)
class CurveRow(TypedRow):
    """A row of learning_curves.csv: one size of one learning curve, by one metric on one test set.

    Attributes:
        dataset, model, framework, init: of the curve.
        recipe: its name in the config.
        method: of the recipe.
        metric: of the test values.
        test_set: all, or without leaks.
        train_size: number of training texts.
        chosen: the recipe that validation chooses at this size.
        n_seeds, n_collapsed: runs.
        mean, sd: over seeds.
        both_low, both_high: the interval over seeds and test examples, for the recipe as it is.
        bag_of_words: of a bag of words on as many training texts.
        majority_share: of always answering the largest class of test, see `SummaryRow`.
        linear_probe: of a linear probe on as many training texts, see `SummaryRow`.
    """

    OPTIONAL: ClassVar[Collection[str]] = ("linear_probe",)  # of classes alone

    dataset: str
    model: str
    framework: str
    init: str
    recipe: str
    method: str
    metric: str
    test_set: str
    train_size: int
    chosen: str
    n_seeds: int
    n_collapsed: int | None
    mean: float | None
    sd: float | None
    both_low: float | None
    both_high: float | None
    bag_of_words: float | None
    majority_share: float | None
    linear_probe: float | None = None


CURVE_COLUMNS = tuple(each.name for each in fields(CurveRow) if each.name not in CurveRow.OPTIONAL)


@dataclass(frozen=True)
class LearningCurve:
    """The summary of one learning curve by one metric on one test set.

    Attributes:
        dataset, model, framework, init, recipe, method, metric, test_set: of all its rows; the recipe by its
            name in the config.
        candidates: the recipes that may be chosen at each size, the smallest size first.
        chosen: the one that validation chooses, by size.
    """

    dataset: str
    model: str
    framework: str
    init: str
    recipe: str
    method: str
    metric: str
    test_set: str
    candidates: Mapping[int, Sequence[SummaryRow]]
    chosen: Mapping[int, SummaryRow]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes at which it has a score."""
        return tuple(size for size, row in self.chosen.items() if row.mean is not None)


def list_curves(summary: Sequence[SummaryRow], reporting: Mapping[str, Any]) -> list[LearningCurve]:
    """The learning curves of an experiment, in the order of its summary.

    Args:
        summary: rows of summary.csv, with their sizes of training.
        reporting: `Plan.reporting()`.
    """
    groups: dict[tuple[str, ...], list[SummaryRow]] = {}
    for row in summary:
        if row.train_size is not None:
            recipe = declared(reporting["recipes"][row.recipe])
            key = (row.dataset, row.model, row.framework, row.init, recipe, row.metric, row.test_set)
            groups.setdefault(key, []).append(row)
    return [_curve(recipe, rows) for (*_, recipe, _, _), rows in groups.items()]


def _curve(recipe: str, rows: Sequence[SummaryRow]) -> LearningCurve:
    first = rows[0]
    candidates, chosen = _by_size(rows)
    return LearningCurve(
        dataset=first.dataset,
        model=first.model,
        framework=first.framework,
        init=first.init,
        recipe=recipe,
        method=first.method,
        metric=first.metric,
        test_set=first.test_set,
        candidates=candidates,
        chosen=chosen,
    )


def _by_size(
    rows: Sequence[SummaryRow],
) -> tuple[dict[int, list[SummaryRow]], dict[int, SummaryRow]]:
    """The recipes that may be chosen at each size, and the chosen one; sizes whose choice is not known are
    left out."""
    candidates, chosen = {}, {}
    for size in sorted({known(row.train_size) for row in rows}):
        here = [row for row in rows if row.train_size == size]
        equal = [row for row in here if row.selection == "equal"]
        best = [row for row in here if row.selection == "best"] or (equal if len(equal) == 1 else [])
        if best:
            candidates[size], chosen[size] = equal, best[0]
    return candidates, chosen


def curve_rows(curves: Sequence[LearningCurve]) -> list[CurveRow]:
    """The rows of learning_curves.csv."""
    return [
        CurveRow(
            dataset=curve.dataset,
            model=curve.model,
            framework=curve.framework,
            init=curve.init,
            recipe=curve.recipe,
            method=curve.method,
            metric=curve.metric,
            test_set=curve.test_set,
            train_size=size,
            chosen=row.recipe,
            n_seeds=row.n_seeds,
            n_collapsed=row.n_collapsed,
            mean=row.mean,
            sd=row.sd,
            both_low=row.both_low,
            both_high=row.both_high,
            bag_of_words=row.bag_of_words,
            majority_share=row.majority_share,
            linear_probe=row.linear_probe,
        )
        for curve in curves
        for size, row in curve.chosen.items()
    ]
