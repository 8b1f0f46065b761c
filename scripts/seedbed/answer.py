"""The answer of an experiment in words: does pretraining help, and how sure are these runs?

Every sentence is made from the contrasts and the runs; nothing is claimed that an interval does not carry.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seedbed import statistics
from seedbed.tables import Row, seed_values, value_column
from seedbed.words import capital, count, join, percent_sd, points, points_range

VERDICTS = {
    "helps": "pretraining helps",
    "hurts": "pretraining hurts",
    "unclear": "these runs cannot tell the inits apart",
    "single": "one seed a side cannot tell the inits apart",
    "flat": "seeds without any spread cannot tell the inits apart",
}
# More of these trains a model for longer or further.
MORE_TRAINING = ("learning_rate", "epochs")
MAX_LISTED = 12


@dataclass(frozen=True)
class Experiment:
    """The tables of an experiment on one test set, and its config's statistics, recipes and datasets."""

    runs: list[Row]
    summary: list[Row]
    contrasts: list[Row]
    reporting: Mapping[str, Any]

    @property
    def confidence(self) -> float:
        """Level of intervals."""
        return self.reporting["statistics"]["confidence"]

    @property
    def level(self) -> str:
        """The level in words: 95% interval."""
        return f"{100 * self.confidence:.4g}% interval"

    @property
    def power(self) -> float:
        """Power for which numbers of seeds are given."""
        return self.reporting["statistics"]["power"]

    def recipes(self, family: str) -> list[str]:
        """The recipes of a family, in the order of its sweep; the first is its reference."""
        return [name for name, block in self.reporting["recipes"].items() if block["family"] == family]

    def group(self, row: Row) -> list[Row]:
        """The runs behind a row of the summary."""
        keys = ("dataset", "model", "framework", "init", "recipe")
        return [run for run in self.runs if all(run[key] == row[key] for key in keys)]

    def side(self, contrast: Row, side: str) -> list[Row]:
        """The runs behind side `a` or `b` of a contrast."""
        framework, init = contrast[side].split("/")
        place = {key: contrast[key] for key in ("dataset", "model")}
        return self.group(
            {**place, "framework": framework, "init": init, "recipe": contrast[f"recipe_{side}"]}
        )

    def values(self, contrast: Row) -> tuple[list[float], list[float]]:
        """The test values of both sides of a contrast, in the same order of seeds."""
        a, b = (seed_values(self.side(contrast, side), value_column(contrast)) for side in ("a", "b"))
        order = a if set(a) == set(b) else b
        return list(a.values()), [b[seed] for seed in order]


@dataclass(frozen=True)
class Question:
    """Does pretraining help: on one dataset, with one model and one family of recipes."""

    experiment: Experiment
    dataset: str
    model: str
    family: str

    @property
    def swept(self) -> bool:
        """Whether the family has several recipes, of which each init may choose its own."""
        return len(self.experiment.recipes(self.family)) > 1

    @property
    def reference(self) -> str:
        """The family's first recipe: the equal recipe that the answer speaks of."""
        return self.experiment.recipes(self.family)[0]

    @property
    def place(self) -> str:
        """Where the question is asked, in as many words as tell it from the others."""
        words = [f"on {self.dataset}"]
        if len(self.experiment.reporting["grid"]["models"]) > 1:
            words.append(f"with {self.model}")
        if len({block["family"] for block in self.experiment.reporting["recipes"].values()}) > 1:
            words.append(f"with recipe {self.family}")
        return " ".join(words)

    def contrasts(self, selection: str) -> dict[str, Row]:
        """pretrained - random by framework: at the reference recipe (equal) or at each side's best."""
        members = self.experiment.recipes(self.family)
        return {
            row["a"].split("/")[0]: row
            for row in self.experiment.contrasts
            if (row["family"], row["dataset"], row["model"]) == ("init", self.dataset, self.model)
            and row["selection"] == selection
            and row["recipe_a"] in (members if selection == "best" else members[:1])
        }

    def headline(self) -> dict[str, Row]:
        """The contrasts that the verdict rests on: each side at its best where recipes are swept."""
        return self.contrasts("best" if self.swept else "equal")


def questions(experiment: Experiment) -> list[Question]:
    """One question for each dataset, model and family of recipes, in the order of the summary."""
    found = dict.fromkeys((row["dataset"], row["model"], row["recipe_family"]) for row in experiment.summary)
    return [Question(experiment, *key) for key in found]


def verdict(row: Row) -> str:
    """helps or hurts where the interval leaves zero out, unclear where it holds zero; without an interval
    single, or flat where several seeds have no spread."""
    if row["ci_low"] is None:
        return "single" if min(row["n_a"], row["n_b"]) < 2 else "flat"
    if row["ci_low"] > 0:
        return "helps"
    return "hurts" if row["ci_high"] < 0 else "unclear"


def answer(experiment: Experiment) -> list[str]:
    """The paragraphs that answer the experiment's question, the first sentence with verdict and numbers."""
    asked = [question for question in questions(experiment) if question.headline()]
    if not asked:
        return [_no_contrast(experiment)]
    told = [" ".join([f"**{sentence(question)}**", *qualifications(question)]) for question in asked]
    if len(told) == 1:
        return told
    return [f"**{_count_verdicts(asked)}**", "\n".join(f"- {text}" for text in told)]


def _no_contrast(experiment: Experiment) -> str:
    inits = join(list(dict.fromkeys(row["init"] for row in experiment.summary)))
    rows = [row for row in experiment.summary if row["selection"] == "equal"]
    means = [
        f"{percent_sd(row['mean'], row['sd'])} ({row['framework']}, {row['dataset']}, {row['model']}, "
        f"{row['recipe']}, {count(row['n_seeds'], 'seed')})"
        for row in rows[:MAX_LISTED]
    ]
    more = f" and {len(rows) - MAX_LISTED} more in the tables" if len(rows) > MAX_LISTED else ""
    return (
        f"**This experiment has only the {inits} init, so it cannot say whether pretraining helps; "
        f"test accuracy, mean ± sd over seeds: {'; '.join(means)}{more}.**"
    )


def _count_verdicts(asked: list[Question]) -> str:
    counts = Counter(verdict(row) for question in asked for row in question.headline().values())
    total = sum(counts.values())
    told = [f"{VERDICTS[word]} in {counts[word]} of {total} comparisons" for word in VERDICTS if counts[word]]
    return (
        f"{capital(join(told))}: pretrained minus random test accuracy, on each dataset, in each framework."
    )


def sentence(question: Question) -> str:
    """The verdict of one question with the difference in each framework; with both choices of recipe."""
    rows = question.headline()
    verdicts = {framework: verdict(row) for framework, row in rows.items()}
    tuned = " when each init has its own best recipe on validation" if question.swept else ""
    if len(set(verdicts.values())) == 1:
        lead = f"{VERDICTS[next(iter(verdicts.values()))]} {question.place}{tuned}"
    else:
        each = join([f"{VERDICTS[word]} with {framework}" for framework, word in verdicts.items()])
        lead = f"{question.place}{tuned}, {each}"
    told = f"{capital(lead)}: pretrained minus random test accuracy is {_deltas(question, rows)}"
    if question.swept:
        equal = question.contrasts("equal")
        told += f"; at the equal recipe `{question.reference}` it is {_deltas(question, equal)}"
    return told + "."


def _deltas(question: Question, rows: Mapping[str, Row]) -> str:
    parts = []
    for framework, row in rows.items():
        seeds = f"{count(min(row['n_a'], row['n_b']), 'seed')} a side"
        if row["ci_low"] is None:
            inside = f"{seeds}{', without spread' if verdict(row) == 'flat' else ''}, no interval"
        else:
            interval = points_range(row["ci_low"], row["ci_high"])
            inside = f"{question.experiment.level} {interval}, {seeds}"
        parts.append(f"{points(row['delta'])} points with {framework} ({inside})")
    return join(parts)


def qualifications(question: Question) -> list[str]:
    """The sentences after the verdict: what the recipe did, what would settle it, what is odd."""
    rows = question.headline()
    told = []
    if question.swept:
        best = question.contrasts("best")
        told = [
            _recipe_effect(question, row, best[name]) for name, row in question.contrasts("equal").items()
        ]
    if len({verdict(row) for row in rows.values()}) > 1:
        told.append("Verdicts that differ are no evidence that the frameworks do; see their contrast below.")
    told += _settling(question.experiment, rows)
    told += _collapse_remark(question)
    return told


# --- how many seeds -----------------------------------------------------------------------------------------


def planning(experiment: Experiment, row: Row) -> tuple[int | None, float | None]:
    """Seeds a side that would settle a contrast of the observed size, and the smallest one that n_a detect.

    By the t test of the contrast (paired or not) at the configured level and power, with the observed spread.
    The first is None where MAX_SEEDS are not enough, both with one seed a side.
    """
    x, y = experiment.values(row)
    if min(len(x), len(y)) < 2:
        return None, None
    paired, level = row["paired"], 1 - experiment.confidence
    if paired:
        spread = statistics.sample_sd([left - right for left, right in zip(x, y, strict=True)])
    else:
        spread = statistics.pooled_sd(x, y)
    needed = statistics.seeds_needed(row["delta"], spread, level, experiment.power, paired=paired)
    return needed, statistics.smallest_difference(spread, len(x), level, experiment.power, paired=paired)


def _settling(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """For each undecided framework: seeds that settle the observed difference, and what n seeds detect."""
    settle, detect, told = [], [], []
    for framework, row in rows.items():
        if verdict(row) not in ("unclear", "flat"):
            continue
        needed, smallest = planning(experiment, row)
        if not smallest:  # no spread at all, as where all runs of both inits collapsed
            told.append(
                f"With {framework} every seed shows the same difference, so that seeds tell nothing of its "
                "error."
            )
            continue
        number = f"about {needed:,}" if needed else f"more than {statistics.MAX_SEEDS:,}"
        settle.append(f"{number} seeds a side with {framework}")
        detect.append(f"{100 * smallest:.1f} points with {framework}")
    if not settle:
        return told
    seeds = join([f"{number:,}" for number in sorted({row["n_a"] for row in rows.values()})])
    told.append(
        f"A true difference as large as the one seen would take {join(settle)} to settle (power "
        f"{100 * experiment.power:.4g}%); {seeds} seeds a side can detect no less than {join(detect)}. Both "
        "rest on a spread estimated from the same few seeds, and are rough."
    )
    return told


# --- what the recipe did ------------------------------------------------------------------------------------


def _recipe_effect(question: Question, equal: Row, best: Row) -> str:
    """What becomes of the difference at the equal recipe when each init has its own best one."""
    experiment, framework = question.experiment, equal["a"].split("/")[0]
    if best["recipe_a"] == best["recipe_b"] == question.reference:
        return f"With {framework} both inits do best at that same recipe."
    change = f"from {points(equal['delta'])} to {points(best['delta'])} points"
    interval = _interval_of_change(experiment, equal, best)
    if interval is None:
        return f"With {framework} the choice of recipe takes the difference {change} (no interval)."
    told = f"{experiment.level} of the change {points_range(*interval)}"
    if interval[0] <= 0 <= interval[1]:
        return (
            f"With {framework} these runs cannot tell whether the difference depends on the recipe: "
            f"it goes {change} ({told})."
        )
    if interval[1] < 0 < equal["delta"]:
        cause = _cause(question, equal, best)
        return f"With {framework} {cause}: it falls {change} ({told}). {_gains(experiment, equal, best)}"
    return f"With {framework} the choice of recipe takes the difference {change} ({told})."


def _interval_of_change(experiment: Experiment, equal: Row, best: Row) -> statistics.Bounds | None:
    """Interval of (difference at the best recipes) - (difference at the equal one), paired over seeds."""
    seeds = zip(*experiment.values(best), *experiment.values(equal), strict=True)
    changes = [(best_a - best_b) - (equal_a - equal_b) for best_a, best_b, equal_a, equal_b in seeds]
    return statistics.t_interval(changes, experiment.confidence)


def _cause(question: Question, equal: Row, best: Row) -> str:
    gone = (equal["delta"] - best["delta"]) / equal["delta"]
    amount = "all" if gone >= 1 else "most" if gone > 0.5 else "part"
    if undertrained(question, equal, best):
        return f"{amount} of the difference at the equal recipe was undertraining of the random init"
    return f"{amount} of the difference at the equal recipe was due to that recipe"


def undertrained(question: Question, equal: Row, best: Row) -> bool:
    """Whether the random init gains more than the pretrained one from a recipe that trains it for longer or
    with a higher learning rate."""
    blocks = question.experiment.reporting["recipes"]
    before, after = blocks[question.reference], blocks[best["recipe_b"]]
    swept = blocks[question.reference].get("swept", {})
    if any(after[key] != before[key] for key in swept if key not in MORE_TRAINING):
        return False
    more = any(after[key] > before[key] for key in MORE_TRAINING)
    less = any(after[key] < before[key] for key in MORE_TRAINING)
    gains = _gain(question.experiment, equal, best, "a"), _gain(question.experiment, equal, best, "b")
    return more and not less and gains[1] > max(gains[0], 0)


def _gain(experiment: Experiment, equal: Row, best: Row, side: str) -> float:
    index = "ab".index(side)
    return statistics.mean(experiment.values(best)[index]) - statistics.mean(experiment.values(equal)[index])


def _gains(experiment: Experiment, equal: Row, best: Row) -> str:
    pretrained, random = (points(_gain(experiment, equal, best, side)) for side in ("a", "b"))
    return (
        f"From the equal recipe to its own best the random init gains {random} points "
        f"(`{best['recipe_b']}`), the pretrained one {pretrained} (`{best['recipe_a']}`)."
    )


def _collapse_remark(question: Question) -> list[str]:
    rows = [*question.headline().values(), *question.contrasts("equal").values()]
    runs = {
        tuple(str(run[key]) for key in ("framework", "init", "recipe", "init_seed", "data_seed")): run
        for row in rows
        for side in ("a", "b")
        for run in question.experiment.side(row, side)
    }
    collapsed = sum(run["collapsed"] for run in runs.values())
    if not collapsed:
        return []
    return [
        f"{collapsed} of the {count(len(runs), 'run')} behind these numbers collapsed and "
        f"{'counts' if collapsed == 1 else 'count'} in them; see the warnings."
    ]
