"""The settings of statistics without the config's classes: the same defaults, the same limits."""

import pytest

from seedbed.config.settings import Statistics
from seedbed.config.validation import as_written, complete
from seedbed.core.errors import SeedbedError
from seedbed.core.statistics_settings import complete_settings


def test_the_defaults_are_those_of_the_config():
    assert complete_settings({}) == as_written(Statistics())
    given = {"confidence": 0.9, "equivalence_margin": {"random": 0.05}}
    found = complete_settings(given)
    assert found["confidence"] == 0.9
    assert found["equivalence_margin"] == {"pretrained": 0.01, "random": 0.05}


@pytest.mark.parametrize(
    "given",
    [
        {"confidence": 1.0},
        {"confidence": float("nan")},
        {"confidence": "95%"},
        {"replicates": 99},
        {"replicates": 1000.5},
        {"bootstrap_seed": -1},
        {"difference_of_interest": 0.0},
        {"equivalence_margin": {"pretrained": 2.0}},
        {"level": 0.95},
    ],
)
def test_what_the_config_refuses_is_refused_at_the_same_place(given):
    with pytest.raises(SeedbedError) as own:
        complete_settings(given)
    with pytest.raises(SeedbedError) as of_config:
        complete(Statistics, given, where="statistics.", what="statistics")
    assert own.value.where == of_config.value.where
    assert own.value.hint
