"""Variances from accuracies and agreement, against binary scores that are simulated with such parameters.

A score is right where a normal number exceeds a threshold. It is the sum of parts that runs of one seed, of
one example, or of both sides share, so that SciPy's bivariate normal distribution says how alike two scores
are.
"""

import math
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from seedbed.analysis import bootstrap
from seedbed.analysis.assumed_variances import Alike, Assumed, plan_of
from seedbed.analysis.seed_plan import Wanted, plan_from
from seedbed.analysis.spread import spread_of, variance_of_means
from seedbed.core.errors import SeedbedError

PUBLISHED = Path(__file__).parents[3] / "benchmarks" / "results" / "paper_scale" / "cls_books"


@dataclass(frozen=True)
class Scores:
    """Right and wrong of two sides.

    Attributes:
        accuracies: of both sides.
        seed: correlation of the normal numbers of one seed on two examples.
        side: of two seeds of a side on one example.
        sides: of a run of each side on one example.
    """

    accuracies: tuple[float, float]
    seed: float
    side: float
    sides: float

    def draw(self, rng, seeds, examples):
        """A table (seeds, examples) of each side."""
        shared = rng.normal(0, math.sqrt(self.sides), examples)
        tables = []
        for accuracy in self.accuracies:
            own = shared + rng.normal(0, math.sqrt(self.side - self.sides), examples)
            of_seed = rng.normal(0, math.sqrt(self.seed), (seeds, 1))
            rest = rng.normal(0, math.sqrt(1 - self.seed - self.side), (seeds, examples))
            tables.append((own + of_seed + rest < stats.norm.ppf(accuracy)).astype(float))
        return tables

    def both_right(self, p, q, correlation):
        thresholds = stats.norm.ppf([p, q])
        return float(stats.multivariate_normal.cdf(thresholds, cov=[[1, correlation], [correlation, 1]]))

    def agreement(self, p, q, correlation):
        return 1 - p - q + 2 * self.both_right(p, q, correlation)

    def correlation_of_seeds(self, p):
        return (self.both_right(p, p, self.side) - p**2) / (p * (1 - p))

    def sd(self, p, examples):
        """Of the accuracies of seeds on so many examples."""
        own = self.both_right(p, p, self.seed) - p**2
        of_examples = self.both_right(p, p, self.side) - p**2
        return math.sqrt(own + (p * (1 - p) - own - of_examples) / examples)

    def assumed(self, examples, paired):
        """What somebody who knows them would give."""
        a, b = self.accuracies
        return Assumed(
            self.accuracies,
            (self.sd(a, examples), self.sd(b, examples)),
            examples,
            paired,
            sides=Alike(agreement=self.agreement(a, b, self.sides)),
            seeds=tuple(Alike(correlation=self.correlation_of_seeds(p)) for p in (a, b)),
        )


@pytest.mark.parametrize("paired", [True, False])
def test_the_components_are_those_that_the_analysis_of_scores_finds(paired):
    scores, seeds, examples = Scores((0.8, 0.8), seed=0.02, side=0.7, sides=0.5), 5, 200
    variances = plan_of(scores.assumed(examples, paired), 0.95, 0.8).design.variances
    rng = np.random.default_rng(0)
    pairs, found = tuple((seed, seed) for seed in range(seeds)), []
    for _ in range(400):
        a, b = scores.draw(rng, seeds, examples)
        over_examples = variance_of_means([a.mean(axis=0) - b.mean(axis=0)])
        tables = [(a - b, pairs)] if paired else [(a, pairs), (b, pairs)]
        (part,) = spread_of(tables, over_examples, 1.0).seeds
        found.append((part.variance, over_examples, part.interaction))
    of_seeds, of_examples, interaction = variances.parts(seeds, examples)
    expected = of_seeds + interaction, of_examples + interaction, interaction
    # three standard errors of the means of 400
    assert np.mean(found, axis=0) == pytest.approx(expected, rel=0.11)
    assert variances.degrees == (1 if paired else 2)


def test_agreement_and_correlation_say_the_same():
    p, q, agreement = 0.8, 0.7, 0.75
    right = (agreement - 1 + p + q) / 2
    table = np.array([right, p - right, q - right, 1 - p - q + right])  # both, a alone, b alone, none
    a, b = np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0])
    correlation = np.cov(a, b, aweights=table, ddof=0)[0, 1] / math.sqrt(p * (1 - p) * q * (1 - q))
    plans = [
        plan_of(Assumed((p, q), (0.01, 0.02), 500, True, sides=alike), 0.95, 0.8)
        for alike in (Alike(agreement=agreement), Alike(correlation=correlation))
    ]
    variances = [plan.design.variances for plan in plans]
    assert astuple(variances[0]) == pytest.approx(astuple(variances[1]))
    # p (1 - p) of both sides and their covariance bound the sum
    sums = variances[0].seeds + variances[0].examples + variances[0].interaction
    assert sums == pytest.approx(np.cov(a - b, aweights=table, ddof=0))


def test_what_published_runs_have_in_common_gives_the_variances_that_they_show():
    """Of two classes, runs that predict another class are not right or wrong together."""
    runs, pairs, churn = (pd.read_csv(PUBLISHED / f"{name}.csv") for name in ("runs", "pairs", "churn"))
    runs, churn = (table[table.framework == "fairseq"].groupby("init") for table in (runs, churn))
    pairs = pairs[(pairs.family == "init") & (pairs.a == "fairseq/pretrained")]
    together = ((pairs.both_right + pairs.both_wrong) / pairs.examples).mean()
    inits = ["pretrained", "random"]
    assumed = Assumed(
        tuple(runs.test_accuracy.mean()[inits]),
        tuple(runs.test_accuracy.std()[inits]),
        2000,
        True,
        sides=Alike(agreement=together),
        seeds=tuple(Alike(agreement=1 - share) for share in churn.mean_disagreement.mean()[inits]),
    )
    variances = plan_of(assumed, 0.95, 0.8).design.variances
    (measured,) = plan_from(PUBLISHED, Wanted(2), "pretrained - random, fairseq").plans
    assert variances.examples == pytest.approx(measured.plan.design.variances.examples, rel=0.05)
    assert variances.interaction == pytest.approx(measured.plan.design.variances.interaction, rel=0.05)


@pytest.mark.parametrize(
    ("paired", "seed", "side", "sides"),
    [(True, 0.03, 0.5, 0.5), (False, 0.005, 0.9, 0.6), (True, 0.0, 0.7, 0.4)],
    ids=["seeds vary most", "examples vary most", "single examples alone"],
)
def test_the_planned_power_is_that_of_whole_experiments(paired, seed, side, sides):
    seeds, examples, base = 5, 300, 0.75
    difference = 0.0
    for _ in range(6):  # as the variances depend on the accuracies, and these on the difference
        scores = Scores((base + difference, base), seed, side, sides)
        difference = plan_of(scores.assumed(examples, paired), 0.95, 0.8).design.detectable(seeds)
    rng, draws = np.random.default_rng(1), bootstrap.Draws(examples, 200, 0)
    pairs, found = tuple((number, number) for number in range(seeds)), []
    for number in range(500):
        a, b = (bootstrap.Side(table, pairs, draws) for table in scores.draw(rng, seeds, examples))
        found.append(bootstrap.compare(a, b, paired=paired, confidence=0.95, seed=number).low > 0)
    # the standard error of a share of 500 is 1.8 points
    assert np.mean(found) == pytest.approx(0.8, abs=0.05)


def test_what_seeds_of_a_side_share_bounds_the_range_if_it_is_not_known():
    def plan(alike):
        seeds = alike and (alike, alike)
        given = Assumed((0.8, 0.8), (0.015, 0.015), 2000, True, Alike(agreement=0.85), seeds)
        return plan_of(given, 0.95, 0.8)

    estimate, low, high = plan(None).detectable(10)
    assert estimate == high
    between = [plan(Alike(agreement=share)).detectable(10) for share in (0.86, 0.9, 0.95, 0.99)]
    for found, *ends in between:
        assert low < found < high
        assert ends == [found, found]


@pytest.mark.parametrize(
    ("given", "option", "remedy"),
    [
        ({"sides": Alike(agreement=0.4)}, "--agreement", "from 0.5 to 0.9"),
        ({"sides": Alike(correlation=-0.9)}, "--correlation", "from -0.327 to 0.763"),
        ({"seeds": (Alike(agreement=0.5),) * 2}, "--agreement-seeds", "from 0.68 to 1"),
        ({"seeds": (Alike(correlation=-0.1),) * 2}, "--correlation-seeds", "from 0 to 1"),
        (
            {"sides": Alike(correlation=0.5), "seeds": (Alike(correlation=0.2),) * 2},
            "--correlation",
            "to 0.2",
        ),
        ({"sds": (0.5, 0.01)}, "--sd-seeds", "at most 40.0"),
    ],
)
def test_what_contradicts_itself_is_refused_with_what_is_possible(given, option, remedy):
    numbers = {"sds": None, "sides": None, "seeds": None} | given
    accuracies = (0.8, 0.8) if "seeds" in given or "sds" in given else (0.8, 0.7)
    with pytest.raises(SeedbedError) as caught:
        plan_of(Assumed(accuracies, examples=2000, paired=True, **numbers), 0.95, 0.8)
    assert caught.value.where == option
    assert remedy in caught.value.hint
