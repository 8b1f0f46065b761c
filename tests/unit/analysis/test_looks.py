"""Levels of looks, against published boundaries and by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from seedbed.analysis.looks import look_at, nominal_levels


def pocock(fraction, alpha):
    return alpha * math.log(1 + (math.e - 1) * fraction)


def obrien_fleming(fraction, alpha):
    return 4 * stats.norm.sf(stats.norm.isf(alpha / 4) / math.sqrt(fraction))


@pytest.mark.parametrize(
    ("spending", "boundaries"),
    [
        # Lan and DeMets' boundaries for five equal looks at 5%, as R's ldbounds has them
        (pocock, (2.438, 2.427, 2.410, 2.397, 2.386)),
        (obrien_fleming, (4.877, 3.357, 2.680, 2.290, 2.031)),
    ],
)
def test_boundaries_are_those_that_are_published(spending, boundaries):
    levels = nominal_levels((0.2, 0.4, 0.6, 0.8, 1.0), 0.05, spending)
    assert stats.norm.isf(np.array(levels) / 2) == pytest.approx(boundaries, abs=6e-4)


def test_one_look_has_all_of_alpha():
    look = look_at(5, [5], 0.9)
    assert (look.number, look.of, look.level) == (1, 1, pytest.approx(0.1))
    assert look.adjusted(0.03) == pytest.approx(0.03)


@pytest.mark.parametrize("looks", [(3, 5, 10, 17, 25), (3, 4), tuple(range(3, 26))])
def test_all_looks_together_have_the_error_rate_that_is_asked(looks):
    """Means of independent normal values, which is what the levels are made for."""
    values = np.random.default_rng(0).standard_normal((200_000, looks[-1])).cumsum(axis=1)
    levels = [look_at(seeds, looks, 0.95).level for seeds in looks]
    beyond = [
        np.abs(values[:, seeds - 1]) / math.sqrt(seeds) > stats.norm.isf(level / 2)
        for seeds, level in zip(looks, levels, strict=True)
    ]
    assert np.any(beyond, axis=0).mean() == pytest.approx(0.05, abs=0.002)


def test_a_p_at_the_level_of_its_look_is_alpha():
    look = look_at(5, (3, 5, 10), 0.95)
    assert look.adjusted(look.level) == pytest.approx(0.05)
    assert look.confidence == 1 - look.level
    assert look.adjusted(0.9) == 1
    assert look_at(4, (3, 5, 10), 0.95) is None
