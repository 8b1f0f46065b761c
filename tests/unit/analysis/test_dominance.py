"""Dominance of one group of runs over another, against SciPy and numbers worked out by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from seedbed.analysis import dominance
from seedbed.core.errors import SeedbedError

SETTINGS = {"confidence": 0.95, "replicates": 2000, "seed": 0}


@pytest.mark.parametrize("seed", range(4))
def test_probability_of_improvement_is_mann_whitneys(seed):
    draw = np.random.default_rng(seed)
    a, b = draw.integers(0, 6, 5) / 10, draw.integers(0, 6, 8) / 10  # with ties
    expected = stats.mannwhitneyu(a, b).statistic / (len(a) * len(b))
    assert dominance.probability_of_improvement(a, b) == pytest.approx(expected)


def test_probability_of_improvement_at_the_edges():
    assert dominance.probability_of_improvement([0.9], [0.8, 0.7]) == 1
    assert dominance.probability_of_improvement([0.5, 0.5], [0.5]) == 0.5
    with pytest.raises(SeedbedError, match="every value finite"):
        dominance.probability_of_improvement([0.9], [math.nan])


def test_violation_ratio_by_hand():
    # gaps of the quantiles 3, 1 and -2: 4 of 14
    assert dominance._violation_ratio(np.array([[4, 5, 6]]), np.array([[1, 4, 8]]))[0] == pytest.approx(
        4 / 14
    )
    # two values against three: quantiles change at 1/3, 1/2 and 2/3; gaps 1 (1/3), -1 (1/6), 1 (1/6), 0 (1/3)
    assert dominance._violation_ratio(np.array([[1, 3]]), np.array([[0, 2, 3]]))[0] == pytest.approx(1 / 4)


def test_violation_ratio_is_the_integral_over_quantiles():
    draw = np.random.default_rng(0)
    a, b = np.sort(draw.normal(0.1, 1, 7)), np.sort(draw.normal(0, 1, 5))
    levels = (np.arange(70_000) + 0.5) / 70_000
    gaps = np.quantile(a, levels, method="inverted_cdf") - np.quantile(b, levels, method="inverted_cdf")
    expected = (gaps[gaps < 0] ** 2).sum() / (gaps**2).sum()
    assert dominance._violation_ratio(a[None], b[None])[0] == pytest.approx(expected, abs=1e-4)


def test_aso_says_nothing_where_nothing_is_defined():
    assert dominance.aso_eps_min([0.5], [0.4, 0.3], comparisons=1, **SETTINGS) is None
    assert dominance.aso_eps_min([0.4, 0.3], [0.3, 0.4], comparisons=1, **SETTINGS) is None
    with pytest.raises(SeedbedError, match="every value finite"):
        dominance.aso_eps_min([0.5, math.inf], [0.4, 0.3], comparisons=1, **SETTINGS)


def test_aso_of_sides_that_do_not_overlap():
    better, worse = [0.8, 0.81, 0.82], [0.7, 0.71, 0.72]
    assert dominance.aso_eps_min(better, worse, comparisons=1, **SETTINGS) == 0
    assert dominance.aso_eps_min(worse, better, comparisons=1, **SETTINGS) == 1


def test_aso_bound_by_its_formula():
    # of two values against two, all 16 resamples can be listed
    a, b = np.array([0.5, 1.0]), np.array([0.0, 0.7])
    picks = [(0, 0), (0, 1), (1, 0), (1, 1)]
    ratios = []
    for left in picks:
        for right in picks:
            gaps = np.sort(a[list(left)]) - np.sort(b[list(right)])
            ratios.append((gaps[gaps < 0] ** 2).sum() / (gaps**2).sum())
    expected = 0 + stats.norm.ppf(0.95) * np.std(ratios)
    settings = {**SETTINGS, "replicates": 40_000}
    assert dominance.aso_eps_min(a, b, comparisons=1, **settings) == pytest.approx(expected, abs=0.01)


def test_more_comparisons_and_more_confidence_raise_the_bound():
    draw = np.random.default_rng(1)
    a, b = draw.normal(0.8, 1, 10), draw.normal(0, 1, 10)
    bounds = [dominance.aso_eps_min(a, b, comparisons=count, **SETTINGS) for count in (1, 2, 10)]
    assert 0 < bounds[0] < bounds[1] < bounds[2] < 1
    # 1 - (1 - 0.9) / 2 = 0.95
    two_at_90 = dominance.aso_eps_min(a, b, comparisons=2, confidence=0.9, replicates=2000, seed=0)
    assert two_at_90 == pytest.approx(bounds[0])


def test_aso_of_two_models_of_deep_significance():
    """Its `aso` draws 0.058 for its example of `multi_aso`, which takes a level of 1 and returns 1."""
    a, b = [0.9, 0.8, 0.92, 0.7, 0.94], [0.5, 0.85, 0.52, 0.6, 0.78]
    found = dominance.aso_eps_min(a, b, comparisons=1, **SETTINGS | {"replicates": 20_000})
    assert found == pytest.approx(0.085, abs=0.01)


def test_aso_does_not_depend_on_the_order_of_runs():
    a, b = [0.79, 0.8, 0.76, 0.81], [0.78, 0.75, 0.8]
    assert dominance.aso_eps_min(a, b, comparisons=1, **SETTINGS) == dominance.aso_eps_min(
        a[::-1], b[::-1], comparisons=1, **SETTINGS
    )


def test_probability_of_improvement_of_rliables_test():
    """Its test expects 1/3 where one of three values is larger than all of the others."""
    assert dominance.probability_of_improvement([0.9, 0.1, 0.2], [0.5, 0.6, 0.7]) == pytest.approx(1 / 3)


@pytest.mark.parametrize(("mean", "expected"), [(1.0, 0.0), (-1.0, 1.0)])
def test_violations_of_deep_significances_extreme_cases(mean, expected):
    """`compute_violation_ratio` of normal values of sd 0.001 around 1 and -1 against 0."""
    draw = np.random.default_rng(2)
    a, b = np.sort(draw.normal(mean, 0.001, 50)), np.sort(draw.normal(0, 0.001, 50))
    assert dominance._violation_ratio(a[None], b[None])[0] == expected
