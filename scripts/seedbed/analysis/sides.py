"""What differences within an experiment and between two experiments have in common: sides of the
Multi-Bootstrap made of predictions, the exact test over seeds, Holm's adjustment over a family of rows."""

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seedbed.analysis import statistics
from seedbed.analysis.bootstrap import Candidate, Draws, Seeds, Side
from seedbed.analysis.outputs import CellOutputs
from seedbed.analysis.table_rows import RunRow
from seedbed.core.files import fingerprint
from seedbed.core.rows import Row
from seedbed.core.seeds import is_crossed
from seedbed.core.tasks import METRICS

# What two rows of one test have in common.
SAME_CELLS = ("dataset", "model", "dataset_b", "model_b", "a", "b", "recipe_a", "recipe_b", "test_set")

Seed = tuple[int, int]


def named_seed(settings: Mapping[str, Any], names: Any) -> int:
    """A seed of random numbers that depends on the config's seed and on these names, and on nothing else."""
    return int(fingerprint([settings["bootstrap_seed"], names]), 16)


def seeds_of(runs: Sequence[RunRow]) -> Seeds:
    """(init seed, data seed) of each run."""
    return tuple((run.init_seed, run.data_seed) for run in runs)


# --- sides of the Multi-Bootstrap ---------------------------------------------------------------------------


class SideMaker:
    """Makes sides; those whose examples have the same name and number share the draws of examples.

    Args:
        settings: replicates and bootstrap_seed, as in the config's `statistics`.
    """

    def __init__(self, settings: Mapping[str, Any]):
        self._settings = settings
        self._draws = functools.cache(self._make_draws)

    def side(self, cell: CellOutputs, metric: str, seeds: Seeds, *examples: str) -> Side:
        """The side of a cell by a metric, on the examples of this name."""
        scores = cell.scores(metric)
        draws = self._draws(*examples, scores.shape[1])
        counted = cell.counted(metric)
        if counted is None:
            return Side(scores, seeds, draws)
        order = sorted(range(len(seeds)), key=lambda row: seeds[row])

        @functools.cache
        def means() -> np.ndarray:
            return counted.resampled(draws)[:, order]

        return Side(scores, seeds, draws, means)

    def validation(self, cell: CellOutputs, seeds: Seeds, *examples: str) -> tuple[Side, Side]:
        """Selection metric and tie-break of a cell on validation, larger is better: what recipes are chosen
        by, such as accuracy and negated loss."""
        metrics = (cell.task.selection, cell.task.tie_break)
        selection, tie_break = (
            _larger_is_better(self.side(cell, metric, seeds, *examples), metric) for metric in metrics
        )
        return selection, tie_break

    def _make_draws(self, *names: Any) -> Draws:
        return Draws(names[-1], self._settings["replicates"], named_seed(self._settings, names))


def _larger_is_better(side: Side, metric: str) -> Side:
    return side if METRICS[metric].direction > 0 else Side(-side.scores, side.seeds, side.draws)


def combine(a: Side, b: Side, sign: int) -> Side:
    """The sum (sign 1) or the difference (sign -1) of two sides of the same seeds and examples.

    Its resampled means are those of its parts, so that making one costs nothing.
    """
    return Side(a.scores + sign * b.scores, a.seeds, a.draws, lambda: a.means + sign * b.means)


def only_seeds(side: Side, seeds: Sequence[Seed]) -> Side:
    """The side with some of its seeds alone; its resampled means are those of the whole one."""
    if set(seeds) == set(side.seeds):
        return side
    rows = [row for row, seed in enumerate(side.seeds) if seed in set(seeds)]
    kept = tuple(side.seeds[row] for row in rows)
    return Side(side.scores[rows], kept, side.draws, lambda: side.means[:, rows])


def gain_candidates(pretrained: Sequence[Candidate], random: Sequence[Candidate]) -> list[Candidate]:
    """What a gain of pretraining may choose: every pair of a recipe of the one init and one of the other, of
    which the best sum of validation scores is that of each init's best."""
    return [
        Candidate(
            combine(one.test, other.test, -1),
            combine(one.validation, other.validation, +1),
            combine(one.tie_break, other.tie_break, +1),
        )
        for one, other in itertools.product(pretrained, random)
    ]


# --- exact tests over seeds ---------------------------------------------------------------------------------


SEEDS, INIT_SEEDS, DATA_SEEDS = "seeds", "init seeds", "data seeds"
FEWEST_PAIRS = 3  # a correlation of two is 1 or -1
SIGN_FLIP, PERMUTATION = "sign-flip", "permutation"


@dataclass(frozen=True)
class Units:
    """What counts as independent among the runs of a side.

    Attributes:
        kind: SEEDS, or the factor whose levels have a mean each: INIT_SEEDS or DATA_SEEDS.
        values: by seed, or by level of the factor.
    """

    kind: str
    values: Mapping[Any, float]

    @property
    def means(self) -> int | None:
        """How many means there are; None where runs themselves are independent."""
        return None if self.kind == SEEDS else len(self.values)


@dataclass(frozen=True)
class ExactTest:
    """An exact two-sided test of mean(a) - mean(b).

    Attributes:
        p_value: None where there is no test.
        kind: SIGN_FLIP or PERMUTATION; None where there is no test.
        unit: `Units.kind` of the first side; None where a side has one value only.
        means: `Units.means` of the first side.
    """

    p_value: float | None = None
    kind: str | None = None
    unit: str | None = None
    means: int | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of a `Difference`."""
        return {
            "p_exact": self.p_value, "test": self.kind, "test_unit": self.unit, "test_means": self.means,
        }  # fmt: skip


def exact_test(a: Mapping[Seed, float], b: Mapping[Seed, float], *, paired: bool) -> ExactTest:
    """The exact test over what `over_units` takes for independent.

    Args:
        a, b: a value for each (init seed, data seed).
        paired: the values of one seed are a pair; both sides then have the same seeds.
    """
    left, right = over_units(a), over_units(b)
    x, y = left.values, right.values
    if min(len(x), len(y)) < 2:
        return ExactTest()
    if paired:
        p_value = statistics.sign_flip_p([value - y[unit] for unit, value in x.items()])
    else:
        p_value = statistics.permutation_p(list(x.values()), list(y.values()))
    kind = SIGN_FLIP if paired else PERMUTATION
    return ExactTest(p_value, None if p_value is None else kind, left.kind, left.means)


def pairing(a: Mapping[Seed, float], b: Mapping[Seed, float]) -> dict[str, float | None]:
    """What pairs of seeds bring, as columns of a `Difference`.

    The correlation of both sides over seeds, and the variance of the differences of pairs relative to the sum
    of both sides' variances, which it would be without pairs. None for fewer than three pairs, and where a
    side has no spread.
    """
    x, y = (np.array([side[seed] for seed in a]) for side in (a, b))
    if len(x) < FEWEST_PAIRS or not all(statistics.sample_sd(side.tolist()) for side in (x, y)):
        return {"seed_correlation": None, "pairing_ratio": None}
    unpaired = x.var(ddof=1) + y.var(ddof=1)
    return {
        "seed_correlation": float(np.corrcoef(x, y)[0, 1]),
        "pairing_ratio": float((x - y).var(ddof=1) / unpaired),
    }


def over_units(values: Mapping[Seed, float]) -> Units:
    """What may count as independent among the runs of a side, with a value for each.

    Seeds, unless init seeds and data seeds are crossed (several of each, and one of them in several runs):
    then the means of the factor with fewer levels, of equal ones the init seed.
    """
    if not is_crossed(tuple(values)):
        return Units(SEEDS, dict(values))
    inits, datas = (len({seed[part] for seed in values}) for part in (0, 1))
    part = 0 if inits <= datas else 1
    levels: dict[int, list[float]] = {}
    for seed, value in values.items():
        levels.setdefault(seed[part], []).append(value)
    means = {level: statistics.mean(group) for level, group in levels.items()}
    return Units((INIT_SEEDS, DATA_SEEDS)[part], means)


def seed_table(values: Mapping[Seed, float]) -> np.ndarray | None:
    """The values as a table (init seeds, data seeds), both in order; None unless every init seed was run with
    every data seed, and there are two of each or more."""
    inits, datas = (sorted({seed[part] for seed in values}) for part in (0, 1))
    if min(len(inits), len(datas)) < 2 or len(values) != len(inits) * len(datas):
        return None
    return np.array([[values[init, data] for data in datas] for init in inits], dtype=float)


def adjusted(
    rows: Sequence[Row], column: str, same: Sequence[str] = SAME_CELLS, family: Sequence[str] = ()
) -> list[float | None]:
    """Holm's adjustment of the p-values in `column` over the rows of each family, in the order of the rows.

    Two rows may be of the same two cells, one as an equal recipe and one as each side's best: that is one
    test, and counts as one.

    Args:
        rows: of several families, or of one.
        column: of the p-values.
        same: columns in which the rows of one test agree.
        family: columns in which the rows of one family agree; none where all rows are one family.
    """
    tests: dict[tuple[Any, ...], dict[tuple[Any, ...], float | None]] = {}
    keys = [(_values(row, family), _values(row, same)) for row in rows]
    for row, (of_family, test) in zip(rows, keys, strict=True):
        tests.setdefault(of_family, {})[test] = row[column]
    found = {
        of_family: dict(zip(each, statistics.holm(list(each.values())), strict=True))
        for of_family, each in tests.items()
    }
    return [found[of_family][test] for of_family, test in keys]


def _values(row: Row, columns: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in columns)
