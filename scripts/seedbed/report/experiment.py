"""The questions asked of an experiment, and one contrast in words."""

from dataclasses import dataclass

from seedbed.analysis.differences import OF_GAINS
from seedbed.analysis.experiment import Experiment
from seedbed.analysis.verdicts import verdict
from seedbed.core.known import known
from seedbed.core.rows import Row
from seedbed.core.wording import Words
from seedbed.core.words import (
    difference_bound,
    difference_text,
    swept_text,
)

WORDS = Words("report/experiment")


def where(experiment: Experiment, row: Row, recipe: str | None = None) -> str:
    """Where a row was measured, in as many words as tell it from others: on `books` with `camembert`."""
    return WORDS.say("place", row["dataset"], setting_text(experiment, row, recipe))


def setting_text(experiment: Experiment, row: Row, recipe: str | None = None) -> str:
    """The same without the dataset: with `camembert`; empty where there is nothing to tell apart."""
    model = row["model"] if len(experiment.reporting["grid"]["models"]) > 1 else ""
    return WORDS.say("setting", model, recipe if recipe is not None and experiment.has_families else "")


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
        """The equal recipe that the answer speaks of."""
        return self.experiment.reference(self.family)

    @property
    def equal_recipe(self) -> str:
        """The equal recipe of a sweep in words: learning rate 1e-5."""
        return swept_text(self.experiment.reporting["recipes"][self.reference]["swept"])

    @property
    def place(self) -> str:
        """Where the question is asked, in as many words as tell it from the others."""
        return where(self.experiment, {"dataset": self.dataset, "model": self.model}, self.family)

    def contrasts(self, selection: str) -> dict[str, Row]:
        """pretrained - random by framework: at the reference recipe (equal) or at each side's best."""
        members = self.experiment.recipes(self.family) if selection == "best" else [self.reference]
        return {
            row["a"].split("/")[0]: row
            for row in self.experiment.contrasts
            if (row["family"], row["dataset"], row["model"]) == ("init", self.dataset, self.model)
            and row["selection"] == selection
            and row["recipe_a"] in members
        }

    def headline(self) -> dict[str, Row]:
        """The contrasts that the verdict rests on: each side at its best where recipes are swept."""
        return self.contrasts("best" if self.swept else "equal")


def questions(experiment: Experiment) -> list[Question]:
    """One question for each dataset, model and family of recipes, in the order of the summary."""
    found = dict.fromkeys((row.dataset, row.model, row.recipe_family) for row in experiment.summary)
    return [Question(experiment, *key) for key in found]


# --- one contrast -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """Bounds of a difference, as a fraction, and what varies in it."""

    low: float
    high: float
    over: str


def interval(row: Row) -> Interval | None:
    """The interval that a contrast's verdict rests on; None where neither seeds nor examples vary.

    The Multi-Bootstrap's over seeds and test examples; without predictions, of which it is made, Student's
    or Welch's over seeds alone.
    """
    choice = row["selection"] == "best"
    if row["ci_low"] is not None:
        return Interval(row["ci_low"], row["ci_high"], WORDS.say("over", True, choice))
    if row["t_low"] is not None:
        return Interval(row["t_low"], row["t_high"], WORDS.say("over", False, choice))
    return None


def range_text(row: Row) -> str:
    """The interval of a contrast that has one, without its unit, cut where no difference can be."""
    bounds = known(interval(row))
    return possible_range(row, bounds.low, bounds.high)


def possible_range(row: Row, low: float, high: float) -> str:
    """Bounds of a contrast without their unit, cut where no difference can be; what holds every possible
    difference says so."""
    most = difference_bound(row["metric"], of_gains=row["family"] in OF_GAINS)
    bounds = max(-most, low), min(most, high)
    return WORDS.say("possible_range", row["metric"], bounds, low <= -most and high >= most)


def equivalence_interval(row: Row) -> Interval | None:
    """The interval of a contrast's two one-sided tests of equivalence; None where they were not made.

    Equivalent at level alpha is what has the whole of this interval, of level 1 - 2 alpha, within the margin
    (Schuirmann 1987). Its error is that of the primary interval, the choice of recipe included.
    """
    bounds = interval(row)
    if row["equivalence_low"] is None or bounds is None:
        return None
    return Interval(row["equivalence_low"], row["equivalence_high"], bounds.over)


def equivalence_level(experiment: Experiment) -> str:
    """The level of that interval in words: 90% interval, where others are 95%."""
    return WORDS.say("interval_of", 2 * experiment.confidence - 1)


def narrower_than_over_seeds(row: Row) -> bool:
    """Whether a contrast's primary interval, over seeds and test examples, is narrower than Student's or
    Welch's over seeds alone; False where one of them is not known.

    The second has the degrees of freedom of the seeds, n - 1 of pairs; the first pools what seeds and test
    examples tell of the error, and so may be the narrower one although more varies in it.
    """
    if row["ci_low"] is None or row["t_low"] is None:
        return False
    return row["ci_high"] - row["ci_low"] < row["t_high"] - row["t_low"]


def seeds_of(row: Row) -> str:
    """The seeds of a contrast in words: 3 seeds a side, paired."""
    single = min(row["n_a"], row["n_b"]) < 2
    return WORDS.say("seeds", row["n_a"], row["n_b"], None if single else row["paired"])


def without_interval(row: Row) -> str:
    """Why a contrast has no interval, for brackets: 1 seed a side, no interval."""
    return WORDS.say("without_interval", seeds_of(row), row["delta"] is None, verdict(row) == "flat")


def difference(row: Row) -> str:
    """A contrast's difference with its unit: +5.1 points, −0.120 nats."""
    if row["delta"] is None:
        return WORDS.say("no_difference")
    return difference_text(row["metric"], row["delta"])
