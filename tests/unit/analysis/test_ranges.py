"""Ranges of sweeps that grow until the best value of each side lies inside."""

import pytest
from builders_growing import growing
from builders_rows import run_row, summary_row

from seedbed.analysis.experiment import Experiment
from seedbed.analysis.ranges import Choice, range_standing, range_standings
from seedbed.analysis.stopping import decision, told

POSSIBLE = [1, 3, 9, 27, 81, 243, 729]
QUESTION = "reviews/small/fairseq/lab"


def choice(values, chosen, shares=None):
    """A side that chose a value, if not told otherwise in all resampled choices."""
    return Choice(values, chosen, shares or [float(value == chosen) for value in values])


FIRST = [9, 27, 81]


@pytest.mark.parametrize(
    ("pretrained", "random", "state", "following"),
    [
        # inside
        (choice(FIRST, 27), choice(FIRST, 27), "interior", (FIRST, FIRST)),
        (choice(FIRST, 27, [0.25, 0.5, 0.25]), choice(FIRST, 27), "interior", (FIRST, FIRST)),
        # a side at an edge; the other gets a value where it is nearest to choosing
        (choice(FIRST, 9), choice(FIRST, 81), "widening", ([3, *FIRST], [*FIRST, 243])),
        (choice(FIRST, 81), choice(FIRST, 27, [0.2, 0.7, 0.1]), "widening", ([*FIRST, 243], [3, *FIRST])),
        (choice(FIRST, 81), choice(FIRST, 27, [0.1, 0.7, 0.2]), "widening", ([*FIRST, 243], [*FIRST, 243])),
        (choice([3, *FIRST], 3), choice([3, *FIRST], 27), "widening", ([1, 3, *FIRST], [3, *FIRST, 243])),
        # the choice inside, too large a share of the resampled ones at an edge
        (choice(FIRST, 27, [0.3, 0.7, 0.0]), choice(FIRST, 27), "widening", ([3, *FIRST], None)),
        # the choice at one edge counts more than a larger share at the other
        (choice(FIRST, 9, [0.4, 0.1, 0.5]), choice(FIRST, 27), "widening", ([3, *FIRST], None)),
        # at most five values, and none below 1
        (choice([3, *FIRST, 243], 3), choice([3, *FIRST, 243], 27), "ended", ([3, *FIRST, 243],) * 2),
        (choice([1, 3, *FIRST], 1), choice([3, *FIRST, 243], 27), "ended", ([1, 3, *FIRST], None)),
        (choice([1, 3, 9, 27], 1), choice([1, 3, 9, 27], 9), "ended", ([1, 3, 9, 27],) * 2),
    ],
)  # fmt: skip
def test_each_state_of_a_range(pretrained, random, state, following):
    found = range_standing({"pretrained": pretrained, "random": random}, POSSIBLE, 5)
    assert found.state == state
    assert found.now == {"pretrained": pretrained.values, "random": random.values}
    assert found.following["pretrained"] == following[0]
    assert following[1] is None or found.following["random"] == following[1]
    assert len({len(values) for values in found.following.values()}) == 1


def test_equal_values_rest_at_five():
    for number in (3, 4, 5):
        values = POSSIBLE[1 : 1 + number]
        flat = Choice(values, values[1], [1 / number] * number)
        state = range_standing({"pretrained": flat, "random": flat}, POSSIBLE, 8).state
        assert state == ("interior" if number > 3 else "widening")


def test_a_side_grows_step_by_step_until_its_best_lies_inside():
    """Sides whose best values are known, followed through all stages."""
    best = {"pretrained": 3, "random": 243}
    values = {init: list(FIRST) for init in best}
    states = []
    while states[-1:] in ([], ["widening"]):
        choices = {
            init: choice(tried, min(tried, key=lambda value, init=init: abs(value - best[init])))
            for init, tried in values.items()
        }
        found = range_standing(choices, POSSIBLE, 8)
        states.append(found.state)
        values = found.following
    assert states == ["widening", "widening", "interior"]
    assert values == {"pretrained": [1, 3, 9, 27, 81], "random": [9, 27, 81, 243, 729]}


# --- from the tables of an experiment ---

RATES = (1e-5, 3e-5, 9e-5)


def experiment(chosen, shares, **reporting):
    """Both inits at three learning rates; `chosen` and `shares` are those of the checkpoint."""
    names = {f"lab.{rate}": rate for rate in RATES}
    summary = []
    for init in ("pretrained", "random"):
        places = dict(zip(names, shares if init == "pretrained" else (0.0, 1.0, 0.0), strict=True))
        best = f"lab.{chosen if init == 'pretrained' else 3e-5}"
        for selection, recipes in (("equal", list(names)), ("best", [best])):
            summary += [
                summary_row(init=init, recipe=name, selection=selection, chosen_share=places[name])
                for name in recipes
            ]
    return Experiment(
        [run_row(recipe=name) for name in names],
        summary,
        [],
        {
            "statistics": {"confidence": 0.95, "power": 0.8, "difference_of_interest": 0.02},
            "recipes": {
                name: {"family": "lab", "swept": {"learning_rate": rate}} for name, rate in names.items()
            },
            "grid": {"datasets": ["reviews"]},
            "datasets": {"reviews": {"task": "classification"}},
            "ranges": {
                "lab": {"key": "learning_rate", "start": 3e-5, "max": 8, "values": [3e-6, *RATES, 2.7e-4]}
            },
            **reporting,
        },
    )


def test_what_tables_say_of_a_range():
    (name, found), *_ = range_standings(experiment(9e-5, (0.0, 0.4, 0.6))).items()
    assert (name, found.state) == (QUESTION, "widening")
    # random weights chose the middle one each time, and go where the checkpoint goes
    assert found.following == {"pretrained": [*RATES, 2.7e-4], "random": [*RATES, 2.7e-4]}


@pytest.mark.parametrize(
    ("chosen", "shares", "state", "finished"),
    [(3e-5, (0.1, 0.8, 0.1), "interior", True), (9e-5, (0.0, 0.4, 0.6), "widening", False)],
)
def test_a_decision_on_a_range_alone(chosen, shares, state, finished):
    found = experiment(chosen, shares)
    decided = decision(found, found.reporting)
    question = decided["questions"][QUESTION]
    assert (decided["finished"], question["state"], question["range"]) == (finished, state, state)
    assert question["now"] == {"values": {"pretrained": list(RATES), "random": list(RATES)}}
    assert len(question["next"]["values"]["pretrained"]) == 3 + (not finished)
    assert decided["asked"]["ranges"] == found.reporting["ranges"]
    assert told(QUESTION, question).startswith(
        f"{QUESTION}: {state}; pretrained chose {chosen:g} of 1e-05, 3e-05 and 9e-05;"
    )


@pytest.mark.parametrize(
    ("chosen", "seeds", "state", "following", "range_state"),
    [
        # values first; a look at few seeds of a range that grows decides nothing
        (9e-5, 3, "widening", (3, 4), "widening"),
        (3e-5, 3, "open", (5, 3), "interior"),
        # from the second look on the values stay, whatever more seeds choose among them
        (9e-5, 5, "open", (10, 3), "resting"),
    ],
)
def test_seeds_are_added_after_values(chosen, seeds, state, following, range_state):
    shares = (0.0, 0.0, 1.0) if chosen == RATES[-1] else (0.0, 1.0, 0.0)
    found = experiment(chosen, shares, until={"looks": [3, 5, 10]})
    (row,) = growing(
        selection="best", recipe_a=f"lab.{chosen}", recipe_b="lab.3e-05", n_a=seeds, n_b=seeds, se_seeds=None
    ).contrasts
    found.contrasts.append(row)
    decided = decision(found, found.reporting)
    question = decided["questions"][QUESTION]
    assert (question["state"], question["range"], decided["finished"]) == (state, range_state, False)
    assert question["now"]["seeds"] == seeds
    assert (question["next"]["seeds"], len(question["next"]["values"]["random"])) == following


def test_an_experiment_without_ranges_has_none():
    found = experiment(3e-5, (0.0, 1.0, 0.0))
    del found.reporting["ranges"]
    assert range_standings(found) == {}
