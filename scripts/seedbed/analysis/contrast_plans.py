"""The plan of a difference that an experiment measured: what its variances mean for more seeds and examples.

The error of a row of contrasts.csv is taken apart into the variances that `planning` simulates with.
"""

from dataclasses import dataclass
from typing import cast

from seedbed.analysis import statistics
from seedbed.analysis.experiment import Experiment
from seedbed.analysis.planning import Design, Plan, Variances
from seedbed.analysis.sides import seed_table
from seedbed.analysis.table_rows import RunRow, seed_values, value_column
from seedbed.analysis.verdicts import verdict
from seedbed.core.known import known
from seedbed.core.rows import Row

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
        plan=Plan.estimated(seeds, design),
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
