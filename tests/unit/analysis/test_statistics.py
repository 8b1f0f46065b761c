"""Statistics against SciPy, published values and numbers worked out by hand."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from seedbed.analysis import statistics
from seedbed.core.errors import SeedbedError

SOURCE_A = [0.795, 0.785, 0.801]
RANDOM_A = [0.654, 0.667, 0.674]


def test_spread_is_the_sample_standard_deviation():
    assert statistics.sample_sd([1, 2, 3, 4]) == pytest.approx(math.sqrt(5 / 3))
    assert statistics.sample_sd([0.5]) is None


@pytest.mark.parametrize("values", [[0.5, math.nan], [math.inf], [], [[0.1], [0.2]]])
def test_holes_are_errors(values):
    with pytest.raises(SeedbedError, match="every value finite"):
        statistics.mean(values)


@pytest.mark.parametrize("n", range(4, 13))
def test_iqm_is_scipys_trimmed_mean(n):
    values = np.random.default_rng(n).random(n)
    assert statistics.iqm(values) == pytest.approx(stats.trim_mean(values, 0.25))


def test_iqm_by_hand():
    assert statistics.iqm([0, 2, 3, 4, 100]) == 3
    assert statistics.iqm([1, 2, 6]) is None


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_t_interval_is_scipys(confidence):
    expected = stats.ttest_1samp(SOURCE_A, 0).confidence_interval(confidence)
    assert statistics.t_interval(SOURCE_A, confidence) == pytest.approx(tuple(expected))


def test_t_interval_by_hand():
    # mean 2, sd 1, t(2) = 4.30265
    low, high = statistics.t_interval([1, 2, 3], 0.95)
    assert (low, high) == pytest.approx((2 - 4.30265 / math.sqrt(3), 2 + 4.30265 / math.sqrt(3)), abs=1e-5)
    assert statistics.t_interval([1], 0.95) is None


def test_welch_interval_is_scipys():
    expected = stats.ttest_ind(SOURCE_A, [*RANDOM_A, 0.7], equal_var=False).confidence_interval(0.95)
    assert statistics.welch_interval(SOURCE_A, [*RANDOM_A, 0.7], 0.95) == pytest.approx(tuple(expected))


def test_welch_interval_at_the_edges():
    assert statistics.welch_interval([0.5], [0.4, 0.3], 0.95) is None
    assert statistics.welch_interval([0.5, 0.5], [0.4, 0.4], 0.95) is None


def test_values_without_spread_have_no_interval_rather_than_one_of_no_width():
    rounding = [0.1 + 0.2, 0.3, 0.3]  # equal but for the last bit
    assert statistics.sample_sd(rounding) == 0
    assert statistics.t_interval(rounding, 0.95) is None


def test_binomial_standard_error_by_hand():
    assert statistics.binomial_se(0.8, 200) == pytest.approx(0.0282843, abs=1e-7)


@pytest.mark.parametrize(("successes", "examples"), [(0, 10), (10, 10), (7, 10), (1588, 2000)])
def test_wilson_is_scipys(successes, examples):
    one_sided = stats.binomtest(successes, examples, alternative="greater").proportion_ci(0.95, "wilson")
    assert statistics.wilson_lower(successes, examples, 0.95) == pytest.approx(one_sided.low, abs=1e-12)


def test_three_seeds_cannot_reach_five_percent():
    assert statistics.permutation_p(SOURCE_A, RANDOM_A) == pytest.approx(0.10)
    assert statistics.sign_flip_p(np.subtract(SOURCE_A, RANDOM_A)) == pytest.approx(0.25)
    assert statistics.smallest_p(3, 3, paired=False) == pytest.approx(0.10)
    assert statistics.smallest_p(3, 3, paired=True) == pytest.approx(0.25)
    assert statistics.smallest_p(1, 1, paired=True) == 1


@pytest.mark.parametrize("scale", [1 / 200, 1 / math.pi])  # on a grid, and on none
@pytest.mark.parametrize("seed", range(5))
def test_permutation_tests_are_exact(scale, seed):
    draw = np.random.default_rng(seed)
    a, b = draw.integers(100, 130, 5) * scale, draw.integers(105, 140, 5) * scale
    reference = stats.permutation_test(
        (a, b), lambda x, y: np.mean(x) - np.mean(y), n_resamples=np.inf, permutation_type="independent"
    )
    assert statistics.permutation_p(a, b) == pytest.approx(reference.pvalue)
    paired = stats.permutation_test(
        (a - b,), np.mean, n_resamples=np.inf, permutation_type="samples", vectorized=False
    )
    assert statistics.sign_flip_p(a - b) == pytest.approx(paired.pvalue)


def test_permutation_with_ties_and_unequal_groups_by_enumeration():
    a, b = [0.5, 0.5, 0.7], [0.5, 0.4]
    pooled = a + b
    observed = abs(np.mean(a) - np.mean(b))
    hits = 0
    for chosen in combinations(range(5), 3):
        rest = [pooled[index] for index in range(5) if index not in chosen]
        hits += abs(np.mean([pooled[index] for index in chosen]) - np.mean(rest)) >= observed - 1e-12
    assert statistics.permutation_p(a, b) == pytest.approx(hits / 10)
    differences = [0.1, 0.0, -0.05, 0.2]
    sums = [abs(np.dot(signs, differences)) for signs in product([1, -1], repeat=4)]
    expected = np.mean(np.array(sums) >= 0.25 - 1e-12)
    assert statistics.sign_flip_p(differences) == pytest.approx(expected)


def test_equal_groups_have_p_one():
    assert statistics.permutation_p([0.5, 0.5], [0.5, 0.5]) == 1
    assert statistics.sign_flip_p([0.0, 0.0]) == 1


def test_25_seeds_a_side_are_still_exact():
    a, b = [(1500 + k) / 2000 for k in range(25)], [(1400 + k) / 2000 for k in range(25)]
    assert statistics.permutation_p(a, b) == pytest.approx(2 / math.comb(50, 25))
    assert statistics.sign_flip_p(np.subtract(a, b)) == pytest.approx(2 / 2**25)


def test_too_many_values_on_no_grid_have_no_exact_p():
    values = np.random.default_rng(0).random(60) / math.pi
    assert statistics.permutation_p(values[:30], values[30:]) is None
    assert statistics.sign_flip_p(values) is None


def test_holm_by_hand():
    assert statistics.holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])
    assert statistics.holm([0.6, 0.7]) == [1.0, 1.0]
    assert statistics.holm([None]) == [None]


@pytest.mark.parametrize("margin", [0.005, 0.02, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_equivalence_is_two_of_scipys_one_sided_tests(margin, seed):
    draw = np.random.default_rng(seed)
    a, b = draw.normal(0.80, 0.01, 5), draw.normal(0.79, 0.02, 7)
    welch = stats.ttest_ind(a, b, equal_var=False)
    difference = a.mean() - b.mean()
    error = difference / welch.statistic, welch.df
    above = stats.ttest_ind(a + margin, b, equal_var=False, alternative="greater").pvalue
    below = stats.ttest_ind(a - margin, b, equal_var=False, alternative="less").pvalue
    assert statistics.equivalence_p(difference, *error, margin) == pytest.approx(max(above, below))
    assert statistics.equivalence_p(-difference, *error, margin) == pytest.approx(max(above, below))


def test_equivalence_on_the_margin():
    # one of the two tests has t = 0
    assert statistics.equivalence_p(0.2, 0.1, 3, 0.2) == pytest.approx(0.5)


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 1), (3, 3), (10, 2), (2, 10), (150, 200), (0, 40)])
def test_mcnemar_is_scipys_binomial_test(only_a, only_b):
    expected = stats.binomtest(only_a, only_a + only_b, 0.5).pvalue
    assert statistics.mcnemar_p(only_a, only_b) == pytest.approx(expected)


def test_mcnemar_of_runs_that_never_differ_is_one():
    assert statistics.mcnemar_p(0, 0) == 1.0


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_expected_best_is_the_mean_over_all_subsets(n):
    values = [0.7, 0.5, 0.7, 0.9]
    best = [max(subset) for subset in combinations(values, n)]
    assert statistics.expected_best(values, n) == pytest.approx(np.mean(best))
    assert statistics.expected_best_sd(values, n) == pytest.approx(np.std(best), abs=1e-12)


def test_expected_best_of_normal_values_is_unbiased():
    """Of three it is 0.8463 sd (Harter 1961), which draws with replacement put at 0.57."""
    draw = np.random.default_rng(0).standard_normal((20_000, 5))
    assert np.mean([statistics.expected_best(row, 3) for row in draw]) == pytest.approx(0.8463, abs=0.02)


@pytest.mark.parametrize("n", [0, 3])
def test_the_best_of_more_values_than_there_are_is_not_told(n):
    with pytest.raises(SeedbedError, match="best of n"):
        statistics.expected_best([0.3, 0.5], n)


def test_two_way_variance_by_hand():
    # row means 2 and 4, column means 1, 3 and 5
    table = [[0, 1, 5], [2, 5, 5]]
    rows = {row["component"]: row for row in statistics.two_way_variance(np.array(table))}
    assert [row["degrees"] for row in rows.values()] == [1, 2, 2]
    assert [row["levels"] for row in rows.values()] == [2, 3, 6]
    # sums of squares 6, 16 and, of the residuals 0, -1, 1, 0, 1, -1, 4
    assert [row["mean_square"] for row in rows.values()] == pytest.approx([6, 8, 2])
    assert [row["variance"] for row in rows.values()] == pytest.approx([4 / 3, 3, 2])
    assert sum(row["share"] for row in rows.values()) == pytest.approx(1)
    assert rows["data seed"]["share"] == pytest.approx(9 / 19)


def test_two_way_variance_splits_all_squares_and_finds_what_was_put_in():
    draw = np.random.default_rng(0)
    table = draw.normal(0, 3, (60, 1)) + draw.normal(0, 2, (1, 60)) + draw.normal(0, 1, (60, 60))
    rows = statistics.two_way_variance(table)
    squares = sum(row["degrees"] * row["mean_square"] for row in rows)
    assert squares == pytest.approx(((table - table.mean()) ** 2).sum())
    assert [row["variance"] for row in rows] == pytest.approx([9, 4, 1], rel=0.4)


def test_two_way_variance_at_the_edges():
    equal = statistics.two_way_variance(np.full((2, 3), 0.8))
    assert [row["share"] for row in equal] == [None, None, None]
    # an init seed that matters less than chance would have it is no negative variance
    crossed = statistics.two_way_variance(np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert [row["variance"] for row in crossed] == [0, 0, 1]
    for table in ([[0.1, 0.2]], [0.1, 0.2], [[0.1, math.nan], [0.1, 0.2]]):
        with pytest.raises(SeedbedError, match="full table"):
            statistics.two_way_variance(np.array(table))


def test_calibration_by_hand():
    confidence, correct = [0.55, 0.6, 0.61, 0.95], [True, False, True, True]
    assert statistics.calibration_bins(confidence, correct) == [
        {"bin_low": 0.5, "bin_high": 0.6, "count": 2, "confidence": pytest.approx(0.575), "accuracy": 0.5},
        {"bin_low": 0.6, "bin_high": 0.7, "count": 1, "confidence": pytest.approx(0.61), "accuracy": 1.0},
        {"bin_low": 0.9, "bin_high": 1.0, "count": 1, "confidence": pytest.approx(0.95), "accuracy": 1.0},
    ]
    assert statistics.calibration_error(confidence, correct) == pytest.approx((2 * 0.075 + 0.39 + 0.05) / 4)


def test_calibration_at_the_edges():
    assert statistics.calibration_error([1.0, 1.0], [True, True]) == 0
    assert statistics.calibration_error([1.0, 0.0], [False, True]) == 1
    # an upper edge belongs to its bin, whatever its float
    edges = [k / 10 for k in range(1, 11)]
    assert [row["bin_high"] for row in statistics.calibration_bins(edges, [True] * 10)] == edges
    for confidence, correct in (([0.5], [True, False]), ([1.1], [True]), ([-0.1], [True])):
        with pytest.raises(SeedbedError, match="probability and an outcome"):
            statistics.calibration_error(confidence, correct)
    with pytest.raises(SeedbedError, match="every value finite"):
        statistics.calibration_error([math.nan], [True])


def test_a_confidence_of_float32_falls_into_the_bin_that_its_decimals_say():
    (row,) = statistics.calibration_bins([float(np.float32(0.6))], [True])
    assert (row["bin_low"], row["bin_high"]) == (0.5, 0.6)


def test_mcnemar_of_halves_is_one():
    assert statistics.mcnemar_p(22, 23) == statistics.mcnemar_p(23, 23) == 1


@pytest.mark.parametrize("exact", [200, 0])
def test_a_calibrated_model_has_the_error_of_chance(monkeypatch, exact):
    """Outcomes drawn as likely as the confidences say; counted exactly, and by the normal distribution."""
    monkeypatch.setattr(statistics, "EXACT_BIN", exact)
    draw = np.random.default_rng(0)
    confidence = draw.uniform(0.5, 1, 176)
    errors = [statistics.calibration_error(confidence, draw.random(176) < confidence) for _ in range(2000)]
    assert statistics.calibration_error_of_chance(confidence) == pytest.approx(np.mean(errors), rel=0.02)


def test_the_calibration_error_of_chance_by_hand():
    """One example in each of two bins: |right - confidence| is 2 p (1 - p) on average."""
    assert statistics.calibration_error_of_chance([0.6, 0.9]) == pytest.approx((0.48 + 0.18) / 2)


@pytest.mark.parametrize("value", [123456789.1, 1e6 + 0.1, 7654321.7])
@pytest.mark.parametrize("n", [3, 5, 6, 7])
def test_equal_large_values_have_no_spread(value, n):
    """As perplexities are; the rounding of their mean must not count."""
    assert statistics.sample_sd([value] * n) == 0.0


# --- against what others document ---------------------------------------------------------------------------


def test_holm_is_that_of_statsmodels():
    """`multipletests(method="holm")` of the example of deep-significance, which permutes the result."""
    assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize(("only_a", "only_b", "expected"), [(25, 15, 0.15386), (11, 1, 0.00635)])
def test_mcnemar_is_that_of_mlxtends_tables(only_a, only_b, expected):
    assert statistics.mcnemar_p(only_a, only_b) == pytest.approx(expected, abs=5e-6)


def test_the_calibration_error_is_that_of_torchmetrics_example():
    """`MulticlassCalibrationError(num_classes=3, n_bins=3, norm="l1")` of its documentation: 0.2."""
    confidence, correct = [0.55, 0.55, 0.60, 0.90], [False, False, True, True]
    assert statistics.calibration_error(confidence, correct, bins=3) == pytest.approx(0.2)


def test_the_permutation_test_of_mlxtends_example():
    """Its 3,000 rounds give 0.0030 to 0.0066, SciPy's 5,000 give 0.0068; all 1.4e11 ways 0.00583."""
    treated = [28.44, 29.32, 31.22, 29.58, 30.34, 28.76, 29.21, 30.4, 31.12, 31.78]
    treated += [27.58, 31.57, 30.73, 30.43, 30.31, 30.32, 29.18, 29.52, 29.22, 30.56]
    control = [33.51, 30.63, 32.38, 32.52, 29.41, 30.93, 49.78, 28.96, 35.77, 31.42]
    control += [30.76, 30.6, 23.64, 30.54, 47.78, 31.98, 34.52, 32.42, 31.32, 40.72]
    assert statistics.permutation_p(treated, control) == pytest.approx(0.00583, abs=5e-6)


def test_the_expected_best_of_as_many_as_there_are_is_their_best():
    """With replacement it would be 0.5597, as no three seeds show."""
    assert statistics.expected_best([0.5125, 0.525, 0.575], 3) == 0.575


@pytest.mark.parametrize(("events", "trials"), [(0, 3), (1, 3), (3, 3), (7, 40)])
def test_the_interval_of_a_rate_is_that_of_scipy(events, trials):
    expected = stats.binomtest(events, trials).proportion_ci(0.95, method="exact")
    found = statistics.rate_interval(events, trials, 0.95)
    assert found == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_two_way_variance_is_that_of_a_regression():
    """Mean squares by what dummy variables explain, as statsmodels' anova_lm finds them."""
    table = np.random.default_rng(5).normal(0.8, 0.02, (4, 3))
    inits, datas = np.repeat(np.eye(4), 3, axis=0), np.tile(np.eye(3), (4, 1))

    def unexplained(*columns):
        design = np.hstack([np.ones((12, 1)), *columns])
        fitted = design @ np.linalg.lstsq(design, table.ravel(), rcond=None)[0]
        return ((table.ravel() - fitted) ** 2).sum()

    rest = unexplained(inits, datas)
    expected = [(unexplained(datas) - rest) / 3, (unexplained(inits) - rest) / 2, rest / 6]
    found = [row["mean_square"] for row in statistics.two_way_variance(table)]
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("share", [1.5, 2.0, 39.5])
def test_the_interquartile_mean_is_that_of_rliables_tests(share):
    """`aggregate_iqm` of 0, 1, 2, 3, of five 2s, and of 0 to 79."""
    values = {1.5: range(4), 2.0: [2] * 5, 39.5: range(80)}[share]
    assert statistics.iqm([float(value) for value in values]) == pytest.approx(share)


def test_bins_of_calibration_are_those_of_guo():
    """(lower, upper], so that 0.60 and 0.65 are apart; in netcal's [lower, upper) they share a bin: 0.125."""
    expected = (abs(1 - 0.60) + abs(0 - 0.65)) / 2
    assert statistics.calibration_error([0.60, 0.65], [True, False], bins=10) == pytest.approx(expected)
