"""Why a difference bears no verdict, in words: what the runs behind it did, and what to try.

Whether it does is decided in `seedbed.analysis.verdicts`; here is only how that reads.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seedbed.analysis.verdicts import (
    COLLAPSE,
    FEW_SEEDS,
    FEWEST_SEEDS,
    NOTHING_LEARNED,
    ONE_CLASS,
    UNLEARNED,
    independent_seeds,
    is_one_class,
    is_withheld,
    learned_nothing,
    needed_accuracy,
    partly_collapsed,
    sound_seeds,
    verdict,
)
from seedbed.core.rows import CELL, TEST_SETS, Row
from seedbed.core.words import (
    count,
    difference_range,
    difference_text,
    framework_name,
    join,
    level_text,
    percent,
    short_number,
    value_text,
)
from seedbed.report.experiment import Experiment

# what is left open stands in the place of the braces: the inits apart
CLAUSES = {
    NOTHING_LEARNED: "no run learned the task, so that nothing tells {}",
    ONE_CLASS: "all runs {same}, so that nothing tells {}",
    FEW_SEEDS: "fewer than three seeds on a side cannot tell {}",
    COLLAPSE: "the verdict would hang on a collapsed run, so that these runs cannot tell {}",
}
SAME = {"classification": "answer one class", "generation": "give one answer"}
# of the first epoch's training loss: below the one it is said to have fallen, below the other to have fallen
# so far that the training texts were learned
FALLEN, LEARNED_TRAINING = 0.9, 0.5
LARGER_TEST = "Take a larger test split, in which every class has its examples."
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
    return CLAUSES[verdict(row)].format(what, same=SAME[experiment.task.name])


# --- the runs behind a difference ---------------------------------------------------------------------------


def cells(experiment: Experiment, row: Row, side: str) -> list[list[Row]]:
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


def runs_behind(experiment: Experiment, rows: Iterable[Row]) -> list[Row]:
    """The runs of both sides of some contrasts, each once."""
    found = {
        tuple(str(run[key]) for key in (*CELL, "init_seed", "data_seed")): run
        for row in rows
        for side in "ab"
        for of_cell in cells(experiment, row, side)
        for run in of_cell
    }
    return list(found.values())


# --- nothing was learned ------------------------------------------------------------------------------------


def nothing_learned(experiment: Experiment, rows: Sequence[Row], place: str) -> tuple[str, list[str]]:
    """What is said where no run behind some contrasts of one dataset learned anything: the first sentence,
    and those that explain it and say what to try.

    Args:
        experiment: whose contrasts these are.
        rows: contrasts with a verdict of UNLEARNED.
        place: where they were measured, behind the sentence: on `books`.
    """
    return _nothing(experiment, runs_behind(experiment, rows), rows[0]["test_set"], place)


def first_of_all(experiment: Experiment) -> list[str]:
    """What an answer without any difference to lead with begins with where no run of the experiment learned
    anything; nothing where one did."""
    runs = [run for run in experiment.runs if run.get("method") != "none"]
    if not learned_nothing(runs):
        return []
    datasets = dict.fromkeys(run["dataset"] for run in runs)
    place = f"on {join([f'`{name}`' for name in datasets])}"
    if len(datasets) > 1:
        bar = _bar(runs, "all").split(" (")[0]
        return [f"**No run learned the task: none of the {count(len(runs), 'run')} is {bar} {place}.**"]
    lead, more = _nothing(experiment, runs, "all", place)
    return [f"**{lead}**", *more]


def _nothing(experiment: Experiment, runs: Sequence[Row], test_set: str, place: str) -> tuple[str, list[str]]:
    runs = [run for run in runs if run.get("method") != "none"]
    lead = (
        f"No run learned the task: none of the {count(len(runs), 'run')} is {_bar(runs, test_set)} {place}."
    )
    if len(runs) == 1:
        lead = f"The only trained run did not learn the task: it is not {_bar(runs, test_set)} {place}."
    explained = _explained(experiment, runs, test_set)
    if all(map(is_one_class, runs)):
        same = SAME[experiment.task.name]
        lead = f"All {count(len(runs), 'run')} {same}: nothing was learned {place}."
        explained = [f"{_kinds(runs)}.", *explained]
    elif not _could_tell(experiment, runs, test_set):
        examples = runs[0][f"test_examples{TEST_SETS[test_set]}"]
        lead = (
            f"{count(examples, 'test example')} cannot show whether a run learned the task: not even one "
            f"that is right in all of them would be {_bar(runs, test_set)} {place}."
        )
        return lead, [LARGER_TEST]
    elif _is_better_by_chance(runs, test_set):
        lead = lead.replace("learned the task:", "can be told to have learned the task:")
        return lead, [*explained, LARGER_TEST]
    return lead, [*explained, remedy(experiment, runs), *_bag_of_words(experiment, runs, test_set)]


def _is_better_by_chance(runs: Sequence[Row], test_set: str) -> bool:
    """Whether a run is better than the majority class on test examples too few to say that this is no
    chance."""
    ending = TEST_SETS[test_set]
    share = runs[0].get(f"test_majority_share{ending}")
    if share is None or runs[0][f"test_examples{ending}"] >= FEW_EXAMPLES:
        return False
    return any(run[f"test_accuracy{ending}"] > share for run in runs)


def _bar(runs: Sequence[Row], test_set: str) -> str:
    if "not_above_untrained" in runs[0] and runs[0]["not_above_untrained"] is not None:
        told = [run.get("untrained_validation_loss") for run in runs]
        losses = [loss for loss in told if loss is not None]
        if len(losses) < len(told):
            return "better than the untrained model"
        # inits, models and weights rounded to 4 bits have each their own
        ends = dict.fromkeys(value_text("loss", loss) for loss in (min(losses), max(losses)))
        return f"better than the untrained model (validation loss {' to '.join(ends)})"
    share = runs[0].get(f"test_majority_share{TEST_SETS[test_set]}")
    return f"above the majority class{'' if share is None else f' ({percent(share)})'}"


def _could_tell(experiment: Experiment, runs: Sequence[Row], test_set: str) -> bool:
    """Whether any accuracy on the test set would be above the majority class."""
    share = runs[0].get(f"test_majority_share{TEST_SETS[test_set]}")
    if share is None:
        return True
    examples = runs[0][f"test_examples{TEST_SETS[test_set]}"]
    return needed_accuracy(examples, share, experiment.confidence) is not None


def _explained(experiment: Experiment, runs: Sequence[Row], test_set: str) -> list[str]:
    """What an accuracy above the majority class is, in numbers; nothing where the runs do not tell."""
    ending = TEST_SETS[test_set]
    share = runs[0].get(f"test_majority_share{ending}")
    if share is None:
        return []
    examples = runs[0][f"test_examples{ending}"]
    needed = needed_accuracy(examples, share, experiment.confidence)
    if needed is None:
        return []
    best = max(run[f"test_accuracy{ending}"] for run in runs)
    return [
        f"A run is above the majority class ({percent(share)}) where the one-sided "
        f"{level_text(experiment.confidence)} Wilson bound of its test accuracy is, which takes "
        f"{round(needed * examples):,} right ones of these {count(examples, 'test example')} "
        f"({percent(needed)}); the best of these runs has {round(best * examples):,} ({percent(best)})."
    ]


def remedy(experiment: Experiment, runs: Sequence[Row]) -> str:
    """What to try where no run learned anything, by what the training loss did and by the recipe."""
    rate, epochs = (_setting(experiment, runs, key) for key in ("learning_rate", "epochs"))
    wrong = sum(bool(run.get("diverged") or run.get("unstable")) for run in runs)
    if wrong:
        of = f"{wrong} of the {count(len(runs), 'run')}"
        return f"Training was unstable in {of}: try a lower learning rate{rate} or a longer warm-up."
    ends: list[tuple[Any, Any]] = [(run.get("first_train_loss"), run.get("last_train_loss")) for run in runs]
    higher = f"a higher learning rate{rate}, more epochs{epochs} or more training texts."
    if any(map(is_one_class, runs)):
        higher = f"another learning rate{rate}, a longer warm-up, more epochs{epochs} or more training texts."
    if any(None in pair or pair[0] == pair[1] for pair in ends):  # one epoch has one training loss
        return f"Try {higher}"
    first, last = (sum(values) / len(ends) for values in zip(*ends, strict=True))
    course = f"from {value_text('loss', first)} to {value_text('loss', last)} nats"
    if all(after < LEARNED_TRAINING * before for before, after in ends):
        return (
            f"The training loss fell {course}, so that the runs fit the training texts and not the others: "
            f"try more training texts, fewer epochs{epochs} or a lower learning rate{rate}, and look at the "
            "labels."
        )
    if last < FALLEN * first:
        return f"The training loss was still falling, {course}: try {higher}"
    return f"The training loss hardly fell, {course}: try {higher}"


def _setting(experiment: Experiment, runs: Sequence[Row], key: str) -> str:
    """The values of a key in the recipes of some runs, for brackets: (3e-4 here); empty where not known."""
    blocks = experiment.reporting["recipes"]
    values = dict.fromkeys(blocks[run["recipe"]].get(key) for run in runs)
    if None in values or len(values) > 3:
        return ""
    return f" ({join([short_number(value) for value in values])} here)"


def _bag_of_words(experiment: Experiment, runs: Sequence[Row], test_set: str) -> list[str]:
    """Said where a bag of words does not beat the majority class, either."""
    share = runs[0].get(f"test_majority_share{TEST_SETS[test_set]}")
    dataset = runs[0]["dataset"]
    rows = [row for row in experiment.summary if row["dataset"] == dataset and row["test_set"] == test_set]
    bag = rows[0].get("bag_of_words") if rows else None
    if bag is None or share is None or bag > share:
        return []
    return [
        f"A bag of words ({percent(bag)}) does not beat the majority class, either: these texts may not tell "
        "their labels."
    ]


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
                bar = _bar(runs, row["test_set"])
                found = f"no run of {names[side]} learned the task: none of the {len(runs)} is {bar}"
                told.setdefault(found, []).append(framework_name(framework))
    several = len(rows) > 1
    return [
        f"With {join(frameworks)} {found}." if several else f"{found[:1].upper()}{found[1:]}."
        for found, frameworks in told.items()
    ]


# --- too few seeds ------------------------------------------------------------------------------------------


def few_seeds(rows: Iterable[Row]) -> list[str]:
    """What to do about differences with two seeds on a side, said once for all of them."""
    if not any(verdict(row) == FEW_SEEDS for row in rows):
        return []
    return [
        "Two seeds have one degree of freedom and bear no verdict, whatever their interval: set `grid.seeds` "
        "to at least three, such as [0, 1, 2] (of crossed init and data seeds the fewer ones count)."
    ]


# --- collapsed runs -----------------------------------------------------------------------------------------


def collapsed_how(run: Row) -> str:
    """How a run collapsed, with the split: predicts one class on validation and test."""
    if run.get("diverged"):
        return "diverged"
    same = "gives one answer" if "not_above_untrained" in run else "predicts one class"
    where = _where_same(run)
    if where:
        return f"{same} on {where}"
    return "has a loss that is not finite" if "not_above_untrained" in run else same


def on_validation_alone(run: Row) -> bool:
    """Whether a run predicts one class on validation and more of them on test, whose score is then no sign of
    a collapse."""
    return is_one_class(run, ("validation",)) and run.get("test_all_same") is False


def _where_same(run: Row) -> str:
    """The splits on which a run predicts one class, "alone" where it is one of both; empty if not known."""
    found = [split for split in ("validation", "test") if is_one_class(run, (split,))]
    alone = len(found) == 1 and all(
        run.get(f"{split}_all_same") is not None for split in ("validation", "test")
    )
    return " and ".join(found) + " alone" * alone


def _kinds(runs: Sequence[Row]) -> str:
    """On which splits some runs are the same throughout, counted where they differ in that."""
    same = "gives one answer" if "not_above_untrained" in runs[0] else "predicts a single class"
    places = Counter(_where_same(run) for run in runs)
    if len(places) == 1:
        return f"Each {same} on {next(iter(places))}"
    return f"Each {same}: {join([f'{number} on {where}' for where, number in places.items()])}"


def collapse_remark(experiment: Experiment, rows: Sequence[Row]) -> list[str]:
    """How many runs behind some contrasts collapsed, and how; nothing where none did."""
    runs = runs_behind(experiment, rows)
    collapsed = [run for run in runs if run["collapsed"]]
    if not collapsed:
        return []
    return [
        f"{len(collapsed)} of the {count(len(runs), 'run')} behind these numbers collapsed and "
        f"{'counts' if len(collapsed) == 1 else 'count'} in them{splits_of_collapses(runs)}; see the "
        "warnings."
    ]


def splits_of_collapses(runs: Sequence[Row]) -> str:
    """How the collapsed ones of some runs collapsed and on which split, in brackets; empty where the runs do
    not tell, and where they only diverged."""
    counts = Counter(collapsed_how(run) for run in runs if run.get("collapsed"))
    if not any(_where_same(run) for run in runs if run.get("collapsed")):
        return ""
    if len(counts) > 1:
        return f" ({join([f'{number} {kind}' for kind, number in counts.items()])})"
    ((kind, number),) = counts.items()
    return f" ({'each ' * (number > 1)}{kind})"


def without_collapsed(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """The differences without collapsed runs, by framework or whatever else tells the rows apart; nothing
    where no side has both kinds of runs."""
    told = []
    for name, row in rows.items():
        sides = [cells(experiment, row, side) for side in "ab"]
        if row.get("delta_without_collapsed") is not None and any(map(partly_collapsed, sides)):
            left = [len(sound_seeds(side)) for side in sides]
            seeds = f"{left[0]} and {count(left[1], 'seed')}"
            low, high = row["ci_low_without_collapsed"], row["ci_high_without_collapsed"]
            bounds = (
                "no interval"
                if low is None
                else f"{experiment.level} {difference_range(row['metric'], low, high)}"
            )
            value = difference_text(row["metric"], row["delta_without_collapsed"])
            where = f" with {framework_name(name)}" if len(rows) > 1 else ""
            told.append(f"{value}{where} ({bounds}; {seeds})")
    return [f"Without collapsed runs the difference is {join(told)}."] if told else []


def collapse_decides(experiment: Experiment, rows: Iterable[Row]) -> list[str]:
    """Why collapsed runs decide some differences, and what to do about it."""
    withheld = [row for row in rows if verdict(row) == COLLAPSE]
    if not withheld:
        return []
    left = [
        min(independent_seeds(sound_seeds(cells(experiment, row, side))) for side in "ab") for row in withheld
    ]
    few = [number < FEWEST_SEEDS for number in left]
    reasons = ["fewer than three seeds are left on a side"] * any(few)
    reasons += ["the verdict would be another"] * (not all(few))
    return [
        f"Without collapsed runs {' or '.join(reasons)}: run more seeds, or find a recipe at which no run "
        "collapses, as with a lower learning rate or a longer warm-up."
    ]
