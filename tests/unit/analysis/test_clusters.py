"""Clusters of examples: resampled whole, by hand, by simulation, and in the tables of an experiment."""

import numpy as np
import pytest
from synthetic import edit_json, hash_of, make_experiment, make_generation

from seedbed.analysis import bootstrap
from seedbed.analysis.answers import VALUES, CellAnswers
from seedbed.analysis.bootstrap import Draws, Side
from seedbed.analysis.comparison import compare_experiments
from seedbed.analysis.predictions import CellPredictions, group_scores, numbered
from seedbed.core.errors import SeedbedError

SIZES = {"validation": 60, "test": 200}
SETTINGS = {"confidence": 0.95, "replicates": 500, "bootstrap_seed": 0}


def cell(correct, groups=None) -> CellPredictions:
    """Predictions of two classes, right where `correct`; the loss is 0 there, else 1."""
    correct = np.asarray(correct, dtype=bool)
    ids = tuple(f"test-{index}" for index in range(correct.shape[1]))
    labels = np.zeros(correct.shape[1], dtype=np.int16)
    loss = np.where(correct, 0.0, 1.0).astype(np.float32)
    predicted = np.where(correct, 0, 1).astype(np.int16)
    groups = None if groups is None else numbered(np.array(groups, dtype=object))
    return CellPredictions(("a", "b"), ids, labels, predicted, np.ones_like(loss), loss, clusters=groups)


def compare(a, b, replicates=500):
    draws = Draws(a.shape[1], replicates, 0)
    seeds = tuple((seed, seed) for seed in range(len(a)))
    sides = Side(a, seeds, draws), Side(b, seeds, draws)
    return bootstrap.compare(*sides, paired=True, confidence=0.95, seed=0)


# --- scores -------------------------------------------------------------------------------------------------


def test_scores_of_clusters_by_hand():
    # clusters of 2, 1 and 3 examples with 2, 0 and 1 right ones: half of six, two examples a cluster
    found = cell([[1, 1, 0, 1, 0, 0]], "xxyzzz").scores("accuracy")
    expected = [0.5 + (2 - 1) / 2, 0.5 + (0 - 0.5) / 2, 0.5 + (1 - 1.5) / 2]
    assert found.dtype == np.float32
    assert found.tolist() == [pytest.approx(expected)]
    assert found.mean() == pytest.approx(0.5)


def test_the_variance_of_a_difference_over_clusters_by_hand():
    # both seeds alike, so that all variance is that of the clusters: the sum of squares of S - R n, over
    # C (C - 1) mean(n)^2
    right, wrong = [[1, 1, 0, 1, 0, 0]] * 2, [[0] * 6] * 2
    found = compare(*(cell(of, "xxyzzz").scores("accuracy") for of in (right, wrong)))
    variance = ((2 - 1) ** 2 + (0 - 0.5) ** 2 + (1 - 1.5) ** 2) / (3 * 2 * 2**2)
    assert found.delta == pytest.approx(0.5)
    assert found.spread.whole == pytest.approx(variance) == pytest.approx(0.0625)


@pytest.mark.parametrize("metric", ["accuracy", "loss"])
def test_clusters_of_one_example_are_examples(metric):
    correct = np.random.default_rng(0).random((3, 40)) < 0.7
    plain, clustered = cell(correct), cell(correct, [f"author {index}" for index in range(40)])
    assert np.array_equal(clustered.scores(metric), plain.scores(metric))
    scores = plain.scores(metric).astype(float)
    assert group_scores(scores, np.ones(40), np.arange(40)) == pytest.approx(scores, abs=1e-7)


def test_the_clusters_of_kept_examples_are_numbered_anew():
    kept = cell([[1, 1, 0, 1, 0, 0]], "xxyzzz").keep(np.array([False, False, True, True, False, True]))
    assert kept.clusters.tolist() == [0, 1, 1]
    assert kept.scores("accuracy").shape == (1, 2)
    assert cell([[1, 0]]).keep(np.array([True, False])).clusters is None


def test_an_example_without_a_cluster_is_named():
    found = cell([[1, 0]]).clustered({"test-0": "Zola", "test-1": "Zola", "test-2": "Sand"})
    assert found.clusters.tolist() == [0, 0]
    with pytest.raises(SeedbedError, match="has no cluster") as caught:
        cell([[1, 0]]).clustered({"test-0": "Zola"})
    assert caught.value.found == "test-1"


def test_clusters_of_questions_are_joined_by_texts():
    values = {name: np.array([[1.0, 1.0, 0.0, 1.0, 0.0, 0.0]]) for name in VALUES}
    ids = tuple(f"test-{index}" for index in range(6))
    answers = CellAnswers(
        ids, ids, np.ones(6, dtype=np.int64), values, np.array([False]), np.array([0, 1, 1, 2, 3, 4])
    )
    topics = dict(zip(ids, ("art", "art", "war", "sea", "sea", "sea"), strict=True))
    found = answers.clustered(topics)
    assert found.clusters.tolist() == [0, 0, 0, 1, 1, 1]  # one text is about art and war
    assert found.scores("exact_match").tolist() == [[pytest.approx(2 / 3), pytest.approx(1 / 3)]]
    assert found.scores("loss").shape == (1, 2)
    assert answers.scores("exact_match").shape == (1, 5)
    kept = found.keep(np.array([True, False, False, True, True, True]))
    assert (kept.clusters.tolist(), kept.groups.tolist()) == ([0, 1, 1, 1], [0, 1, 2, 3])
    assert answers.sharing(found).clusters is found.clusters
    assert found.same_examples(answers)


# --- coverage -----------------------------------------------------------------------------------------------


def test_intervals_that_ignore_clusters_are_too_narrow():
    """Differences of the sides have a part of their own in each cluster, whose mean over all is zero."""
    draw = np.random.default_rng(0)
    experiments = 300
    widths, held = {True: [], False: []}, {True: 0, False: 0}
    for _ in range(experiments):
        groups = np.repeat(np.arange(60), draw.integers(1, 12, 60))
        own = draw.normal(0, 0.3, 60)[groups]
        base = draw.normal(0, 0.5, len(groups))
        a, b = (base + sign * own / 2 + draw.normal(0, 0.3, (3, len(groups))) > 0 for sign in (1, -1))
        for clustered in (True, False):
            of = groups.tolist() if clustered else None
            found = compare(*(cell(side, of).scores("accuracy") for side in (a, b)), replicates=200)
            widths[clustered].append(found.high - found.low)
            held[clustered] += found.low <= 0 <= found.high
    assert np.mean(widths[True]) > 1.2 * np.mean(widths[False])
    assert 0.92 <= held[True] / experiments <= 0.985
    assert held[False] / experiments < 0.88


# --- tables -------------------------------------------------------------------------------------------------


def clusters_of(size: int) -> dict[str, dict[str, list[str]]]:
    """Examples in clusters of one size, each of examples that are about as hard."""
    found = {}
    for split, count in SIZES.items():
        hard = np.random.default_rng(hash_of(f"reviews {split} hard")).normal(size=count)
        order = np.argsort(hard).tolist()
        found[split] = {
            f"author {first}": [f"{split}-{index}" for index in order[first : first + size]]
            for first in range(0, count, size)
        }
    return found


def tables_of(folder, **options):
    options = {"sizes": SIZES, "frameworks": ["fairseq"], "seeds": [0, 1, 2], **options}
    return make_experiment(folder, **options).aggregate()


def test_tables_with_clusters_of_one_example_are_those_without(tmp_path):
    plain = tables_of(tmp_path / "plain", leaked=["test-1", "test-2"])
    alone = tables_of(tmp_path / "alone", leaked=["test-1", "test-2"], clusters=clusters_of(1))
    assert alone == plain


def test_intervals_of_tables_resample_clusters(tmp_path):
    recipe = {"recipe": {"sweep": {"learning_rate": [1e-5, 1e-4]}}}
    plain = tables_of(tmp_path / "plain", leaked=["test-1", "test-2"], **recipe)
    wide = tables_of(tmp_path / "wide", leaked=["test-1", "test-2"], clusters=clusters_of(10), **recipe)
    assert wide["runs"] == plain["runs"]
    assert wide["confusion"] == plain["confusion"]
    assert [row["test_set"] for row in wide["contrasts"]].count("without leaks")
    for narrow, row in zip(plain["contrasts"], wide["contrasts"], strict=True):
        assert row["delta"] == pytest.approx(narrow["delta"], abs=1e-6)
        if row["selection"] == "equal":
            assert row["se_examples"] > narrow["se_examples"]
            assert row["ci_high"] - row["ci_low"] > narrow["ci_high"] - narrow["ci_low"]


def test_intervals_of_answers_resample_clusters(tmp_path):
    ids = {split: [f"{split}-{index}" for index in range(size)] for split, size in SIZES.items()}
    clusters = {
        split: {f"topic {first}": names[first : first + 10] for first in range(0, len(names), 10)}
        for split, names in ids.items()
    }
    options = {"sizes": SIZES, "methods": ("lora", "full"), "seeds": [0, 1, 2], "leaked": ["test-1"]}
    plain = make_generation(tmp_path / "plain", **options).aggregate()
    found = make_generation(tmp_path / "clustered", **options, clusters=clusters).aggregate()
    assert found["runs"] == plain["runs"]
    for row, other in zip(found["contrasts"], plain["contrasts"], strict=True):
        assert row["delta"] == pytest.approx(other["delta"], abs=1e-6)
        assert row["ci_low"] != other["ci_low"]


def test_a_run_of_other_examples_than_the_clusters(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, clusters=clusters_of(10), frameworks=["fairseq"])
    path = made.plan.results / "data/reviews/splits.json"
    edit_json(path, lambda document: document["clusters"]["test"].pop("author 20"))
    with pytest.raises(SeedbedError, match="an example of the predictions has no cluster"):
        made.aggregate()


# --- two experiments ----------------------------------------------------------------------------------------


def finished(folder, name, **options):
    made = make_experiment(folder / f"results_of_{name}", sizes=SIZES, frameworks=["fairseq"], **options)
    made.aggregate()
    return made.experiment.rename(made.experiment.with_name(name))


def widths(comparison):
    return [row["ci_high"] - row["ci_low"] for row in comparison.differences]


def test_a_comparison_resamples_the_clusters_that_either_experiment_has(tmp_path):
    x, y = (finished(tmp_path, name, noise=noise) for name, noise in (("x", 0.012), ("y", 0.02)))
    of_x, of_y = (
        finished(tmp_path, f"clustered_{name}", noise=noise, clusters=clusters_of(10))
        for name, noise in (("x", 0.012), ("y", 0.02))
    )
    plain, both, one, other = (
        compare_experiments(*pair, SETTINGS) for pair in ((x, y), (of_x, of_y), (of_x, y), (x, of_y))
    )
    assert widths(both) == widths(one) == widths(other)
    assert all(row["same_examples"] and row["paired"] for row in one.differences)
    assert widths(both) != widths(plain)
