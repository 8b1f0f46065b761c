"""What sizes of training tell, as report and figures ask it: learning curves, and their worth in labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seedbed.analysis.experiment import Experiment
from seedbed.analysis.label_worth import MORE
from seedbed.core.known import known
from seedbed.core.rows import Row, grouped

TABLES = ("learning_curves", "label_worth")
PLACE = ("dataset", "model", "recipe")


@dataclass(frozen=True)
class Number:
    """A number of labels, or a bound of it.

    Attributes:
        labels: the number.
        bound: `fewer than`, or `more than`; empty where the number is known.
    """

    labels: float
    bound: str


@dataclass(frozen=True)
class Worth:
    """With how many labels random weights reach a score of the checkpoint.

    Attributes:
        size: labels behind the score of the checkpoint.
        score: of the checkpoint, in the unit of the metric.
        number: of labels with random weights.
        low, high: the interval; None without one.
        ratio: of the number and `size`.
        no_verdict: why the number bears no verdict; empty where it does.
    """

    size: int
    score: float
    number: Number
    low: Number | None
    high: Number | None
    ratio: Number
    no_verdict: str


@dataclass(frozen=True)
class Sized:
    """The learning curves of one dataset, model and recipe.

    Attributes:
        dataset, model, recipe: names in the config.
        curves: rows of learning_curves.csv by framework and init, the smallest size first.
        worth: by framework and size.
    """

    dataset: str
    model: str
    recipe: str
    curves: Mapping[tuple[str, str], Sequence[Row]]
    worth: Mapping[str, Mapping[int, Worth]]

    @property
    def sizes(self) -> list[int]:
        """All numbers of training texts."""
        return sorted({row["train_size"] for rows in self.curves.values() for row in rows})

    @property
    def told_size(self) -> int | None:
        """The size of which a sentence tells: the largest whose number of labels is known in most frameworks,
        with an interval if any has one. Without known numbers the smallest, or if these are all fewer than
        the first size the largest. None where inits are not compared."""
        sizes = sorted({size for found in self.worth.values() for size in found})
        if not sizes:
            return None
        at = {size: [found[size] for found in self.worth.values() if size in found] for size in sizes}
        if any(not one.number.bound for found in at.values() for one in found):
            return max(sizes, key=lambda size: (sum(not one.number.bound for one in at[size]), size))
        beyond = any(one.number.bound == MORE for found in at.values() for one in found)
        return sizes[0] if beyond else sizes[-1]


def sized(experiment: Experiment) -> list[Sized]:
    """The learning curves of an experiment by its metric on all test texts; none without sizes of training.

    Args:
        experiment: whose `tables` hold those of TABLES.
    """
    curves = [row for row in experiment.tables.get("learning_curves", ()) if _is_told(experiment, row)]
    worth = [row for row in experiment.tables.get("label_worth", ()) if _is_told(experiment, row)]
    found = []
    for (dataset, model, recipe), rows in grouped(curves, *PLACE).items():
        compared = [row for row in worth if _is_of_inits(row) and _place(row) == (dataset, model, recipe)]
        by_framework: dict[str, dict[int, Worth]] = {}
        for row in compared:
            by_framework.setdefault(row["a"].split("/")[0], {})[row["train_size"]] = _worth(row)
        found.append(Sized(dataset, model, recipe, _by_curve(rows), by_framework))
    return found


def _is_told(experiment: Experiment, row: Row) -> bool:
    return row["metric"] == experiment.metric and row["test_set"] == "all"


def _is_of_inits(row: Row) -> bool:
    return (row["kind"], row["family"]) == ("worth", "init")


def _place(row: Row) -> tuple[Any, ...]:
    return row["dataset"], row["model"], row["recipe_a"]


def _by_curve(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    found = grouped(rows, "framework", "init")
    return {key: sorted(of, key=lambda row: row["train_size"]) for key, of in found.items()}


def _worth(row: Row) -> Worth:
    number, low, high = (_number(row, name) for name in ("labels", "low", "high"))
    return Worth(
        size=row["train_size"],
        score=row["score"],
        number=known(number),
        low=low,
        high=high,
        ratio=Number(row["ratio"], row["labels_bound"] or ""),
        no_verdict=row["no_verdict"] or "",
    )


def _number(row: Row, name: str) -> Number | None:
    return None if row[name] is None else Number(row[name], row[f"{name}_bound"] or "")
