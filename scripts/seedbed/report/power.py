"""What these seeds can and cannot show: numbers of seeds and of test examples, in words and as a table.

The variance of a difference is that of its seeds, which falls as seeds are added, and that of its test
examples, which does not: beyond some number of seeds only more test examples help. Both are those behind the
contrast's own interval, so that no plan contradicts it.
"""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from scipy import special

from seedbed.analysis import statistics
from seedbed.analysis.sides import over_units, seed_table
from seedbed.analysis.table_rows import RunRow, seed_values, value_column
from seedbed.analysis.verdicts import COLLAPSE, FEW_SEEDS, NOTHING_LEARNED, ONE_CLASS, UNLEARNED, WITHHELD
from seedbed.core.known import known
from seedbed.core.rows import Row
from seedbed.core.wording import Words
from seedbed.core.words import (
    difference_bound,
    framework_name,
    unit_of,
    with_unit,
)
from seedbed.report.documents.blocks import Cell, Table
from seedbed.report.experiment import Experiment, Question, interval, questions, seeds_of, verdict
from seedbed.report.parts import (
    cell_word,
    header,
    headers,
    number_cell,
    p_cell,
    points_cell,
    size_cell,
    with_places,
)

WORDS = Words("report/power")
SEEDS = (5, 10, 25)  # numbers of seeds a side for which presets lie in experiments/
MAX_LISTED = 12

Values = dict[tuple[int, int], float]  # by (init seed, data seed)


@dataclass(frozen=True)
class Planning:
    """The variances of a contrast, and what they mean for more seeds or more test examples.

    Attributes:
        delta: the difference seen, a fraction.
        seeds: seeds a side, of the smaller side.
        paired: whether the seeds of both sides are pairs.
        crossed: whether every init seed was run with every data seed, so that seeds share them.
        seed_variance: variance of the differences of pairs, or within a side where there are no pairs; where
            the interval carries the choice of a recipe, the error of that choice is in it.
        example_variance: variance that the difference has from its test examples, however many the seeds and
            whatever the choice of a recipe adds to the interval.
        half_width: half the width of the contrast's interval; 0 where it has none over test examples.
        settled: whether the contrast's interval leaves zero out.
        examples: test examples; None where their number is not known.
        level, power: of the tests that are planned.
    """

    delta: float
    seeds: int
    paired: bool
    crossed: bool
    seed_variance: float
    example_variance: float
    half_width: float
    settled: bool
    examples: int | None
    level: float
    power: float

    def detectable(self, seeds: int) -> float | None:
        """The smallest true difference that so many seeds a side detect; None for one seed.

        The seeds at hand detect nothing within half the width of their interval, whose degrees of freedom
        may be fewer than those of the planned variances.
        """
        smallest = statistics.smallest_difference(
            self.seed_variance,
            seeds,
            self.level,
            self.power,
            paired=self.paired,
            example_variance=self.example_variance,
        )
        return max(smallest, self.half_width) if smallest and seeds == self.seeds else smallest

    @functools.cached_property
    def needed(self) -> int | None:
        """Seeds a side that detect a true difference of the size seen, more than those that leave it open;
        None where no number searched does."""
        number = statistics.seeds_needed(
            self.delta,
            self.seed_variance,
            self.level,
            self.power,
            paired=self.paired,
            example_variance=self.example_variance,
        )
        if number is None or self.settled or self.crossed:
            return number
        return max(number, self.seeds + 1)

    @property
    def floor(self) -> float:
        """The difference below which no number of seeds detects anything on these test examples.

        (z of the level + z of the power) times the standard error over examples; 0 where that is not known.
        """
        quantiles = special.ndtri([1 - self.level / 2, self.power])
        return float(quantiles.sum()) * math.sqrt(self.example_variance)

    @property
    def examples_needed(self) -> int | None:
        """Test examples with which endless seeds would detect the difference seen, a lower bound of what is
        needed; None where those at hand are enough, or where the difference is zero.

        The variance over examples falls with their number.
        """
        if self.examples is None or not self.delta or self.floor <= abs(self.delta):
            return None
        return math.ceil(self.examples * (self.floor / self.delta) ** 2)


def planning(experiment: Experiment, row: Row) -> Planning | None:
    """What the error of a contrast means for more seeds; None with one seed a side, without any spread, for
    differences of gains, and where a run has no finite loss.

    Variances are those of the Multi-Bootstrap where there is one, that of test examples at the upper end of
    what it may be, since an estimate of zero does not make it zero. Where the primary interval is wider than
    its standard error alone would have it, as where it carries the choice of a recipe, their sum is scaled up
    to it, and all that this adds counts as variance of seeds: the choice is made on validation, so that more
    test examples would not make it surer. (What the validation examples add to it would stay with endless
    seeds; it is not told apart.)
    Crossed seeds keep the variance of `_variance`, that of seeds which are independent.
    """
    a, b = _sides(experiment, row)
    if row["delta"] is None or min(len(a), len(b)) < 2:
        return None
    crossed, seeds = any(seed_table(side) is not None for side in (a, b)), min(len(a), len(b))
    seed_variance, example_variance = _seed_variance(a, b, row["paired"]), 0.0
    if row["standard_error"] is not None:
        times = seeds / (1 if row["paired"] else 2)  # the variance of one seed, of that of the difference
        example_variance = _upper_variance(row)
        seeds_part = seed_variance / times if crossed else row["se_seeds"] ** 2
        whole = _widening(row, experiment.confidence) * (seeds_part + example_variance)
        seed_variance = times * (whole - example_variance)
    if not seed_variance + example_variance:
        return None
    return Planning(
        delta=row["delta"],
        seeds=seeds,
        paired=row["paired"],
        crossed=crossed,
        seed_variance=seed_variance,
        example_variance=example_variance,
        half_width=_half_width(row),
        settled=verdict(row) in ("higher", "lower"),
        examples=_examples(experiment.side(row, "a")[0], row["test_set"]),
        level=1 - experiment.confidence,
        power=experiment.power,
    )


def _upper_variance(row: Row) -> float:
    """Variance over test examples for planning: no less than its estimate, and than what one standard error
    adds to that."""
    estimate, upper = row["se_examples"] ** 2, row["se_examples_upper"] ** 2
    return max(estimate, upper - estimate)


def _widening(row: Row, confidence: float) -> float:
    """By how much variances grow to make the primary interval of t times their root; 1 or more."""
    expected = statistics.t_quantile(confidence, row["degrees"]) * row["standard_error"]
    return max(1.0, _half_width(row) / expected) ** 2


def _half_width(row: Row) -> float:
    """Half the width of the primary interval; of one that was cut at what is possible, that of its whole
    side."""
    if row["ci_low"] is None:
        return 0.0
    most = difference_bound(row["metric"], of_gains=row["family"] == "dataset")
    if row["ci_low"] > -most and row["ci_high"] < most:
        return (row["ci_high"] - row["ci_low"]) / 2
    return max(row["delta"] - row["ci_low"], row["ci_high"] - row["delta"])


def smallest_p(experiment: Experiment, row: Row) -> float | None:
    """The smallest p that an exact test over a contrast's seeds can give; None for one seed a side."""
    units = exact_units(experiment, row)
    return None if units < 2 else statistics.smallest_p(units, units, paired=row["paired"])


def exact_units(experiment: Experiment, row: Row) -> int:
    """What an exact test runs over on the smaller side: seeds, of crossed ones the means of one factor, see
    `sides.over_units`."""
    return min(len(over_units(values).values) for values in _sides(experiment, row))


def _sides(experiment: Experiment, row: Row) -> tuple[Values, Values]:
    """The test values of both sides by seed."""
    # of a difference that is undefined some are None, and are counted alone
    a, b = (seed_values(experiment.side(row, side), value_column(row)) for side in ("a", "b"))
    return cast(Values, a), cast(Values, b)


def _seed_variance(a: Values, b: Values, paired: bool) -> float:
    """Variance of the differences of pairs; of unpaired sides the mean of both, weighted by n - 1."""
    if paired:
        return _variance({seed: a[seed] - b[seed] for seed in a})
    weights = len(a) - 1, len(b) - 1
    return (weights[0] * _variance(a) + weights[1] * _variance(b)) / sum(weights)


def _variance(values: Values) -> float:
    """Variance between seeds of which each has an init and a data order of its own.

    Crossed seeds share theirs, so that their sample variance is too small: there the sum of the components.
    """
    table = seed_table(values)
    if table is not None:
        return sum(cast(float, row["variance"]) for row in statistics.two_way_variance(table))
    return known(statistics.sample_sd(list(values.values()))) ** 2


def _examples(run: RunRow, test_set: str) -> int | None:
    whole = run.test_examples
    return whole if whole is None or test_set == "all" else whole - known(run.leaked_test_examples)


# --- what intervals rest on --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Footing:
    """What the intervals of some differences rest on.

    Attributes:
        overs: what the intervals are over, the first difference's first.
        by_name: names of the differences by what their intervals are over; empty unless these differ and the
            differences have names.
        seeds: numbers of seeds, each with the smallest p that an exact test can give, if that is too large.
    """

    overs: list[str]
    by_name: list[tuple[str, list[str]]]
    seeds: list[str]


def rests_on(experiment: Experiment, rows: Sequence[Row], names: Sequence[str] = ()) -> str:
    """What the intervals of some contrasts are over, how many seeds they rest on, and whether an exact test
    over so few can reach the level, as a sentence; empty without any interval."""
    found = footing(experiment, rows, names)
    return WORDS.say("rests_on", found) if found else ""


def footing(experiment: Experiment, rows: Sequence[Row], names: Sequence[str] = ()) -> Footing | None:
    """The same as a record; None without any interval.

    Args:
        experiment: whose contrasts these are.
        rows: of contrasts.csv.
        names: tell the rows apart where their intervals are over different things; without them the first
            rows are those at each side's best recipe, and others those at the equal one.
    """
    known = {id(row): bounds.over for row in rows if (bounds := interval(row))}
    if not known:
        return None
    by_name: dict[str, list[str]] = {}
    for name, row in zip(names, rows, strict=True) if names else ():
        if id(row) in known:
            by_name.setdefault(known[id(row)], []).append(name)
    seeds = dict.fromkeys(_seeds(experiment, row) for row in rows if id(row) in known)
    overs = list(dict.fromkeys(known.values()))
    return Footing(overs, list(by_name.items()) if len(overs) > 1 else [], list(seeds))


def _seeds(experiment: Experiment, row: Row) -> str:
    smallest = smallest_p(experiment, row)
    if smallest is None or smallest <= 1 - experiment.confidence:
        return seeds_of(row)
    units = exact_units(experiment, row)
    means = 0 if units == min(row["n_a"], row["n_b"]) else units
    return WORDS.say("exact_limit", seeds_of(row), smallest, means)


# --- in words -----------------------------------------------------------------------------------------------


def power_sentences(experiment: Experiment) -> list[str]:
    """What these seeds can and cannot show of the inits, each at its best where recipes are swept: one item a
    question. Other recipes and other numbers of seeds stand in the table."""
    asked = [question for question in questions(experiment) if question.headline()]
    told = [_item(question) for question in asked[:MAX_LISTED]]
    if len(asked) > MAX_LISTED:
        told.append(WORDS.say("questions_left_out", len(asked) - MAX_LISTED))
    return told


def _item(question: Question) -> str:
    rows = question.headline()
    told = " ".join([*_detectable(question.experiment, rows), *outcomes(question.experiment, rows)])
    return WORDS.say("question", question.place, question.swept, told)


def _detectable(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """What the seeds at hand detect in each framework, and with which power; crossed ones are not so many
    independent seeds."""
    sizes: dict[tuple[int, bool], list[str]] = {}
    for framework, row in rows.items():
        plan = None if verdict(row) in WITHHELD else planning(experiment, row)
        if plan is not None:
            number = SEEDS[0] if plan.crossed else plan.seeds
            unit = unit_of(row["metric"]).difference
            size = WORDS.say("size", plan.detectable(number), row["metric"], unit, framework)
            sizes.setdefault((number, plan.crossed), []).append(size)
    return [WORDS.say("detectable", *seeds, experiment.power, of_seeds) for seeds, of_seeds in sizes.items()]


@dataclass(frozen=True)
class Outcome:
    """Whether a difference is settled, and what would settle it.

    Attributes:
        kind: unlearned, few seeds, collapse, undefined, single or flat: why nothing can be said. settled, or
            lucky where the difference is below what these seeds detect. What settles it: zero (nothing),
            more seeds, more examples, or too many seeds to search.
        number: of seeds a side, or of test examples with two significant digits; 0 where none is named.
        examples: test examples at hand, where more are needed.
        crossed: whether the seeds at hand are crossed, so that `number` is of independent ones.
    """

    kind: str
    number: int = 0
    examples: int = 0
    crossed: bool = False


def outcomes(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """Whether each framework's difference is settled, and what would settle it; one sentence for all of which
    the same is to be said."""
    found: dict[Outcome, list[str]] = {}
    for name, row in rows.items():
        found.setdefault(outcome(experiment, row), []).append(framework_name(name))
    return [WORDS.say("outcome_of", names, WORDS.say("outcome", one)) for one, names in found.items()]


# verdicts of which nothing is settled, whatever the seeds
_OPEN = {
    NOTHING_LEARNED: "unlearned",
    ONE_CLASS: "unlearned",
    FEW_SEEDS: "few_seeds",
    COLLAPSE: "collapse",
    "undefined": "undefined",
    "single": "single",
}


def outcome(experiment: Experiment, row: Row) -> Outcome:
    """Whether a contrast's difference is settled, and what would settle it."""
    if verdict(row) in _OPEN:
        return Outcome(_OPEN[verdict(row)])
    plan = planning(experiment, row)
    if plan is None:
        return Outcome("flat")
    if plan.settled:
        detected = plan.crossed or abs(plan.delta) >= known(plan.detectable(plan.seeds))
        return Outcome("settled" if detected else "lucky")
    if not plan.delta:
        return Outcome("zero")
    if plan.needed:
        return Outcome("more_seeds", plan.needed, crossed=plan.crossed)
    if plan.examples_needed:
        return Outcome("more_examples", _rounded_up(plan.examples_needed), known(plan.examples))
    return Outcome("too_many_seeds", statistics.MAX_SEEDS)


def _rounded_up(number: int) -> int:
    """Two significant digits: more are not known."""
    unit = 10 ** max(0, len(str(number)) - 2)
    return -(-number // unit) * unit


# --- as a table ---------------------------------------------------------------------------------------------


def power_table(experiment: Experiment) -> Table:
    """The same as a table with more seeds, one row a contrast of the inits: at each side's best and at the
    reference recipe."""
    unit = unit_of(experiment.metric).difference
    detectable = (header("power", "detectable", seeds=number) for number in SEEDS)
    in_unit = [header("power", "difference"), header("power", "detectable_now"), *detectable]
    in_unit.append(header("power", "endless_seeds"))
    columns = [
        *headers("power", "framework", "recipe", "seeds_a_side"),
        *(with_unit(text, unit) for text in in_unit),
        *headers("power", "seeds_needed", "test_examples", "examples_needed", "smallest_p"),
    ]
    return with_places(
        list(_rows(experiment)),
        "power",
        columns,
        lambda row: _table_row(experiment, row),
        caption=_caption(experiment),
        named=2,
        right=range(2, len(columns)),
    )


def _caption(experiment: Experiment) -> str:
    """What the columns mean, and what the numbers rest on."""
    withheld = any(verdict(row) in WITHHELD for row in _rows(experiment))
    values = (seed_values(experiment.group(row), value_column(row)) for row in experiment.summary)
    crossed = any(seed_table(cast(Values, of_cell)) is not None for of_cell in values)
    level = 1 - experiment.confidence
    return WORDS.say("caption", experiment.scored, experiment.power, level, withheld, crossed)


def _rows(experiment: Experiment) -> Iterable[Row]:
    for question in questions(experiment):
        yield from question.headline().values()
        if question.swept:
            yield from question.contrasts("equal").values()


def _table_row(experiment: Experiment, row: Row) -> list[Cell | str | int | None]:
    plan = planning(experiment, row)
    equal = row["selection"] == "equal"
    recipe = experiment.recipe(row["recipe_a"]) if equal else cell_word("own_best")
    start = [framework_name(row["a"].split("/")[0]), recipe, min(row["n_a"], row["n_b"])]
    metric = row["metric"]
    start.append(points_cell(row["delta"], metric=metric))
    if verdict(row) in UNLEARNED:
        plan = None  # what runs vary that learned nothing says nothing of others
    if plan is None:
        return [*start, *[None] * (len(SEEDS) + 5), p_cell(smallest_p(experiment, row))]
    withheld = verdict(row) in WITHHELD
    return [
        *start,
        None if plan.crossed or withheld else size_cell(plan.detectable(plan.seeds), metric=metric),
        *(size_cell(plan.detectable(number), metric=metric) for number in SEEDS),
        size_cell(plan.floor or None, metric=metric),
        Cell(cell_word("no_verdict")) if withheld else _needed(plan),
        number_cell(plan.examples),
        None if withheld else _examples_cell(plan),
        p_cell(smallest_p(experiment, row)),
    ]


def _needed(plan: Planning) -> Cell | None:
    if plan.settled:
        return Cell(cell_word("settled"))
    if not plan.delta:
        return None
    if plan.needed:
        return Cell(f"{plan.needed:,}", plan.needed)
    return Cell(cell_word("no_number") if plan.examples_needed else f"> {statistics.MAX_SEEDS:,}")


def _examples_cell(plan: Planning) -> Cell | None:
    needed = None if plan.settled else plan.examples_needed
    return None if needed is None else Cell(f"> {_rounded_up(needed):,}", needed)
