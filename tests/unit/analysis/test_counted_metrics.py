"""Metrics of counts in the Multi-Bootstrap: linearised scores, and exact replicates."""

import numpy as np
import pytest

from seedbed.analysis import bootstrap
from seedbed.analysis.predictions import CellPredictions, numbered
from seedbed.analysis.sides import SideMaker, combine, only_seeds
from seedbed.core import class_metrics

METRICS = ("macro_f1", "balanced_accuracy", "mcc", "f1_of_rare")
NAMES = ("often", "sometimes", "rare")
SETTINGS = {"replicates": 400, "bootstrap_seed": 0}
SEEDS = ((2, 2), (0, 0), (1, 1))  # as runs may stand, unsorted


def make_cell(seed=0, examples=300, missing=0.0, clusters=None):
    """Three seeds' predictions of three classes, of which one has 6% of the examples."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, examples, p=(0.7, 0.24, 0.06)).astype(np.int16)
    others = rng.choice(3, (3, examples), p=(0.6, 0.3, 0.1))
    predicted = np.where(rng.random((3, examples)) < 0.7, labels, others).astype(np.int16)
    predicted[rng.random((3, examples)) < missing] = -1
    shape = predicted.shape
    ids = tuple(f"test-{index}" for index in range(examples))
    cell = CellPredictions(NAMES, ids, labels, predicted, np.ones(shape), np.ones(shape))
    if clusters is None:
        return cell
    return cell.clustered({name: f"author {index % clusters}" for index, name in enumerate(ids)})


def side_of(cell, metric):
    return SideMaker(SETTINGS).side(cell, metric, SEEDS, "test")


@pytest.mark.parametrize("clusters", [None, 70])
@pytest.mark.parametrize("metric", METRICS)
def test_scores_have_the_metric_as_their_mean(metric, clusters):
    cell = make_cell(missing=0.02, clusters=clusters)
    np.testing.assert_allclose(cell.scores(metric).mean(axis=1), cell.measured(metric), rtol=1e-6)


@pytest.mark.parametrize("clusters", [None, 70])
@pytest.mark.parametrize("metric", METRICS)
def test_replicates_are_the_metric_of_the_resampled_examples(metric, clusters):
    cell = make_cell(missing=0.02, clusters=clusters)
    side = side_of(cell, metric)
    groups = numbered(np.arange(300)) if clusters is None else cell.clusters
    counts = np.concatenate(list(side.draws._counts()))
    assert side.seeds == ((0, 0), (1, 1), (2, 2))
    for replicate in range(0, SETTINGS["replicates"], 40):
        drawn = np.repeat(np.arange(300), counts[replicate][groups])
        # the rows of the cell are in the order of SEEDS, those of the side in that of sorted seeds
        resampled = class_metrics.count(cell.labels[drawn], cell.predicted[[1, 2, 0]][:, drawn], 3)
        np.testing.assert_allclose(
            side.means[replicate], class_metrics.value(metric, resampled, NAMES), rtol=1e-6
        )


@pytest.mark.parametrize("clusters", [None, 70])
@pytest.mark.parametrize("metric", METRICS)
def test_scores_spread_as_the_metric_does_over_resampled_examples(metric, clusters):
    cell = make_cell(examples=3000, clusters=clusters and 10 * clusters)
    side = SideMaker({**SETTINGS, "replicates": 2000}).side(cell, metric, SEEDS, "test")
    by_scores = side.scores.std(axis=1, ddof=1) / np.sqrt(side.scores.shape[1])
    # 2,000 replicates tell a standard deviation to 1.6%
    np.testing.assert_allclose(side.means.std(axis=0), by_scores, rtol=0.08)


def test_f1_of_a_class_goes_by_what_runs_call_it():
    cell = make_cell()
    renamed = cell.called(["häufig", "manchmal", "selten"]).called(["a", "b", "c"])
    assert renamed.names == ("a", "b", "c")
    assert renamed.measured("f1_of_rare") == cell.measured("f1_of_rare")
    np.testing.assert_array_equal(renamed.scores("f1_of_rare"), cell.scores("f1_of_rare"))


def test_a_run_of_one_class_has_no_correlation_and_no_spread():
    cell = make_cell()
    cell.predicted[0] = 0
    assert cell.measured("mcc")[0] == 0.0
    assert not cell.scores("mcc")[0].any()
    side = side_of(cell, "mcc")
    assert not side.means[:, side.seeds.index(SEEDS[0])].any()


def test_sums_of_sides_and_some_of_their_seeds_resample_the_metric_itself():
    a, b = (side_of(make_cell(seed), "macro_f1") for seed in (0, 1))
    b = bootstrap.Side(b.scores, b.seeds, a.draws, lambda means=b.means: means)
    np.testing.assert_allclose(combine(a, b, -1).means, a.means - b.means)
    assert np.array_equal(only_seeds(a, [(1, 1), (2, 2)]).means, a.means[:, 1:])


def test_a_choice_of_recipes_goes_by_the_metric():
    maker, seeds = SideMaker(SETTINGS), SEEDS
    good, bad = make_cell(0), make_cell(1)
    bad.predicted[:] = 0  # the largest class has 70%: a good accuracy, and a bad macro-F1
    candidates = [
        bootstrap.Candidate(
            *(maker.side(cell, "macro_f1", seeds, split) for split in ("test", "valid", "valid"))
        )
        for cell in (bad, good)
    ]
    assert bootstrap.choice(candidates) == 1
    assert bootstrap.choice_shares(candidates, seed=0) == [0.0, 1.0]
    found = bootstrap.compare_best(candidates, candidates[:1], paired=True, confidence=0.95, seed=0)
    assert found.low > 0
