"""Whether a question needs more seeds: each state, and the chance of endless seeds against simulation."""

import math

import numpy as np
import pytest
from builders_rows import run_row, summary_row
from scipy import stats

from seedbed.analysis.experiment import Experiment
from seedbed.analysis.planning import Design, Variances
from seedbed.analysis.stopping import chance_of_endless_seeds, decision, standings
from seedbed.analysis.verdicts import direction
from seedbed.config.stages import asked

LOOKS = [3, 5, 10]


def experiment(**row) -> Experiment:
    """Pretrained against random with 5 seeds a side on 400 texts; `row` has columns of contrasts.csv."""
    told = {
        "family": "init", "dataset": "reviews", "model": "small", "dataset_b": "reviews", "model_b": "small",
        "metric": "accuracy", "test_set": "all", "selection": "equal", "recipe_a": "lab", "recipe_b": "lab",
        "a": "fairseq/pretrained", "b": "fairseq/random", "n_a": 5, "n_b": 5, "delta": 0.03,
        "ci_low": -0.01, "ci_high": 0.07, "t_low": -0.01, "t_high": 0.07, "p_value": 0.2, "no_verdict": None,
        "se_seeds": 0.01, "se_examples": 0.01, "look": 2, "looks": 3,
    } | row  # fmt: skip
    told["direction"] = direction(told["ci_low"], told["ci_high"])
    runs = [
        run_row(init=init, init_seed=seed, data_seed=seed, test_examples=400, collapsed=False)
        for init in ("pretrained", "random")
        for seed in range(5)
    ]
    reporting = {
        "statistics": {"confidence": 0.95, "power": 0.8, "difference_of_interest": 0.02},
        "recipes": {"lab": {"family": "lab", "swept": {}}},
        "grid": {"datasets": ["reviews"]},
        "datasets": {"reviews": {"task": "classification"}},
        "until": {"looks": LOOKS},
    }
    return Experiment(runs, [summary_row()], [told], reporting)


@pytest.mark.parametrize(
    ("row", "state", "following"),
    [
        ({"ci_low": 0.01}, "decided", 10),
        ({"ci_low": -0.09, "ci_high": -0.01, "delta": -0.05}, "decided", 10),
        ({"ci_low": -0.01, "ci_high": 0.015, "delta": 0.002}, "decided", 10),  # smaller than of interest
        ({}, "open", 10),
        ({"n_a": 10, "n_b": 10, "look": 3}, "ended", None),
        ({"no_verdict": "a collapse", "ci_low": 0.01}, "open", 10),
        ({"no_verdict": "nothing learned"}, "broken", 10),
        ({"delta": None, "ci_low": None, "ci_high": None, "t_low": None, "t_high": None}, "broken", 10),
        # endless seeds would leave this as it is: between zero and what the test texts can tell
        ({"se_seeds": 0.001, "se_examples": 0.03}, "futile", 10),
    ],
)
def test_each_state_of_a_question(row, state, following):
    (found,) = standings(experiment(**row))
    assert (found.state, found.following) == (state, following)
    assert found.question == "reviews/small/fairseq/lab"


def test_a_futile_question_says_how_many_examples_it_takes():
    (found,) = standings(experiment(se_seeds=0.001, se_examples=0.03))
    assert found.chance < 0.1
    # with so many examples endless seeds find 2 points with a power of 80%, at the level of the last look
    design = Design(Variances(0.0, 400 * 0.03**2, 0.0, 1), found.examples, 0.95, 0.8)
    assert design.floor < 0.02
    assert found.examples > 400 * (0.03 * 2.8 / 0.02) ** 2


def test_an_experiment_of_a_fixed_number_of_seeds_has_no_standing():
    found = experiment()
    del found.reporting["until"]
    assert standings(found) == []


@pytest.mark.parametrize("interest", [0.0, 0.02, 0.05])
@pytest.mark.parametrize(("delta", "se_seeds", "se_examples"), [(0.03, 0.01, 0.01), (0.0, 0.02, 0.01)])
def test_the_chance_of_endless_seeds_is_that_of_a_simulation(delta, se_seeds, se_examples, interest):
    shown = delta + se_seeds * np.random.default_rng(0).standard_t(4, 400_000)
    half = stats.norm.isf(0.025) * se_examples
    decides = (np.abs(shown) > half) | (np.abs(shown) + half < interest)
    chance = chance_of_endless_seeds(
        delta, se_seeds, se_examples, degrees=4, interest=interest, confidence=0.95
    )
    assert chance == pytest.approx(decides.mean(), abs=0.003)


def test_without_spread_of_seeds_the_chance_is_all_or_nothing():
    def chance(delta):
        return chance_of_endless_seeds(delta, 0.0, 0.01, degrees=4, interest=0.0, confidence=0.95)

    assert (chance(0.01), chance(0.03)) == (0.0, 1.0)
    assert not math.isnan(chance(0.0))


@pytest.mark.parametrize(("row", "finished", "following"), [({"ci_low": 0.01}, True, 5), ({}, False, 10)])
def test_a_decision_names_the_seeds_of_the_next_look(row, finished, following):
    found = experiment(**row)
    decided = decision(found, found.reporting)
    (question,) = decided["questions"].values()
    assert (decided["finished"], question["now"], question["next"]) == (
        finished,
        {"seeds": 5},
        {"seeds": following},
    )
    assert decided["asked"] == asked(found.reporting)
