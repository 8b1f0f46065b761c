"""Numbers of labels worked out by hand, and intervals against those of the differences that they invert."""

import csv
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from seedbed.analysis import bootstrap, label_worth, methods, verdicts
from seedbed.analysis.bootstrap import Candidate, Draws, Side
from seedbed.analysis.label_worth import FEWER, MORE, Curve, Labels
from seedbed.core.errors import SeedbedError

SIZES = (100, 200, 400, 800)
DRAWS, VALIDATION = Draws(60, 1000, 0), Draws(30, 1000, 0)
RESULTS = Path(__file__).parents[3] / "benchmarks" / "results" / "statistics"
HOW = {"confidence": 0.95, "seed": 0}


def pairs(n):
    return tuple((k, k) for k in range(n))


def side(mean, stream=0, seeds=None, spread=0.05, draws=DRAWS):
    """Scores of this mean that differ by seed and by example."""
    seeds = seeds or pairs(4)
    random = np.random.default_rng(stream)
    of_seeds, of_examples = random.normal(0, spread, (len(seeds), 1)), random.normal(0, 0.3, draws.examples)
    scores = of_seeds + of_examples + random.normal(0, 0.1, (len(seeds), draws.examples))
    return Side(mean + scores - scores.mean(), seeds, draws)


def point(mean, stream=0, seeds=None, spread=0.05):
    return bootstrap.given(side(mean, stream, seeds, spread))


def curve(means, stream=100, seeds=None, spread=0.05):
    points = [point(mean, stream + place, seeds, spread) for place, mean in enumerate(means)]
    return Curve(SIZES[: len(means)], points)


def worth(score, reference, direction=1, paired=True, **how):
    return label_worth.worth(score, reference, direction=direction, paired=paired, **(HOW | how))


def between(points, place):
    """What a curve is at a place between two sizes, whose recipes are given."""
    before = int(place)
    (one,), (other,) = points[before], points[before + 1]
    scores = (1 - place % 1) * one.test.scores + place % 1 * other.test.scores
    return Side(scores, one.test.seeds, one.test.draws)


def place_of(labels):
    return float(np.interp(np.log2(labels), np.log2(SIZES), range(len(SIZES))))


# --- the number -------------------------------------------------------------------------------------------


def test_between_two_sizes_the_curve_is_linear_in_the_logarithm_of_the_size():
    found = worth(point(0.75), curve([0.6, 0.7, 0.8, 0.9]))
    assert found.labels.number == pytest.approx(200 * 2**0.5)
    assert found.labels.bound is None
    assert found.relative_to(50).labels.number == pytest.approx(4 * 2**0.5)


def test_a_score_of_the_curve_itself_is_worth_its_own_size():
    reference = curve([0.6, 0.7, 0.8, 0.9])
    assert worth(reference.points[1], reference).labels == Labels(200.0)
    assert worth(reference.points[0], reference).labels == Labels(100.0)
    assert worth(reference.points[3], reference).labels == Labels(800.0)


@pytest.mark.parametrize(
    ("score", "expected"),
    [(0.7, 100 * 2 ** (2 / 3)), (0.8, 400 * 2 ** (1 / 3))],  # of 0.6, 0.75, 0.75 and 0.9
)
def test_where_scores_fall_their_mean_counts(score, expected):
    assert worth(point(score), curve([0.6, 0.8, 0.7, 0.9])).labels.number == pytest.approx(expected)


def test_the_monotone_fit_is_scikit_learns():
    values = np.random.default_rng(0).normal(size=(20, 7))
    for row in values:
        expected = IsotonicRegression().fit_transform(np.arange(7), row)
        assert label_worth.monotone(row) == pytest.approx(expected)


def test_beyond_the_sizes_there_are_bounds():
    reference = curve([0.6, 0.7, 0.8, 0.9])
    above, below = (worth(point(score), reference) for score in (5.0, -5.0))
    assert (above.labels, above.low, above.high) == (Labels(800, MORE),) * 3
    assert (below.labels, below.low, below.high) == (Labels(100, FEWER),) * 3
    assert above.relative_to(400).high == Labels(2.0, MORE)


def test_an_interval_that_leaves_the_sizes_is_open_there():
    reference = curve([0.6, 0.7, 0.8, 0.9])
    found = worth(point(0.89), reference)
    assert found.labels.bound is None
    assert found.low.bound is None
    assert found.low.number < found.labels.number
    assert found.high == Labels(800, MORE)
    assert worth(point(0.61), reference).low == Labels(100, FEWER)


def test_a_smaller_loss_is_better():
    losses = [Curve(SIZES, [flipped(of_size) for of_size in curve([0.6, 0.7, 0.8, 0.9]).points])]
    found = worth(flipped(point(0.75)), losses[0], direction=-1)
    assert found == worth(point(0.75), curve([0.6, 0.7, 0.8, 0.9]))


def flipped(of_point):
    (one,) = of_point
    return bootstrap.given(Side(-one.test.scores, one.test.seeds, one.test.draws))


# --- its interval -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("stream", range(4))
def test_a_size_is_in_the_interval_where_the_difference_there_holds_zero(stream, paired):
    score, reference = point(0.7, stream), curve([0.5, 0.66, 0.74, 0.9], 10 * (stream + 1))
    found = worth(score, reference, paired=paired)
    low, high = found.low.outermost, found.high.outermost
    for size, (one,) in zip(SIZES, reference.points, strict=True):
        difference = bootstrap.compare(score[0].test, one.test, paired=paired, **HOW)
        assert (low <= size <= high) == (difference.low <= 0 <= difference.high)


@pytest.mark.parametrize(
    ("seeds", "paired"), [(pairs(4), True), (pairs(4), False), (tuple(product(range(3), repeat=2)), True)]
)
def test_at_its_ends_the_interval_of_the_difference_touches_zero(seeds, paired):
    score, reference = point(0.7, 1, seeds), curve([0.3, 0.6, 0.8, 1.1], 2, seeds)
    found = worth(score, reference, paired=paired)
    assert found.low.bound is found.high.bound is None
    bounds = []
    for end in (found.low, found.high):
        other = between(reference.points, place_of(end.number))
        difference = bootstrap.compare(score[0].test, other, paired=paired, **HOW)
        bounds.append((difference.low, difference.high))
    (low, _), (_, high) = bounds
    assert (low, high) == pytest.approx((0, 0), abs=2e-4)


def two_recipes(mean, stream):
    """Recipes of which validation does not know which is better."""
    recipes = [side(mean, 5 * stream), side(mean - 0.1, 5 * stream + 1)]
    validated = [side(0.7, 5 * stream + place, draws=VALIDATION) for place in (2, 3)]
    return [Candidate(test, one, one) for test, one in zip(recipes, validated, strict=True)]


def test_each_size_chooses_its_recipe_anew():
    score = two_recipes(0.7, 1)
    reference = Curve(SIZES, [two_recipes(mean, 10 + k) for k, mean in enumerate([0.3, 0.6, 0.75, 1.2])])
    found = worth(score, reference)
    low, high = found.low.outermost, found.high.outermost
    held = []
    for size, recipes in zip(SIZES, reference.points, strict=True):
        difference = bootstrap.compare_best(score, recipes, paired=True, **HOW)
        held.append(difference.low <= 0 <= difference.high)
        assert (low <= size <= high) == held[-1]
    assert True in held
    assert False in held
    # the choice makes the interval wider than recipes that are given
    chosen = [
        bootstrap.given(recipes[bootstrap.choice(recipes)].test) for recipes in (score, *reference.points)
    ]
    as_given = worth(chosen[0], Curve(SIZES, chosen[1:]))
    assert high / low > as_given.high.number / as_given.low.number


@pytest.mark.parametrize(
    ("seeds", "reason"),
    [
        (pairs(1), methods.ONE_SEED),
        (pairs(2), verdicts.FEW_SEEDS),
        (tuple(product(range(2), range(5))), verdicts.FEW_SEEDS),
    ],
)
def test_few_seeds_have_a_number_and_no_interval(seeds, reason):
    found = worth(point(0.75, 0, seeds), curve([0.6, 0.7, 0.8, 0.9], seeds=seeds))
    assert found.labels.number == pytest.approx(200 * 2**0.5)
    assert (found.low, found.high, found.no_interval) == (None, None, reason)


def test_scores_without_spread_have_no_interval():
    same = [bootstrap.given(Side(np.full((3, 60), mean), pairs(3), DRAWS)) for mean in (0.5, 0.75, 1.0)]
    found = worth(same[1], Curve((10, 40), [same[0], same[2]]))
    assert found.labels.number == pytest.approx(20)
    assert found.no_interval == methods.NO_SPREAD


def test_curves_that_are_none_are_errors():
    with pytest.raises(SeedbedError, match="two sizes or more, in order"):
        Curve((200, 100), [point(0.5), point(0.6)])
    with pytest.raises(SeedbedError, match="a score at each of its sizes"):
        Curve((100, 200), [point(0.5)])
    with pytest.raises(SeedbedError, match="the same seeds"):
        worth(point(0.7, seeds=pairs(3)), curve([0.6, 0.8]))


def test_the_coverage_on_record_is_that_of_the_interval_that_is_promised():
    """At least about 93%, and more where a curve is flat; 500 simulations have an error of 1."""
    with open(RESULTS / "sizes.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {int(row["seeds"]) for row in rows} == {3, 5, 10}
    for row in rows:
        assert float(row["coverage_percent"]) >= 92, row
        if row["true_labels"].isdigit() and row["curve"] != "flat":
            assert float(row["coverage_percent"]) <= 99, row


# --- one curve passes another, or reaches a target ----------------------------------------------------------


@pytest.mark.parametrize("paired", [True, False])
def test_a_curve_passes_another_where_their_difference_is_zero(paired):
    a, b = curve([0.3, 0.75, 1.2], 1), curve([0.6, 0.65, 0.7], 20)
    found = label_worth.passes(a, b, direction=1, paired=paired, **HOW)
    # differences of -0.3, 0.1 and 0.5
    assert found.labels.number == pytest.approx(100 * 2**0.75)
    ends = []
    for end in (found.low, found.high):
        place = place_of(end.number)
        difference = bootstrap.compare(
            between(a.points, place), between(b.points, place), paired=paired, **HOW
        )
        ends.append((difference.low, difference.high))
    (_, high), (low, _) = ends
    assert (low, high) == pytest.approx((0, 0), abs=2e-4)


def test_a_curve_that_falls_behind_does_not_pass_the_other():
    a, b = curve([0.9, 0.8, 0.7, 0.6]), curve([0.5, 0.6, 0.7, 0.8], stream=200)
    found = label_worth.passes(a, b, direction=1, paired=True, **HOW)
    assert (found.labels, found.high) == (Labels(800, MORE), Labels(800, MORE))
    # it is behind from where the other passes it, and the interval of that tells where this one begins
    behind = label_worth.passes(b, a, direction=1, paired=True, **HOW)
    assert behind.labels.number == pytest.approx(400)
    assert found.low.number == pytest.approx(behind.low.number, rel=1e-3)
    assert 100 < found.low.number < 400


def test_curves_of_other_sizes_do_not_pass_each_other():
    with pytest.raises(SeedbedError, match="the same sizes"):
        label_worth.passes(curve([0.5, 0.6]), curve([0.5, 0.6, 0.7]), direction=1, paired=True, **HOW)


def test_a_curve_reaches_a_target_where_the_interval_of_its_mean_does():
    reference = curve([0.3, 0.6, 0.9, 1.2])
    found = label_worth.reaches(reference, 0.75, direction=1, **HOW)
    assert found.labels.number == pytest.approx(200 * 2**0.5)
    low, high = (
        bootstrap.describe(between(reference.points, place_of(end.number)), **HOW)
        for end in (found.low, found.high)
    )
    assert (low.high, high.low) == pytest.approx((0.75, 0.75), abs=2e-4)
    loss = Curve(SIZES, [flipped(of_size) for of_size in reference.points])
    assert label_worth.reaches(loss, -0.75, direction=-1, **HOW) == found


# --- beyond the sizes ---------------------------------------------------------------------------------------


def law(size):
    return 0.9 - 0.4 * (size / 100) ** -0.5


def extrapolated(means, target, spread=0.01):
    found = label_worth.reaches(curve(means, spread=spread), target, direction=1, extrapolate=True, **HOW)
    assert found.labels == Labels(800, MORE)
    return found.extrapolated


def test_an_exact_power_law_is_found_and_extrapolated():
    means = [law(size) for size in SIZES]
    fitted = label_worth.power_law(np.array(SIZES, dtype=float), np.array(means))
    assert (fitted.limit, fitted.drop, fitted.rate) == pytest.approx((0.9, 0.4, 0.5), rel=1e-3)
    found = extrapolated(means, law(1600), spread=0.001)
    assert found.labels.number == pytest.approx(1600, rel=1e-2)
    assert found.low.number <= found.labels.number <= found.high.number
    assert found.why_not is None


def test_where_a_curve_reaches_the_score_nothing_is_extrapolated():
    reference = curve([law(size) for size in SIZES])
    found = label_worth.reaches(reference, 0.6, direction=1, extrapolate=True, **HOW)
    assert found.labels.bound is None
    assert found.extrapolated is None


@pytest.mark.parametrize(
    ("means", "target", "reason"),
    [
        ([0.5, 0.6, 0.7], 5.0, label_worth.FEW_SIZES),
        ([0.8, 0.7, 0.7, 0.7], 5.0, label_worth.NOT_RISING),
        ([0.1, 0.11, 0.15, 0.9], 5.0, label_worth.NO_FIT),
        ([law(size) for size in SIZES], 0.95, label_worth.LEVELS_OFF),
    ],
)
def test_it_is_said_why_there_is_no_extrapolation(means, target, reason):
    reference = curve(means)
    found = label_worth.reaches(reference, target, direction=1, extrapolate=True, **HOW)
    assert found.extrapolated == label_worth.Extrapolated(why_not=reason)


def test_an_extrapolation_does_not_go_on_forever():
    found = extrapolated([law(size) for size in SIZES], 0.8999)
    assert found.labels == Labels(80_000, MORE)
