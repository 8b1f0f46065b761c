"""Plans against experiments that are simulated whole, and against the normal distribution."""

import math

import numpy as np
import pytest
from scipy import stats

from seedbed.analysis import bootstrap
from seedbed.analysis.planning import Design, Plan, Variances

SEEDS, EXAMPLES = 4, 50


def variances(seeds=0.0, examples=0.0, interaction=0.0, degrees=1):
    return Variances(seeds, examples, interaction, degrees)


def design(**parts):
    """A plan with these variances."""
    return Design(variances(**parts), EXAMPLES, confidence=0.95, power=0.8)


def pairs(n):
    return tuple((k, k) for k in range(n))


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("seeds", "examples", "interaction"), [(1, 0, 0), (0, 4, 16), (0.2, 2, 4)])
def test_what_is_detectable_is_found_with_the_power_by_the_rule_itself(paired, seeds, examples, interaction):
    """Whole tables of scores are drawn and compared as results are."""
    draw = np.random.default_rng(0)
    draws = bootstrap.Draws(EXAMPLES, 500, 0)
    sides = 1 if paired else 2
    plan = design(seeds=sides * seeds, examples=examples, interaction=sides * interaction, degrees=sides)
    difference = plan.detectable(SEEDS)
    found = []
    for number in range(300):
        tables = [
            draw.normal(0, math.sqrt(seeds), (SEEDS, 1))
            + draw.normal(0, math.sqrt(interaction), (SEEDS, EXAMPLES))
            for _ in range(sides)
        ]
        tables[0] = tables[0] + difference + draw.normal(0, math.sqrt(examples), EXAMPLES)
        a, b = (
            bootstrap.Side(table, pairs(SEEDS), draws)
            for table in (tables if sides == 2 else (*tables, np.zeros((SEEDS, EXAMPLES))))
        )
        found.append(bootstrap.compare(a, b, paired=paired, confidence=0.95, seed=number).low > 0)
    # the standard error of a share of 300 is 2.3 points; a plan does not know the shape of replicates, which
    # costs 5 points where four seeds alone make it
    assert np.mean(found) == pytest.approx(0.8, abs=0.08)


def test_what_examples_alone_leave_is_that_of_the_normal_distribution():
    plan = design(examples=4.0, interaction=1e-9)
    expected = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * math.sqrt(4 / EXAMPLES)
    assert plan.floor == pytest.approx(expected)
    assert plan.power_of_endless_seeds(plan.floor) == pytest.approx(0.8)
    assert plan.detectable(3) == pytest.approx(expected, rel=0.05)
    # four times the examples detect half of it
    assert plan.examples_for(plan.floor / 2) == pytest.approx(4 * EXAMPLES, abs=1)


def test_the_fewest_seeds_are_those_that_detect_it_and_one_fewer_do_not():
    plan = design(seeds=1.0, examples=0.5, interaction=1.0)
    number = plan.seeds_for(1.0)
    assert plan.detectable(number) <= 1.0 < plan.detectable(number - 1)


@pytest.mark.parametrize(
    ("difference", "expected"), [(0.2, None), (100.0, 3)], ids=["below what examples leave", "huge"]
)
def test_no_number_of_seeds_and_the_smallest_number(difference, expected):
    assert design(seeds=1.0, examples=4.0).seeds_for(difference) == expected


def test_without_any_error_of_examples_endless_seeds_find_everything():
    assert design(seeds=1.0).power_of_endless_seeds(1e-3) == 1


def test_the_range_holds_the_estimate_and_is_wide_for_three_seeds():
    few, many = (Plan.estimated(seeds, design(seeds=1.0, interaction=1.0)) for seeds in (3, 30))
    for plan in (few, many):
        estimate, low, high = plan.detectable(10)
        assert low < estimate < high
        number, fewest, most = plan.seeds_for(1.0)
        assert fewest <= number <= most
    assert few.detectable(10)[2] > 1.5 * many.detectable(10)[2]
