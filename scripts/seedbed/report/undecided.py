"""Why a difference has no verdict: what the runs behind it did, and what to try.

Whether it does is decided in `seedbed.analysis.verdicts`; here is only how that reads.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seedbed.analysis import statistics
from seedbed.analysis.findings import cells
from seedbed.analysis.sides import SAME_CELLS
from seedbed.analysis.table_rows import RunRow
from seedbed.analysis.verdicts import (
    COLLAPSE,
    UNLEARNED,
    bounds,
    direction,
    is_one_class,
    learned_nothing,
    needed_accuracy,
    partly_collapsed,
    sound_seeds,
    verdict,
)
from seedbed.core.known import known
from seedbed.core.rows import TEST_SETS, Row
from seedbed.core.seeds import FEWEST_SEEDS, independent_seeds
from seedbed.core.tasks import METRICS, Task
from seedbed.core.wording import Words
from seedbed.report.experiment import Experiment

WORDS = Words("report/undecided")
# of the first epoch's training loss: below the one it is said to have fallen, below the other to have fallen
# so far that the training texts were learned
FALLEN, LEARNED_TRAINING = 0.9, 0.5
SPLITS = ("validation", "test")  # on which a run may be the same throughout
FEW_EXAMPLES = 30  # of a test split: fewer hardly tell a run that learned from one that did not


# --- the runs behind a difference ---------------------------------------------------------------------------


def runs_behind(experiment: Experiment, rows: Iterable[Row]) -> list[RunRow]:
    """The runs of both sides of some contrasts, each once."""
    found = {
        run.folder: run
        for row in rows
        for side in "ab"
        for of_cell in cells(experiment, row, side)
        for run in of_cell
    }
    return list(found.values())


# --- nothing was learned ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """What a run that learned something is better than.

    Attributes:
        words: what such a run is, in the words of the task.
        losses: lowest and highest validation loss before training, in nats; None if unknown, or if no run is
            held to it. Inits, models and weights rounded to 4 bits have each their own.
        majority: what the majority class has of the metric on test; None where it is not known.
        metric: the main one.
    """

    words: str
    losses: tuple[float, float] | None
    majority: float | None
    metric: str


@dataclass(frozen=True)
class Needed:
    """What takes a run above the majority class: right test examples and accuracy; and those of the best run.

    `confidence` is the level of the one-sided bound of the accuracy that has to exceed the class's share.
    """

    confidence: float
    right: int
    accuracy: float
    best_right: int
    best: float


@dataclass(frozen=True)
class Remedy:
    """What runs that learned nothing did in training, on which depends what to try.

    Attributes:
        course: unstable; or what the training loss did: learned (it fell so far that the training texts were
            learned), falling, flat, or unknown.
        runs, unstable: how many there are, and how many diverged or were unstable.
        one_class: whether any run predicts one class throughout.
        loss: the metric that training makes smaller.
        losses: its mean of the first and of the last epoch; None where not known.
        rates, epochs: of their recipes; empty where they are many or not known.
    """

    course: str
    runs: int
    unstable: int
    one_class: bool
    loss: str
    losses: tuple[float, float] | None
    rates: tuple[float, ...]
    epochs: tuple[int, ...]


@dataclass(frozen=True)
class Unlearned:
    """Runs of one dataset of which none learned anything.

    Attributes:
        kind: one class (each run predicts a single one), small test set (on which no accuracy would show that
            a run learned), by chance (a run is better, on too few test examples), or plain.
        task: what they were trained for.
        runs: how many there are.
        test_examples: of the test set.
        bar: what they are not better than.
        splits: by the splits on which runs are the same throughout, their number.
        needed: what an accuracy above the majority class takes; None where it is not known, or impossible, or
            another metric is the main one.
        remedy: what to try.
        weak_bag: what a bag of words has that does not beat the majority class either; None without one.
    """

    kind: str
    task: Task
    runs: int
    test_examples: int | None
    bar: Bar
    splits: Mapping[str, int]
    needed: Needed | None
    remedy: Remedy
    weak_bag: float | None


def _trained(runs: Iterable[RunRow]) -> list[RunRow]:
    return [run for run in runs if run.method != "none"]


def unlearned(experiment: Experiment, runs: Sequence[RunRow], test_set: str) -> Unlearned:
    """What there is to say of runs of one dataset of which none learned anything.

    Args:
        experiment: whose runs these are.
        runs: rows of runs.csv; those of method none do not count.
        test_set: one of TEST_SETS.
    """
    runs = _trained(runs)
    examples = runs[0].tested(test_set).examples
    share = majority_of(experiment, runs[0], test_set)
    metric = experiment.metric
    needed = _needed(experiment, runs, test_set)
    kind = "plain"
    if all(map(is_one_class, runs)):
        kind = "one_class"
    elif share is not None and needed is None and metric == "accuracy":
        kind = "small_test_set"
    elif share is not None and known(examples) < FEW_EXAMPLES:
        # on so few examples a better one may be chance
        values = [run.value(f"test_{metric}{TEST_SETS[test_set]}") for run in runs]
        better = METRICS[metric].direction
        beats = any(better * value > better * share for value in values if value is not None)
        kind = "by_chance" if beats else kind
    return Unlearned(
        kind=kind,
        task=experiment.task,
        runs=len(runs),
        test_examples=examples,
        bar=_bar(experiment, runs, test_set),
        splits=Counter(_where_same(run) for run in runs if is_one_class(run)),
        needed=needed,
        remedy=remedy(experiment, runs),
        weak_bag=_weak_bag(experiment, runs, test_set),
    )


def majority_of(experiment: Experiment, run: RunRow, test_set: str) -> float | None:
    """What always answering the largest class has of the main metric; None where that is not known."""
    whole = experiment if test_set == "all" else experiment.without_leaks
    found = (row.majority_share for row in (whole.summary if whole else ()) if row.dataset == run.dataset)
    return next(found, None)


def _bar(experiment: Experiment, runs: Sequence[RunRow], test_set: str) -> Bar:
    words = experiment.task.words.baseline
    if runs[0].not_above_untrained is None:
        return Bar(words, None, majority_of(experiment, runs[0], test_set), experiment.metric)
    told = [run.untrained_validation_loss for run in runs]
    losses = [loss for loss in told if loss is not None]
    return Bar(words, (min(losses), max(losses)) if len(losses) == len(told) else None, None, "loss")


def _needed(experiment: Experiment, runs: Sequence[RunRow], test_set: str) -> Needed | None:
    tested = runs[0].tested(test_set)
    share = tested.majority_share
    if share is None or experiment.metric != "accuracy":
        return None
    examples = known(tested.examples)
    accuracy = needed_accuracy(examples, share, experiment.confidence)
    if accuracy is None:
        return None
    best = max(known(run.value(f"test_accuracy{TEST_SETS[test_set]}")) for run in runs)
    right, best_right = (round(value * examples) for value in (accuracy, best))
    return Needed(experiment.confidence, right, accuracy, best_right, best)


def remedy(experiment: Experiment, runs: Sequence[RunRow]) -> Remedy:
    """What to try where runs learned nothing, by what the training loss did and by the recipe."""
    unstable = sum(bool(run.diverged or run.unstable) for run in runs)
    ends = [(run.first_train_loss, run.last_train_loss) for run in runs]
    # one epoch has one training loss
    told = [(first, last) for first, last in ends if None not in (first, last) and first != last]
    course, losses = "unknown", None
    if len(told) == len(ends):
        befores, afters = [known(first) for first, _ in told], [known(last) for _, last in told]
        first, last = losses = sum(befores) / len(told), sum(afters) / len(told)
        course = "falling" if last < FALLEN * first else "flat"
        if all(after < LEARNED_TRAINING * before for before, after in zip(befores, afters, strict=True)):
            course = "learned"
    return Remedy(
        course="unstable" if unstable else course,
        runs=len(runs),
        unstable=unstable,
        one_class=any(map(is_one_class, runs)),
        loss=experiment.task.loss,
        losses=losses,
        rates=_settings(experiment, runs, "learning_rate"),
        epochs=_settings(experiment, runs, "epochs"),
    )


def remedy_text(experiment: Experiment, runs: Sequence[RunRow]) -> str:
    """The same in words."""
    return WORDS.say("remedy", remedy(experiment, runs))


def _settings(experiment: Experiment, runs: Sequence[RunRow], key: str) -> tuple[Any, ...]:
    """The values of a key in the recipes of some runs; none where they are many or not known."""
    blocks = experiment.reporting["recipes"]
    values = dict.fromkeys(blocks[run.recipe].get(key) for run in runs)
    return () if None in values or len(values) > 3 else tuple(values)


def _weak_bag(experiment: Experiment, runs: Sequence[RunRow], test_set: str) -> float | None:
    """What a bag of words has of the main metric that does not beat the majority class."""
    share = majority_of(experiment, runs[0], test_set)
    dataset = runs[0].dataset
    rows = [
        row
        for row in experiment.summary
        if (row.dataset, row.test_set, row.train_size) == (dataset, test_set, runs[0].train_size)
    ]
    bag = rows[0].bag_of_words if rows else None
    if bag is None or share is None:
        return None
    better = METRICS[experiment.metric].direction
    return None if better * bag > better * share else bag


def reasons(found: Unlearned) -> list[str]:
    """What a run would have taken to count as one that learned, in sentences."""
    return WORDS.items("reasons", found)


def unlearned_sides(experiment: Experiment, row: Row, names: Mapping[str, str]) -> list[str]:
    """That one side of a difference learned nothing, where the other did.

    Args:
        experiment: whose contrast it is.
        row: of contrasts.csv.
        names: what runs of sides a and b are called: from random weights.
    """
    if verdict(row) in UNLEARNED:
        return []
    sides = {side: [run for of_cell in cells(experiment, row, side) for run in of_cell] for side in "ab"}
    return [
        WORDS.say("unlearned_side", names[side], len(runs), _bar(experiment, runs, row["test_set"]))
        for side, runs in sides.items()
        if learned_nothing(runs, row["test_set"])
    ]


# --- several tests ------------------------------------------------------------------------------------------


def corrected(experiment: Experiment, families: Collection[str]) -> list[str]:
    """That the verdicts of some families are corrected for their number; nothing where there is one.

    A difference at the equal recipe and at each side's best counts once where the recipes are the same.
    """
    tests = number_of_tests(experiment, families)
    return [WORDS.say("corrected", experiment.confidence, tests)] if tests > 1 else []


def number_of_tests(experiment: Experiment, families: Collection[str]) -> int:
    """How many differences of some families Holm's correction runs over."""
    tests = {
        tuple(row[key] for key in SAME_CELLS)
        for row in experiment.contrasts
        if row["family"] in families and row["p_value"] is not None
    }
    return len(tests)


def is_before_holm(row: Row) -> bool:
    """Whether a difference's interval leaves zero out, and Holm's correction takes the verdict away."""
    return verdict(row) == "unclear" and direction(*bounds(row)) in ("higher", "lower")


# --- too few seeds ------------------------------------------------------------------------------------------


# --- collapsed runs -----------------------------------------------------------------------------------------


def collapsed_how(task: Task, run: RunRow) -> str:
    """How a run collapsed, with the split: predicts one class on validation and test."""
    splits = _splits_same(run)
    return WORDS.say("collapsed_how", bool(run.diverged), splits, _alone(run, splits), task)


def on_validation_alone(run: RunRow) -> bool:
    """Whether a run predicts one class on validation and more of them on test, whose score is then no sign of
    a collapse."""
    return is_one_class(run, ("validation",)) and run.test_all_same is False


def _splits_same(run: RunRow) -> list[str]:
    """The splits on which a run predicts one class; none where that is not known."""
    return [split for split in SPLITS if is_one_class(run, (split,))]


def _alone(run: RunRow, splits: Sequence[str]) -> bool:
    """Whether a run predicts one class on one split and, as is known, more of them on the other."""
    return len(splits) == 1 and all(run.all_same(split) is not None for split in SPLITS)


def _where_same(run: RunRow) -> str:
    splits = _splits_same(run)
    return WORDS.say("where", splits, _alone(run, splits))


def splits_of_collapses(task: Task, runs: Sequence[RunRow]) -> str:
    """How the collapsed ones of some runs collapsed and on which split, in brackets; empty where the runs do
    not tell, and where they only diverged."""
    collapsed = [run for run in runs if run.collapsed]
    if not any(map(_splits_same, collapsed)):
        return ""
    return WORDS.say("ways", Counter(collapsed_how(task, run) for run in collapsed))


@dataclass(frozen=True)
class Rate:
    """How many runs of one side collapsed.

    Attributes:
        side: its name.
        collapsed, runs: how many there are.
        bounds: exact interval of the rate, rounded outwards to 0.1%.
    """

    side: str
    collapsed: int
    runs: int
    bounds: tuple[float, float]


def collapses(experiment: Experiment, row: Row, names: Mapping[str, str], named: str = "") -> list[str]:
    """How often runs of each side collapsed, and the difference without them; nothing where none did.

    Args:
        experiment: whose contrast it is.
        row: of contrasts.csv.
        names: what runs of sides a and b are called.
        named: the framework that tells the difference from others.
    """
    sides = {
        names[side]: [run for of_cell in cells(experiment, row, side) for run in of_cell] for side in "ab"
    }
    found = without(experiment, row)
    return [
        *rates_of_collapse(experiment.task, sides, experiment.confidence, named),
        *([WORDS.say("without_collapsed", found, experiment.level)] if found else []),
    ]


def of_side(name: str) -> str:
    """What runs of a side are called that has a name: of `a`."""
    return WORDS.say("of_side", name)


def rates_of_collapse(
    task: Task, sides: Mapping[str, Sequence[RunRow]], confidence: float, named: str = ""
) -> list[str]:
    """How often runs of each side collapsed; nothing where none did.

    Args:
        task: what they were trained for.
        sides: runs by what they are called: from random weights.
        confidence: level of the exact intervals.
        named: what tells the difference from others.
    """
    rates = [rate(side, runs, confidence) for side, runs in sides.items()]
    if not any(rate.collapsed for rate in rates):
        return []
    ways = splits_of_collapses(task, [run for runs in sides.values() for run in runs])
    return [WORDS.say("collapse_rates", named, rates, ways, confidence)]


def rate_of(experiment: Experiment, row: Row, side: str, name: str) -> Rate:
    """How many runs of side a or b of a contrast collapsed; `name` is what the side is called."""
    runs = [run for of_cell in cells(experiment, row, side) for run in of_cell]
    return rate(name, runs, experiment.confidence)


def rate(side: str, runs: Sequence[RunRow], confidence: float) -> Rate:
    """How many of some runs collapsed."""
    collapsed = sum(bool(run.collapsed) for run in runs)
    low, high = statistics.rate_interval(collapsed, len(runs), confidence)
    return Rate(side, collapsed, len(runs), (math.floor(1000 * low) / 1000, math.ceil(1000 * high) / 1000))


@dataclass(frozen=True)
class WithoutCollapsed:
    """A difference without collapsed runs.

    Attributes:
        metric: whose difference it is.
        delta, bounds: the difference and its interval, as fractions or in nats; None without an interval.
        seeds: sound seeds of both sides.
    """

    metric: str
    delta: float
    bounds: tuple[float, float] | None
    seeds: tuple[int, int]


def without(experiment: Experiment, row: Row) -> WithoutCollapsed | None:
    """A difference without collapsed runs; None where no side has both kinds of runs, or no seed is left."""
    sides = [cells(experiment, row, side) for side in "ab"]
    if row.get("delta_without_collapsed") is None or not any(map(partly_collapsed, sides)):
        return None
    low, high = row["ci_low_without_collapsed"], row["ci_high_without_collapsed"]
    return WithoutCollapsed(
        metric=row["metric"],
        delta=row["delta_without_collapsed"],
        bounds=None if low is None else (low, high),
        seeds=(len(sound_seeds(sides[0])), len(sound_seeds(sides[1]))),
    )


def collapse_decides(experiment: Experiment, row: Row) -> list[str]:
    """Why collapsed runs decide a difference; nothing where they do not."""
    if verdict(row) != COLLAPSE:
        return []
    left = min(independent_seeds(sound_seeds(cells(experiment, row, side))) for side in "ab")
    return [WORDS.say("collapse_decides", left < FEWEST_SEEDS)]
