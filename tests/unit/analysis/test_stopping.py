"""Whether a question needs more seeds: each state, and the chance of endless seeds against simulation."""

import math

import numpy as np
import pytest
from builders_growing import growing
from scipy import stats

from seedbed.analysis.planning import Design, Variances
from seedbed.analysis.stopping import chance_of_endless_seeds, decision, standings
from seedbed.config.stages import asked


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
    (found,) = standings(growing(**row))
    assert (found.state, found.following) == (state, following)
    assert found.question == "reviews/small/fairseq/lab"


def test_a_futile_question_says_how_many_examples_it_takes():
    (found,) = standings(growing(se_seeds=0.001, se_examples=0.03))
    assert found.chance < 0.1
    # with so many examples endless seeds find 2 points with a power of 80%, at the level of the last look
    design = Design(Variances(0.0, 400 * 0.03**2, 0.0, 1), found.examples, 0.95, 0.8)
    assert design.floor < 0.02
    assert found.examples > 400 * (0.03 * 2.8 / 0.02) ** 2


def test_an_experiment_of_a_fixed_number_of_seeds_has_no_standing():
    found = growing()
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
    found = growing(**row)
    decided = decision(found, found.reporting)
    (question,) = decided["questions"].values()
    assert (decided["finished"], question["now"], question["next"]) == (
        finished,
        {"seeds": 5},
        {"seeds": following},
    )
    assert decided["asked"] == asked(found.reporting)
