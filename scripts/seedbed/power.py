"""What these seeds can and cannot show: numbers of seeds and of test examples, in words and as a table.

The variance of a difference is that of its seeds, which falls as seeds are added, and that of its test
examples, which does not: beyond some number of seeds only more test examples help.
"""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import special

from seedbed import statistics
from seedbed.contrasts import over_units
from seedbed.document import Cell, Table
from seedbed.experiment import Experiment, difference, questions, verdict
from seedbed.rows import Row, seed_values, value_column
from seedbed.words import capital, count, join, p_text, points

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
        seed_variance: variance of the differences of pairs, or within a side where there are no pairs.
        example_variance: variance that the difference has from its test examples, however many the seeds.
        examples: test examples; None where their number is not known.
        units: what an exact test runs over on the smaller side: seeds, or means of crossed ones.
        level, power: of the tests that are planned.
    """

    delta: float
    seeds: int
    paired: bool
    crossed: bool
    seed_variance: float
    example_variance: float
    examples: int | None
    units: int
    level: float
    power: float

    def detectable(self, seeds: int) -> float | None:
        """The smallest true difference that so many seeds a side detect; None for one seed."""
        return statistics.smallest_difference(
            self.seed_variance,
            seeds,
            self.level,
            self.power,
            paired=self.paired,
            example_variance=self.example_variance,
        )

    @functools.cached_property
    def needed(self) -> int | None:
        """Seeds a side that detect a true difference of the size seen; None where no number searched does."""
        return statistics.seeds_needed(
            self.delta,
            self.seed_variance,
            self.level,
            self.power,
            paired=self.paired,
            example_variance=self.example_variance,
        )

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
        if not self.delta or self.floor <= abs(self.delta):
            return None
        return math.ceil(self.examples * (self.floor / self.delta) ** 2)

    @property
    def smallest_p(self) -> float:
        """The smallest p that an exact test over these seeds can give."""
        return statistics.smallest_p(self.units, self.units, paired=self.paired)


def planning(experiment: Experiment, row: Row) -> Planning | None:
    """What the spread of a contrast's runs means for more seeds; None with one seed a side, without any
    spread, and for differences of gains."""
    a, b = (seed_values(experiment.side(row, side), value_column(row)) for side in ("a", "b"))
    if min(len(a), len(b)) < 2:
        return None
    seed_variance, example_variance = _seed_variance(a, b, row["paired"]), (row["se_examples"] or 0.0) ** 2
    if not seed_variance + example_variance:
        return None
    return Planning(
        delta=row["delta"],
        seeds=min(len(a), len(b)),
        paired=row["paired"],
        crossed=_crossed(a) or _crossed(b),
        seed_variance=seed_variance,
        example_variance=example_variance,
        examples=_examples(experiment.side(row, "a")[0], row["test_set"]),
        units=min(len(over_units(values)[1]) for values in (a, b)),
        level=1 - experiment.confidence,
        power=experiment.power,
    )


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
    if _crossed(values):
        inits, datas = (sorted(set(parts)) for parts in zip(*values, strict=True))
        table = np.array([[values[init, data] for data in datas] for init in inits])
        return sum(row["variance"] for row in statistics.two_way_variance(table))
    return statistics.sample_sd(list(values.values())) ** 2


def _crossed(values: Values) -> bool:
    """Whether every init seed was run with every data seed, and there are two of each or more."""
    inits, datas = (set(parts) for parts in zip(*values, strict=True))
    return min(len(inits), len(datas)) > 1 and len(values) == len(inits) * len(datas)


def _examples(run: Row, test_set: str) -> int | None:
    whole = run["test_examples"]
    return whole if whole is None or test_set == "all" else whole - run["leaked_test_examples"]


# --- in words -----------------------------------------------------------------------------------------------


def power_sentences(experiment: Experiment) -> list[str]:
    """What these seeds can and cannot show of the inits: one item a contrast, then what all rest on."""
    rows = list(_rows(experiment))
    told = [_sentence(experiment, row) for row in rows[:MAX_LISTED]]
    if not told:
        return []
    if len(rows) > MAX_LISTED:
        told.append(f"{len(rows) - MAX_LISTED} more contrasts of the inits stand in the table.")
    planned = any(planning(experiment, row) is not None for row in rows)
    return [*told, basis(experiment)] if planned else told


def basis(experiment: Experiment) -> str:
    """What detecting means, and what the numbers of seeds rest on."""
    told = (
        f"To detect a difference is to find it with a power of {100 * experiment.power:.4g}% at the level of "
        f"{100 * (1 - experiment.confidence):.3g}%. These numbers rest on a spread estimated from the same "
        "few seeds, and are rough."
    )
    if any(row["selection"] == "best" for row in experiment.contrasts):
        told += " Recipes that were chosen on validation are held fixed in them."
    if any(_crossed(seed_values(experiment.group(row), value_column(row))) for row in experiment.summary):
        told += (
            " They count seeds of which each has an init and a data order of its own; the crossed seeds of "
            "this experiment share theirs, and so show less than as many of those."
        )
    return told


def settling(row: Row, plan: Planning) -> str:
    """What would settle a true difference of the size seen, without its subject and full stop."""
    if not plan.delta:
        return "would not be settled by any number of seeds, since it is zero"
    if plan.needed and plan.needed <= plan.seeds:
        if row["selection"] == "best":
            return "would be settled by these seeds if the recipes were given: their choice leaves it open"
        return "is about the smallest that these seeds settle"
    if plan.needed:
        return f"would take about {count(plan.needed, 'seed')} a side to settle"
    if plan.examples_needed:
        return (
            f"would not be settled by any number of seeds on these {plan.examples:,} test examples: it would "
            f"take at least about {_rounded_up(plan.examples_needed):,} of them, and more seeds"
        )
    return f"would take more than {statistics.MAX_SEEDS:,} seeds a side to settle"


def _rows(experiment: Experiment) -> Iterable[Row]:
    """The contrasts of the inits: at each side's best and at the reference recipe."""
    for question in questions(experiment):
        yield from question.headline().values()
        if question.swept:
            yield from question.contrasts("equal").values()


def _sentence(experiment: Experiment, row: Row) -> str:
    subject = capital(f"{experiment.where(row)}, {row['a'].split('/')[0]}, {_recipe(row)}")
    plan = planning(experiment, row)
    if plan is None:
        why = {
            "single": "one seed a side says nothing of other seeds, so that no difference can be detected",
        }.get(verdict(row), "every seed shows the same difference, so that seeds tell nothing of its error")
        return f"{subject}: {why}."
    told = [_detectable(plan)]
    if plan.floor:
        told.append(
            f"With these {plan.examples:,} test examples no number of seeds detects less than "
            f"{100 * plan.floor:.1f} points"
        )
    settled = verdict(row) in ("higher", "lower")
    outcome = "is settled: its interval leaves zero out" if settled else settling(row, plan)
    told += [f"The difference seen, {difference(row)}, {outcome}", _exact(plan)]
    return f"{subject}: {'. '.join(told)}."


def _detectable(plan: Planning) -> str:
    """The differences that seeds detect: those at hand, unless they are crossed, and more."""
    numbers = SEEDS if plan.crossed else (plan.seeds, *(number for number in SEEDS if number > plan.seeds))
    seeds = f"{numbers[0]} independent seeds" if plan.crossed else count(plan.seeds, "seed")
    first = f"{seeds} a side detect a true difference of {_size(plan, numbers[0])} points or more"
    more = [f"{_size(plan, number)} with {number}" for number in numbers[1:]]
    return f"{first}; {join(more)} seeds" if more else first


def _recipe(row: Row) -> str:
    if row["selection"] == "equal":
        return f"recipe `{row['recipe_a']}`"
    return "each init at its best recipe on validation"


def _size(plan: Planning, seeds: int) -> str:
    return f"{100 * plan.detectable(seeds):.1f}"


def _exact(plan: Planning) -> str:
    over = f"{count(plan.units, 'pair')} of seeds" if plan.paired else f"{count(plan.units, 'seed')} a side"
    return (
        f"An exact test over {over} cannot give a p below {p_text(plan.smallest_p)}, whatever the difference"
    )


def _rounded_up(number: int) -> int:
    """Two significant digits: more are not known."""
    unit = 10 ** max(0, len(str(number)) - 2)
    return -(-number // unit) * unit


# --- as a table ---------------------------------------------------------------------------------------------


def power_table(experiment: Experiment) -> Table:
    """The same as a table, one row a contrast of the inits."""
    header = ["dataset", "model", "framework", "recipe", "difference (points)", "seeds a side"]
    header += [f"detectable {when} (points)" for when in ("now", *(f"with {number}" for number in SEEDS))]
    header += [
        "with endless seeds (points)",
        "seeds to settle it",
        "test examples",
        "test examples to settle it",
    ]
    header += ["smallest exact p"]
    caption = (
        "What these seeds can and cannot show of pretrained minus random test accuracy. Detectable: the "
        "smallest true difference that these seeds, or 5, 10 or 25 a side, detect; with endless seeds: what "
        "these test examples alone leave. Where the difference seen is smaller than that, only more of them "
        f"settle it. {basis(experiment)}"
    )
    body = [_table_row(experiment, row) for row in _rows(experiment)]
    return Table("power", header, body, caption, right=range(4, len(header)))


def _table_row(experiment: Experiment, row: Row) -> list[Cell | str | None]:
    plan = planning(experiment, row)
    recipe = row["recipe_a"] if row["selection"] == "equal" else "each its best on validation"
    start = [row["dataset"], row["model"], row["a"].split("/")[0], recipe, _points(row["delta"], signed=True)]
    start.append(Cell(f"{min(row['n_a'], row['n_b']):,}", min(row["n_a"], row["n_b"])))
    if plan is None:
        return [*start, *[None] * (len(SEEDS) + 6)]
    return [
        *start,
        None if plan.crossed else _points(plan.detectable(plan.seeds)),
        *(_points(plan.detectable(number)) for number in SEEDS),
        _points(plan.floor or None),
        _needed(plan),
        plan.examples,
        _examples_cell(plan),
        Cell(p_text(plan.smallest_p), plan.smallest_p),
    ]


def _points(value: float | None, *, signed: bool = False) -> Cell | None:
    if value is None:
        return None
    return Cell(points(value) if signed else f"{100 * value:.1f}", 100 * value)


def _needed(plan: Planning) -> Cell | None:
    if not plan.delta:
        return None
    if plan.needed:
        return Cell(f"{plan.needed:,}", plan.needed)
    return Cell("no number" if plan.examples_needed else f"> {statistics.MAX_SEEDS:,}")


def _examples_cell(plan: Planning) -> Cell | None:
    needed = plan.examples_needed
    return None if needed is None else Cell(f"> {_rounded_up(needed):,}", needed)
