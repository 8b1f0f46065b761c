"""What these seeds can and cannot show: numbers of seeds and of test examples, in words and as a table.

Each plan simulates the rule of the interval (`analysis.planning`) with the variances of the contrast at hand,
for the smallest difference of interest that the config names, not for the difference seen.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from seedbed.analysis import statistics
from seedbed.analysis.planning import MOST_SEEDS, Design, Plan, Variances
from seedbed.analysis.sides import seed_table
from seedbed.analysis.table_rows import RunRow, seed_values, value_column
from seedbed.analysis.verdicts import COLLAPSE, FEW_SEEDS, NOTHING_LEARNED, ONE_CLASS, UNLEARNED, WITHHELD
from seedbed.core.known import known
from seedbed.core.rows import Row
from seedbed.core.wording import Words
from seedbed.core.words import (
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
    points_cell,
    size_cell,
    with_places,
)

WORDS = Words("report/power")
SEEDS = (5, 10, 25)  # numbers of seeds a side for which presets lie in experiments/
NO_EXAMPLES = 1000  # where their number is not known, nor their share of the variance: any will do

Values = dict[tuple[int, int], float]  # by (init seed, data seed)


@dataclass(frozen=True)
class Planning:
    """What a contrast's variances mean for more seeds or more test examples.

    Attributes:
        plan: simulates experiments with these variances.
        seeds: seeds a side, of the smaller side.
        crossed: whether every init seed was run with every data seed; the plan is then of independent seeds.
        decided: whether the contrast has a direction.
        examples: test examples; None where their number is not known.
        interest: the smallest difference of interest, in the metric's unit.
    """

    plan: Plan
    seeds: int
    crossed: bool
    decided: bool
    examples: int | None
    interest: float

    @property
    def needed(self) -> tuple[int | None, int | None, int | None]:
        """Seeds a side that detect the difference of interest, and the range that the variances leave open;
        None where no number does."""
        return self.plan.seeds_for(self.interest)

    @property
    def examples_needed(self) -> int | None:
        """Test examples with which endless seeds detect the difference of interest, a lower bound of what is
        needed; None where those at hand are enough."""
        design = self.plan.design
        return None if design.floor < self.interest else design.examples_for(self.interest)


def planning(experiment: Experiment, row: Row) -> Planning | None:
    """The plan of a contrast; None with one seed a side, without any spread, for differences of gains, and
    where a run has no finite loss.

    What the choice of a recipe adds to the variance counts as variance of seeds: the choice is made on
    validation, so that more test examples would not make it surer.
    """
    a, b = _sides(experiment, row)
    if row["delta"] is None or min(len(a), len(b)) < 2:
        return None
    seeds, examples = min(len(a), len(b)), _examples(experiment.side(row, "a")[0], row["test_set"])
    variances = _variances(a, b, row, examples or NO_EXAMPLES)
    if not variances.seeds + variances.examples + variances.interaction:
        return None
    design = Design(variances, examples or NO_EXAMPLES, experiment.confidence, experiment.power)
    return Planning(
        plan=Plan(seeds, design),
        seeds=seeds,
        crossed=any(seed_table(side) is not None for side in (a, b)),
        decided=verdict(row) in ("higher", "lower"),
        examples=examples,
        interest=experiment.reporting["statistics"]["difference_of_interest"],
    )


def _variances(a: Values, b: Values, row: Row, examples: int) -> Variances:
    """Variances of one seed a side on one example, from the parts of the contrast's error.

    Without predictions that of seeds is all that is known, the test examples' share among it.
    """
    seeds, degrees = min(len(a), len(b)), 1 if row["paired"] else 2
    of_means = degrees * _seed_variance(a, b, row["paired"])
    if row["standard_error"] is None:
        return Variances(of_means, 0.0, 0.0, degrees)
    interaction, over_examples = row["se_interaction"] ** 2, row["se_examples"] ** 2
    choice = max(0.0, row["standard_error"] ** 2 - row["se_seeds"] ** 2 - over_examples)
    own = max(0.0, of_means / seeds - interaction) + choice
    return Variances(seeds * own, examples * over_examples, seeds * examples * interaction, degrees)


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
        seeds: of both sides, each once.
    """

    overs: list[str]
    by_name: list[tuple[str, list[str]]]
    seeds: list[str]


def rests_on(rows: Sequence[Row], names: Sequence[str] = ()) -> str:
    """What the intervals of some contrasts are over, and how many seeds they rest on, as a sentence; empty
    without any interval."""
    found = footing(rows, names)
    return WORDS.say("rests_on", found) if found else ""


def footing(rows: Sequence[Row], names: Sequence[str] = ()) -> Footing | None:
    """The same as a record; None without any interval.

    Args:
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
    seeds = dict.fromkeys(seeds_of(row) for row in rows if id(row) in known)
    overs = list(dict.fromkeys(known.values()))
    return Footing(overs, list(by_name.items()) if len(overs) > 1 else [], list(seeds))


# --- in words -----------------------------------------------------------------------------------------------


def plan_sentences(question: Question) -> list[str]:
    """What these seeds can and cannot show of a question, each init at its best where recipes are swept."""
    rows = question.headline()
    return [*_detectable(question.experiment, rows), *outcomes(question.experiment, rows)]


def _detectable(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """What the seeds at hand detect in each framework, and with which power; crossed ones are not so many
    independent seeds."""
    sizes: dict[tuple[int, bool], list[str]] = {}
    for framework, row in rows.items():
        plan = None if verdict(row) in WITHHELD else planning(experiment, row)
        if plan is not None:
            number = SEEDS[0] if plan.crossed else plan.seeds
            unit = unit_of(row["metric"]).difference
            size = WORDS.say("size", plan.plan.detectable(number), row["metric"], unit, framework)
            sizes.setdefault((number, plan.crossed), []).append(size)
    return [WORDS.say("detectable", *seeds, experiment.power, of_seeds) for seeds, of_seeds in sizes.items()]


@dataclass(frozen=True)
class Outcome:
    """Whether a difference is decided, and if not, what would find a difference of interest.

    Attributes:
        kind: unlearned, few_seeds, collapse, undefined, single or flat: why nothing can be said. decided. Or
            what finds a difference of interest: enough (these seeds), more_seeds, more_examples, or
            too_many_seeds to search.
        interest: the difference of interest, in the metric's unit.
        metric: of the difference.
        power: with which it is found.
        seeds: a side, as estimated, and the range that the variances leave open; None: no number.
        needed: test examples, no more than are needed; 0 where none are named.
        examples: test examples at hand, where more are needed.
        endless: power of endless seeds on these test examples.
        crossed: whether the seeds at hand are crossed, so that `seeds` are independent ones.
    """

    kind: str
    interest: float = 0.0
    metric: str = ""
    power: float = 0.0
    seeds: tuple[int | None, int | None, int | None] = (None, None, None)
    needed: int = 0
    examples: int = 0
    endless: float = 0.0
    crossed: bool = False


def outcomes(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """Whether each framework's difference is decided, and what would find one of interest; frameworks with
    the same outcome share a sentence. Where that is more seeds, how not to add them."""
    found: dict[Outcome, list[str]] = {}
    for name, row in rows.items():
        found.setdefault(outcome(experiment, row), []).append(framework_name(name))
    level = experiment.confidence
    told = [WORDS.say("outcome_of", names, WORDS.say("outcome", one, level)) for one, names in found.items()]
    return [*told, *([WORDS.say("plan_ahead")] if any(one.kind == "more_seeds" for one in found) else [])]


# verdicts of which nothing is decided, whatever the seeds
_OPEN = {
    NOTHING_LEARNED: "unlearned",
    ONE_CLASS: "unlearned",
    FEW_SEEDS: "few_seeds",
    COLLAPSE: "collapse",
    "undefined": "undefined",
    "single": "single",
}


def outcome(experiment: Experiment, row: Row) -> Outcome:
    """Whether a contrast's difference is decided, and what would find one of interest."""
    if verdict(row) in _OPEN:
        return Outcome(_OPEN[verdict(row)])
    plan = planning(experiment, row)
    if plan is None:
        return Outcome("flat")
    if plan.decided:
        return Outcome("decided")
    seeds, metric = plan.needed, row["metric"]
    found = Outcome("", plan.interest, metric, experiment.power, seeds, crossed=plan.crossed)
    if seeds[0] is not None:
        return replace(found, kind="enough" if seeds[0] <= plan.seeds else "more_seeds")
    if plan.examples_needed and plan.examples:
        endless = plan.plan.design.power_of_endless_seeds(plan.interest)
        needed = _rounded_down(plan.examples_needed)
        return replace(found, kind="more_examples", needed=needed, examples=plan.examples, endless=endless)
    return replace(found, kind="too_many_seeds", seeds=(MOST_SEEDS, None, None))


def outcome_text(experiment: Experiment, row: Row) -> str:
    """The same in words, as a part of a sentence."""
    return WORDS.say("outcome", outcome(experiment, row), experiment.confidence)


def _rounded_down(number: int) -> int:
    """Two significant digits, since more are not known; down, so that a lower bound stays one."""
    unit = 10 ** max(0, len(str(number)) - 2)
    return number // unit * unit


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
        *headers("power", "seeds_needed", "test_examples", "examples_needed"),
    ]
    return with_places(
        list(planned(experiment)),
        "power",
        columns,
        lambda row: _table_row(experiment, row),
        caption=_caption(experiment),
        named=2,
        right=range(2, len(columns)),
    )


def _caption(experiment: Experiment) -> str:
    """What the columns mean, and what the numbers rest on."""
    withheld = any(verdict(row) in WITHHELD for row in planned(experiment))
    values = (seed_values(experiment.group(row), value_column(row)) for row in experiment.summary)
    crossed = any(seed_table(cast(Values, of_cell)) is not None for of_cell in values)
    level = 1 - experiment.confidence
    interest = experiment.reporting["statistics"]["difference_of_interest"]
    size = WORDS.say("of_interest", interest, experiment.metric)
    return WORDS.say("caption", experiment.scored, experiment.power, level, size, withheld, crossed)


def planned(experiment: Experiment) -> Iterable[Row]:
    """The contrasts that the table has plans of."""
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
        return [*start, *[None] * (len(SEEDS) + 5)]
    withheld = verdict(row) in WITHHELD
    return [
        *start,
        None
        if plan.crossed or withheld
        else size_cell(plan.plan.design.detectable(plan.seeds), metric=metric),
        *(size_cell(plan.plan.design.detectable(number), metric=metric) for number in SEEDS),
        size_cell(plan.plan.design.floor or None, metric=metric),
        Cell(cell_word("no_verdict")) if withheld else _needed(plan),
        number_cell(plan.examples),
        None if withheld else _examples_cell(plan),
    ]


def _needed(plan: Planning) -> Cell:
    """The seeds that find the difference of interest, and their range."""
    number, low, high = plan.needed
    if number is None:
        return Cell(cell_word("no_number") if plan.examples_needed else f"> {MOST_SEEDS:,}")
    ends = ["…" if end is None else f"{end:,}" for end in (low, high)]
    return Cell(cell_word("seeds_in_range", seeds=f"{number:,}", low=ends[0], high=ends[1]), number)


def _examples_cell(plan: Planning) -> Cell | None:
    needed = plan.examples_needed
    return None if needed is None else Cell(f"≥ {_rounded_down(needed):,}", needed)
