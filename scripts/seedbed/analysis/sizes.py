"""What sizes of training tell, as report and figures ask it: learning curves, their worth in labels, and bags
of words beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seedbed.analysis.experiment import Experiment
from seedbed.analysis.label_worth import MORE
from seedbed.analysis.label_worth_rows import BASELINE, PASSED, PASSES, WORTH
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
class Estimate:
    """A number of labels with its interval.

    Attributes:
        number: of labels.
        low, high: the interval; None without one.
        no_verdict: why the number bears no verdict; empty where it does.
    """

    number: Number
    low: Number | None
    high: Number | None
    no_verdict: str


@dataclass(frozen=True)
class Worth(Estimate):
    """With how many labels random weights reach a score of the checkpoint, or a bag of words one of runs.

    Attributes:
        size: labels behind the score.
        score: in the unit of the metric.
        ratio: of the number and `size`.
    """

    size: int
    score: float
    ratio: Number


@dataclass(frozen=True)
class BesideBag:
    """A learning curve beside bags of words on as many texts.

    Attributes:
        worth: with how many labels a bag reaches the score at each size.
        passes: from how many labels on the curve is at least as good as a bag; None where fewer than two
            sizes have both.
        passed: from how many labels on a bag is at least as good; None unless the curve is worse at the
            largest size.
    """

    worth: Mapping[int, Worth]
    passes: Estimate | None
    passed: Estimate | None


@dataclass(frozen=True)
class Sized:
    """The learning curves of one dataset, model and recipe.

    Attributes:
        dataset, model, recipe: names in the config.
        curves: rows of learning_curves.csv by framework and init, the smallest size first.
        worth: by framework and size.
        bags: by framework and init; empty without bags of words at two sizes.
    """

    dataset: str
    model: str
    recipe: str
    curves: Mapping[tuple[str, str], Sequence[Row]]
    worth: Mapping[str, Mapping[int, Worth]]
    bags: Mapping[tuple[str, str], BesideBag]

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
        here = [row for row in worth if _place(row) == (dataset, model, recipe)]
        of_inits = [row for row in here if (row["kind"], row["family"]) == (WORTH, "init")]
        by_framework = {framework: _worths(of_a) for (framework, _), of_a in _by_a(of_inits).items()}
        beside_bags = [row for row in here if row["family"] == BASELINE]
        bags = {curve: _beside_bag(of_a) for curve, of_a in _by_a(beside_bags).items()}
        found.append(Sized(dataset, model, recipe, _by_curve(rows), by_framework, bags))
    return found


def _is_told(experiment: Experiment, row: Row) -> bool:
    return row["metric"] == experiment.metric and row["test_set"] == "all"


def _place(row: Row) -> tuple[Any, ...]:
    return row["dataset"], row["model"], row["recipe_a"]


def _by_curve(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    found = grouped(rows, "framework", "init")
    return {key: sorted(of, key=lambda row: row["train_size"]) for key, of in found.items()}


def _by_a(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Rows of label_worth.csv by framework and init of curve a."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        framework, init = row["a"].split("/")
        found.setdefault((framework, init), []).append(row)
    return found


def _beside_bag(rows: Sequence[Row]) -> BesideBag:
    passing = {row["kind"]: Estimate(**_estimate(row)) for row in rows if row["kind"] in (PASSES, PASSED)}
    return BesideBag(_worths(rows), passing.get(PASSES), passing.get(PASSED))


def _worths(rows: Sequence[Row]) -> dict[int, Worth]:
    """What the scores of a curve are worth, by size."""
    return {row["train_size"]: _worth(row) for row in rows if row["kind"] == WORTH}


def _worth(row: Row) -> Worth:
    ratio = Number(row["ratio"], row["labels_bound"] or "")
    return Worth(**_estimate(row), size=row["train_size"], score=row["score"], ratio=ratio)


def _estimate(row: Row) -> dict[str, Any]:
    """The attributes of an `Estimate`."""
    number, low, high = (_number(row, name) for name in ("labels", "low", "high"))
    return {"number": known(number), "low": low, "high": high, "no_verdict": row["no_verdict"] or ""}


def _number(row: Row, name: str) -> Number | None:
    return None if row[name] is None else Number(row[name], row[f"{name}_bound"] or "")
