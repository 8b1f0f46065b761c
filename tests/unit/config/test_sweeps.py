"""Which settings a sweep tries: values of ranges that grow, and points between bounds."""

import numpy as np
import pytest
from builders_config import demo_config, refusal
from scipy.stats import qmc

from seedbed.config.resolve import resolve_config


@pytest.fixture
def raw(tmp_path):
    return demo_config(tmp_path)


def settings(raw, **recipe):
    """The swept values of all recipes of the demo, in order."""
    raw["recipes"]["demo"] |= recipe
    recipes = resolve_config(raw)["recipes"]
    return [block["swept"] for block in recipes.values() if block["family"] == "demo"]


# --- ranges ---


def range_of(raw, key, **keys):
    """All values that the range of a key may try."""
    return [setting[key] for setting in settings(raw, sweep={key: keys})]


def test_a_range_goes_both_ways_from_its_start_in_short_names(raw):
    values = range_of(raw, "learning_rate", start="1e-4", factor=3, max=5)
    assert values == [3.7e-06, 1.11e-05, 3.33e-05, 1e-4, 3e-4, 9e-4, 2.7e-3]
    assert resolve_config(raw)["grid"]["recipes"][2] == "demo.learning_rate=3.33e-05"


def test_the_start_of_a_range_stays_as_it_is(raw):
    assert range_of(raw, "learning_rate", start=1.23456e-4, max=3) == [4.12e-05, 1.23456e-4, 3.7e-4]


def test_the_defaults_of_a_range(raw):
    values = range_of(raw, "learning_rate", start=1e-4)
    # eight values of a side, of which three are at the start: up to five more on either end
    assert len(values) == 5 + 3 + 5
    assert np.allclose(np.diff(np.log(values)), np.log(3), atol=0.01)


@pytest.mark.parametrize(
    ("key", "keys", "values"),
    [
        ("batch_size", {"start": 8, "factor": 2}, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]),
        ("epochs", {"start": 3, "max": 4}, [1, 3, 9, 27]),
        ("dropout", {"start": 0.2, "factor": 2, "max": 6}, [0.0125, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8]),
        # no recipe ends above its peak
        ("learning_rate", {"start": 1e-3, "factor": 10, "max": 5}, [1e-4, 1e-3, 1e-2, 1e-1, 1.0]),
    ],
)
def test_a_range_ends_where_a_recipe_does_not_allow_its_values(raw, key, keys, values):
    raw["recipes"]["demo"]["end_learning_rate"] = 1e-4 if key == "learning_rate" else 0.0
    assert range_of(raw, key, **keys) == values


def test_a_range_beside_a_list_goes_with_each_of_its_values(raw):
    found = settings(raw, sweep={"learning_rate": {"start": 1e-4, "max": 3}, "epochs": [1, 2]})
    assert len(found) == 3 * 2
    assert {setting["epochs"] for setting in found} == {1, 2}


def test_a_range_and_a_list_of_the_same_value_make_the_same_recipe(raw):
    settings(raw, sweep={"learning_rate": {"start": 1e-4, "max": 3}})
    of_range = resolve_config(raw)["recipes"]["demo.learning_rate=0.0001"]
    settings(raw, sweep={"learning_rate": [1e-4]})
    assert resolve_config(raw)["recipes"]["demo.learning_rate=0.0001"] == of_range


# --- points ---

BOUNDS = {"learning_rate": {"low": 1e-6, "high": 1e-3}, "warmup_ratio": {"low": 0.0, "high": 0.3}}


def test_points_are_those_of_scipy_at_their_scale_and_of_three_digits(raw):
    found = settings(raw, points=16, points_seed=3, sweep={**BOUNDS, "batch_size": [8, 16, 32]})
    unit = qmc.Sobol(3, scramble=True, rng=3).random(16)
    rates = [setting["learning_rate"] for setting in found]
    assert rates == [float(f"{10 ** (-6 + 3 * place):.3g}") for place in unit[:, 0]]
    assert np.allclose([setting["warmup_ratio"] for setting in found], 0.3 * unit[:, 1], rtol=5e-3)
    assert [setting["batch_size"] for setting in found] == [(8, 16, 32)[int(3 * at)] for at in unit[:, 2]]
    assert all(len(name) < 70 for name in resolve_config(raw)["grid"]["recipes"])


def test_more_points_keep_those_that_are_there(raw):
    assert settings(raw, points=8, sweep=BOUNDS) == settings(raw, points=12, sweep=BOUNDS)[:8]


def test_whole_numbers_are_rounded_and_the_scale_can_be_given(raw):
    sweep = {"epochs": {"low": 1, "high": 20, "scale": "linear"}, "learning_rate": BOUNDS["learning_rate"]}
    found = settings(raw, points=8, sweep=sweep)
    assert all(isinstance(setting["epochs"], int) and 1 <= setting["epochs"] <= 20 for setting in found)
    # linear: half of the points lie in the upper half, where a logarithm would have a quarter
    assert sum(setting["epochs"] > 10 for setting in found) == 4


@pytest.mark.parametrize(
    ("recipe", "where", "told"),
    [
        ({"sweep": {"learning_rate": {"start": 0}}}, "sweep.learning_rate.start", "minimum of 0"),
        ({"sweep": {"learning_rate": {"start": 1e-4, "factor": 1}}}, "sweep.learning_rate.factor", "of 1"),
        ({"sweep": {"learning_rate": {"start": 1e-4, "max": 2}}}, "sweep.learning_rate.max", "of 3"),
        ({"sweep": {"learning_rate": {"start": 1e-4, "until": "best"}}}, "sweep.learning_rate.until", "was"),
        ({"sweep": {"learning_rate": {"strat": 1e-4}}}, "sweep.learning_rate.strat", "did you mean 'start'?"),
        ({"sweep": {"learning_rate": {"low": 1e-5}}}, "sweep.learning_rate", "'high' is a required"),
        ({"sweep": {"learning_rate": 1e-4}}, "sweep.learning_rate", "give a list: learning_rate: [0.0001]"),
        ({"sweep": {"precision": {"start": 1}}}, "sweep.precision", "precision is no number"),
        ({"sweep": {"epochs": {"start": 2, "factor": 1.2}}}, "sweep.epochs", "not different"),
        ({"sweep": {"epochs": {"start": 1}}}, "epochs", "'demo.epochs=0': 0 is less than"),
        ({"sweep": {"dropout": {"start": 0.5}}}, "dropout", "1.5 is greater than or equal to"),
        ({"sweep": {key: {"start": 0.1} for key in ("dropout", "weight_decay")}}, "sweep", "two ranges"),
        ({"sweep": {"learning_rate": {"start": 1e-4}}, "points": 8}, "sweep.learning_rate", "value by value"),
        ({"sweep": BOUNDS}, "sweep.learning_rate", "does not say how many"),
        ({"points": 8}, "points", "the recipe has none"),
        ({"points": 1, "sweep": BOUNDS}, "points", "less than the minimum of 2"),
        ({"points": 8, "sweep": {"dropout": {"low": 0.5, "high": 0.1}}}, "sweep.dropout", "exchange them"),
        ({"points": 8, "sweep": {"epochs": {"low": 0, "high": 9, "scale": "log"}}}, "sweep.epochs.low", "0"),
        ({"points": 8, "sweep": {"epochs": [1, 2, 3]}}, "points", "the same setting"),
        ({"points": 4, "sweep": {"dropout": {"low": 0.5, "high": 3.0}}}, "dropout", "maximum of 1"),
    ],
)  # fmt: skip
def test_what_is_no_range_and_no_points(raw, recipe, where, told):
    raw["recipes"]["demo"] |= recipe
    error = refusal(raw)
    assert error.where == f"config, recipes.demo.{where}"
    assert told in str(error)


def test_a_range_beside_sizes_of_training_is_refused(raw):
    raw["grid"]["train_sizes"] = [100, "all"]
    raw["recipes"]["demo"]["sweep"] = {"learning_rate": {"start": 1e-4}}
    assert refusal(raw).where == "config, recipes.demo.sweep.learning_rate; grid.train_sizes"
