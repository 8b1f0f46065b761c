"""Why a difference bears no verdict, in words: what the runs behind it did, and what to try.

Whether it does is decided in `seedbed.analysis.verdicts`; here is only how that reads.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seedbed.analysis import statistics
from seedbed.analysis.sides import SAME_CELLS
from seedbed.analysis.table_rows import RunRow
from seedbed.analysis.verdicts import (
    COLLAPSE,
    FEW_SEEDS,
    UNLEARNED,
    bounds,
    direction,
    is_one_class,
    is_withheld,
    learned_nothing,
    needed_accuracy,
    partly_collapsed,
    sound_seeds,
    verdict,
)
from seedbed.core.known import known
from seedbed.core.rows import TEST_SETS, Row
from seedbed.core.seeds import FEWEST_SEEDS, independent_seeds
from seedbed.core.tasks import Task
from seedbed.core.wording import Words
from seedbed.core.words import (
    capital,
    framework_name,
)
from seedbed.report.experiment import Experiment

WORDS = Words("report/undecided")
# of the first epoch's training loss: below the one it is said to have fallen, below the other to have fallen
# so far that the training texts were learned
FALLEN, LEARNED_TRAINING = 0.9, 0.5
SPLITS = ("validation", "test")  # on which a run may be the same throughout
FEW_EXAMPLES = 30  # of a test split: fewer hardly tell a run that learned from one that did not


def clause(experiment: Experiment, row: Row, what: str) -> str | None:
    """Why a difference bears no verdict, as a finding of a sentence; None where it may bear one.

    Args:
        experiment: whose contrast it is.
        row: of contrasts.csv.
        what: what is left open, behind "cannot tell": the inits apart.
    """
    if not is_withheld(row):
        return None
    return WORDS.say("clause", verdict(row), what, experiment.task.words.gives_one_output)


# --- the runs behind a difference ---------------------------------------------------------------------------


def cells(experiment: Experiment, row: Row, side: str) -> list[list[RunRow]]:
    """The runs of side `a` or `b` of a contrast; of a gain those of both inits."""
    framework, init = row[side].split("/")
    if init != "gain":
        return [experiment.side(row, side)]
    recipes = row[f"recipe_{side}"].split("/")
    pairs = zip(("pretrained", "random"), (recipes[0], recipes[-1]), strict=True)
    return [
        experiment.side({**row, side: f"{framework}/{init}", f"recipe_{side}": recipe}, side)
        for init, recipe in pairs
    ]


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
        majority: accuracy of the majority class on test, a fraction; None where it is not known.
    """

    words: str
    losses: tuple[float, float] | None
    majority: float | None


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
        losses: mean training loss of the first and of the last epoch, in nats; None where not known.
        rates, epochs: of their recipes; empty where they are many or not known.
    """

    course: str
    runs: int
    unstable: int
    one_class: bool
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
        needed: what an accuracy above the majority class takes; None where it is not known, or impossible.
        remedy: what to try.
        weak_bag: accuracy of a bag of words that does not beat the majority class either; None without one.
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


def nothing_learned(experiment: Experiment, rows: Sequence[Row], place: str) -> tuple[str, list[str]]:
    """What is said where no run behind some contrasts of one dataset learned anything: the first sentence,
    and those that explain it and say what to try.

    Args:
        experiment: whose contrasts these are.
        rows: contrasts with a verdict of UNLEARNED.
        place: where they were measured, behind the sentence: on `books`.
    """
    found = unlearned(experiment, runs_behind(experiment, rows), rows[0]["test_set"])
    return WORDS.say("lead", found, place), WORDS.items("more", found)


def first_of_all(experiment: Experiment) -> list[str]:
    """What an answer without any difference to lead with begins with where no run of the experiment learned
    anything; nothing where one did."""
    runs = _trained(experiment.runs)
    if not learned_nothing(runs):
        return []
    datasets = list(dict.fromkeys(run.dataset for run in runs))
    if len(datasets) > 1:
        return [f"**{WORDS.say('nowhere', len(runs), experiment.task.words.baseline, datasets)}**"]
    found = unlearned(experiment, runs, "all")
    return [f"**{WORDS.say('lead', found, WORDS.say('on', datasets[0]))}**", *WORDS.items("more", found)]


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
    examples, share = runs[0].tested(test_set)[:2]
    needed = _needed(experiment, runs, test_set)
    kind = "plain"
    if all(map(is_one_class, runs)):
        kind = "one_class"
    elif share is not None and needed is None:
        kind = "small_test_set"
    elif share is not None and known(examples) < FEW_EXAMPLES:
        # on so few examples a better one may be chance
        accuracies = [known(run.value(f"test_accuracy{TEST_SETS[test_set]}")) for run in runs]
        kind = "by_chance" if max(accuracies) > share else kind
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


def _bar(experiment: Experiment, runs: Sequence[RunRow], test_set: str) -> Bar:
    words = experiment.task.words.baseline
    if runs[0].not_above_untrained is None:
        return Bar(words, None, runs[0].tested(test_set).majority_share)
    told = [run.untrained_validation_loss for run in runs]
    losses = [loss for loss in told if loss is not None]
    return Bar(words, (min(losses), max(losses)) if len(losses) == len(told) else None, None)


def _needed(experiment: Experiment, runs: Sequence[RunRow], test_set: str) -> Needed | None:
    tested = runs[0].tested(test_set)
    share = tested.majority_share
    if share is None:
        return None
    examples = known(tested.examples)
    accuracy = needed_accuracy(examples, share, experiment.confidence)
    if accuracy is None:
        return None
    best = max(known(run.value(f"test_accuracy{TEST_SETS[test_set]}")) for run in runs)
    right, best_right = (round(value * examples) for value in (accuracy, best))
    return Needed(experiment.confidence, right, accuracy, best_right, best)


def remedy(experiment: Experiment, runs: Sequence[RunRow]) -> Remedy:
    """What to try where no run learned anything, by what the training loss did and by the recipe."""
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
        losses=losses,
        rates=_settings(experiment, runs, "learning_rate"),
        epochs=_settings(experiment, runs, "epochs"),
    )


def _settings(experiment: Experiment, runs: Sequence[RunRow], key: str) -> tuple[Any, ...]:
    """The values of a key in the recipes of some runs; none where they are many or not known."""
    blocks = experiment.reporting["recipes"]
    values = dict.fromkeys(blocks[run.recipe].get(key) for run in runs)
    return () if None in values or len(values) > 3 else tuple(values)


def _weak_bag(experiment: Experiment, runs: Sequence[RunRow], test_set: str) -> float | None:
    """Accuracy of a bag of words that does not beat the majority class."""
    share = runs[0].tested(test_set).majority_share
    dataset = runs[0].dataset
    rows = [row for row in experiment.summary if row.dataset == dataset and row.test_set == test_set]
    bag = rows[0].bag_of_words if rows else None
    return None if bag is None or share is None or bag > share else bag


def one_sided(experiment: Experiment, rows: Mapping[str, Row], names: Mapping[str, str]) -> list[str]:
    """Said where one side of a difference learned nothing and the other did.

    Args:
        experiment: whose contrasts these are.
        rows: contrasts by framework, or by whatever else tells them apart.
        names: what sides a and b are called.
    """
    told: dict[str, list[str]] = {}
    for framework, row in rows.items():
        if verdict(row) in UNLEARNED:
            continue
        for side in "ab":
            runs = [run for of_cell in cells(experiment, row, side) for run in of_cell]
            if learned_nothing(runs, row["test_set"]):
                bar = _bar(experiment, runs, row["test_set"])
                found = WORDS.say("unlearned_side", names[side], len(runs), bar)
                told.setdefault(found, []).append(framework_name(framework))
    if len(rows) == 1:
        return [f"{capital(found)}." for found in told]
    return [WORDS.say("with_frameworks", names, found) for found, names in told.items()]


# --- several tests ------------------------------------------------------------------------------------------


def corrected(experiment: Experiment, rows: Sequence[Row]) -> list[str]:
    """That the verdicts on some contrasts of one family are corrected for the number of all of them; nothing
    where there is one, or no verdict.

    A difference at the equal recipe and at each side's best counts once where the recipes are the same.
    """
    families = {row["family"] for row in rows if not is_withheld(row)}
    tests = {
        tuple(row[key] for key in SAME_CELLS)
        for row in experiment.contrasts
        if row["family"] in families and row["p_value"] is not None
    }
    return [WORDS.say("corrected", experiment.confidence, len(tests))] if len(tests) > 1 else []


def is_before_holm(row: Row) -> bool:
    """Whether a difference's interval leaves zero out, and Holm's correction takes the verdict away."""
    return verdict(row) == "unclear" and direction(*bounds(row)) in ("higher", "lower")


def before_holm(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """Which differences have an interval that leaves zero out, and no verdict after Holm's correction."""
    found = {framework_name(name): row["p_holm"] for name, row in rows.items() if is_before_holm(row)}
    named = list(found) if len(rows) > 1 else []
    return [WORDS.say("before_holm", named, experiment.level, list(found.values()))] if found else []


# --- too few seeds ------------------------------------------------------------------------------------------


def few_seeds(rows: Iterable[Row]) -> list[str]:
    """What to do about differences with two seeds on a side, said once for all of them."""
    return [WORDS.say("few_seeds")] if any(verdict(row) == FEW_SEEDS for row in rows) else []


# --- collapsed runs -----------------------------------------------------------------------------------------


def collapsed_how(task: Task, run: RunRow) -> str:
    """How a run collapsed, with the split: predicts one class on validation and test."""
    splits, answers = _splits_same(run), task.writes_answers
    return WORDS.say("collapsed_how", bool(run.diverged), splits, _alone(run, splits), answers)


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


def collapse_remark(experiment: Experiment, rows: Sequence[Row]) -> list[str]:
    """How many runs behind some contrasts collapsed, and how; nothing where none did."""
    runs = runs_behind(experiment, rows)
    collapsed = [run for run in runs if run.collapsed]
    if not collapsed:
        return []
    return [
        WORDS.say("collapse_remark", len(collapsed), len(runs), splits_of_collapses(experiment.task, runs))
    ]


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


def collapses(experiment: Experiment, rows: Mapping[str, Row], names: Mapping[str, str]) -> list[str]:
    """How often runs of each side collapsed, and the differences without them; nothing where none did.

    Args:
        experiment: whose contrasts these are.
        rows: contrasts by framework, or by whatever else tells them apart.
        names: what sides a and b are called.
    """
    told = []
    for name, row in rows.items():
        sides = {
            names[side]: [run for of_cell in cells(experiment, row, side) for run in of_cell] for side in "ab"
        }
        named = framework_name(name) if len(rows) > 1 else ""
        told += rates_of_collapse(experiment.task, sides, experiment.confidence, named)
    return [*told, *without_collapsed(experiment, rows)]


def rates_of_collapse(
    task: Task, sides: Mapping[str, Sequence[RunRow]], confidence: float, named: str = ""
) -> list[str]:
    """How often runs of each side collapsed; nothing where none did.

    Args:
        task: what they were trained for.
        sides: runs by the name of their side.
        confidence: level of the exact intervals.
        named: what tells the difference from others.
    """
    rates = [_rate(side, runs, confidence) for side, runs in sides.items()]
    if not any(rate.collapsed for rate in rates):
        return []
    ways = splits_of_collapses(task, [run for runs in sides.values() for run in runs])
    return [WORDS.say("collapse_rates", named, rates, ways, confidence)]


def _rate(side: str, runs: Sequence[RunRow], confidence: float) -> Rate:
    collapsed = sum(bool(run.collapsed) for run in runs)
    low, high = statistics.rate_interval(collapsed, len(runs), confidence)
    return Rate(side, collapsed, len(runs), (math.floor(1000 * low) / 1000, math.ceil(1000 * high) / 1000))


@dataclass(frozen=True)
class WithoutCollapsed:
    """A difference without collapsed runs.

    Attributes:
        name: what tells it from others, such as a framework; empty where it is the only one.
        metric: whose difference it is.
        delta, bounds: the difference and its interval, as fractions or in nats; None without an interval.
        seeds: sound seeds of both sides.
    """

    name: str
    metric: str
    delta: float
    bounds: tuple[float, float] | None
    seeds: tuple[int, int]


def without_collapsed(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """The differences without collapsed runs, by framework or whatever else tells the rows apart; nothing
    where no side has both kinds of runs."""
    found = []
    for name, row in rows.items():
        sides = [cells(experiment, row, side) for side in "ab"]
        if row.get("delta_without_collapsed") is not None and any(map(partly_collapsed, sides)):
            low, high = row["ci_low_without_collapsed"], row["ci_high_without_collapsed"]
            one = WithoutCollapsed(
                name=name if len(rows) > 1 else "",
                metric=row["metric"],
                delta=row["delta_without_collapsed"],
                bounds=None if low is None else (low, high),
                seeds=(len(sound_seeds(sides[0])), len(sound_seeds(sides[1]))),
            )
            found.append(WORDS.say("one_without", one, experiment.level))
    return [WORDS.say("without_collapsed", found)] if found else []


def collapse_decides(experiment: Experiment, rows: Iterable[Row]) -> list[str]:
    """Why collapsed runs decide some differences, and what to do about it."""
    withheld = [row for row in rows if verdict(row) == COLLAPSE]
    if not withheld:
        return []
    left = [
        min(independent_seeds(sound_seeds(cells(experiment, row, side))) for side in "ab") for row in withheld
    ]
    few = [number < FEWEST_SEEDS for number in left]
    return [WORDS.say("collapse_decides", any(few), not all(few))]
