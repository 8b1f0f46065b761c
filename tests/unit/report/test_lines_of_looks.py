"""Looks in the opening of a report: where a question stands, what the looks cost, and what to do next."""

from dataclasses import replace

import pytest
from builders_growing import growing

from seedbed.analysis.ranges import RangeStanding
from seedbed.report.answer import of_inits
from seedbed.report.limits import SIMULATED_LOOKS, told_apart
from seedbed.report.looks import looks
from seedbed.report.next_step import next_step
from seedbed.report.opening import opening


@pytest.fixture
def asked_of():
    """The only question of an experiment."""
    return lambda experiment: of_inits(experiment)[0]


FUTILE = {"se_seeds": 0.001, "se_examples": 0.03}
LAST = {"n_a": 10, "n_b": 10, "look": 3}


@pytest.mark.parametrize(
    ("row", "step", "about"),
    [
        ({}, "look", [10]),
        ({"no_verdict": "a collapse", "ci_low": 0.01}, "look", [10]),
        (LAST, "last_look", None),
        ({"no_verdict": "nothing learned"}, "unlearned", ...),
    ],
)
def test_what_to_do_next_at_a_look(asked_of, row, step, about):
    found = next_step(asked_of(growing(**row)))
    assert found.kind == step
    assert about is ... or found.about == about


def test_a_futile_question_asks_for_test_texts(asked_of):
    found = growing(**FUTILE)
    (looked,) = looks(asked_of(found)).looked
    step = next_step(asked_of(found))
    assert (step.kind, step.about) == ("futile", looked.standing.examples)


def test_the_width_is_relative_to_a_number_fixed_before(asked_of):
    told = looks(asked_of(growing(fixed_low=0.0, fixed_high=0.05)))
    assert told.widths == [pytest.approx(0.08 / 0.05)]


def test_frameworks_are_named_where_they_do_not_stand_alike(asked_of):
    found = growing()
    (row,) = found.contrasts
    other = {**row, "ci_low": 0.01, "direction": "higher"}
    alike, apart = (
        looks(replace(asked_of(found), rows={"fairseq": row, "transformers": each})).looked
        for each in (dict(row), other)
    )
    assert [one.name for one in alike] == [""]
    assert [(one.name, one.standing.state) for one in apart] == [
        ("fairseq", "open"),
        ("Transformers", "decided"),
    ]


def test_the_opening_has_a_line_of_looks_only_where_there_are_some():
    found = growing(ci_low=0.01)
    (group,) = opening(found).groups
    assert [line.kind for line in group.lines][:2] == ["answer", "looks"]
    del found.reporting["until"]
    (group,) = opening(found).groups
    assert "looks" not in [line.kind for line in group.lines]


def test_error_rates_are_told_of_the_looks_that_were_simulated():
    low, high = told_apart(0.95, SIMULATED_LOOKS)
    assert low < high < told_apart(0.95, [])[1]
    assert told_apart(0.95, (3, 5, 8)) is None
    assert told_apart(0.9, SIMULATED_LOOKS) is None


def test_a_range_that_widens_comes_before_seeds(asked_of, monkeypatch):
    """Looks count once the ranges rest."""
    widening = RangeStanding("widening", {}, {"random": [1, 2, 3]}, {"random": [1, 2, 3, 4]})
    found = {"reviews/small/fairseq/lab": widening, "others/small/fairseq/lab": widening}
    monkeypatch.setattr("seedbed.report.next_step.range_standings", lambda experiment: found)
    step = next_step(asked_of(growing()))
    assert (step.kind, step.about) == ("values", 4)
