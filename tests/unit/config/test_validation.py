"""Values are read as they were meant or refused with the key, whatever stands there."""

import copy
import functools
import math
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from builders import load_config
from hypothesis import given
from hypothesis import strategies as st

from seedbed.config import documentation
from seedbed.config.resolve import resolve_config
from seedbed.config.settings import Recipe, Settings, Statistics
from seedbed.config.validation import complete, plain
from seedbed.core.errors import SeedbedError

ROOT = Path(__file__).parents[3]
CONFIG = plain(load_config([ROOT / "config.yaml"]))
SCHEMA = jsonschema.Draft202012Validator(documentation.schema())

FINITE = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-(10**6), 10**6)
SCALARS = st.one_of(st.none(), st.booleans(), WHOLE, st.floats(), st.text(max_size=8), st.binary(max_size=3))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


NO_NUMBERS = VALUES.filter(
    lambda value: (
        not (isinstance(value, (int, float)) and not isinstance(value, bool))
        and not (isinstance(value, str) and is_number(value))
    )
)


def refusal(block: type, values: dict[str, Any]) -> SeedbedError:
    with pytest.raises(SeedbedError) as error:
        complete(block, values)
    return error.value


def written(number: float) -> list[Any]:
    """How people and `--config` write a number."""
    return [number, repr(number), f"{number:.17e}", f" {number!r}"]


# --- numbers ---


@given(number=FINITE.filter(lambda number: number > 0))
def test_a_number_may_be_text_and_stays_what_it_is(number):
    for value in written(number):
        read = complete(Recipe, {"learning_rate": value})["learning_rate"]
        assert (read, type(read)) == (number, float)


@given(number=st.integers(1, 10**12))
def test_a_whole_number_stays_one_where_a_fraction_may_stand(number):
    for value in (number, str(number)):
        read = complete(Recipe, {"weight_decay": value})["weight_decay"]
        assert (read, type(read)) == (number, int)


@given(number=st.integers(1, 10**12))
def test_a_whole_number_may_be_written_with_a_point(number):
    for value in (number, str(number), float(number), *written(float(number))):
        read = complete(Recipe, {"epochs": value})["epochs"]
        assert (read, type(read)) == (number, int)


@given(value=NO_NUMBERS)
@pytest.mark.parametrize("key", ["learning_rate", "epochs"])
def test_nothing_else_is_a_number(key, value):
    error = refusal(Recipe, {key: plain(value)})
    assert error.where == f"config, {key}"
    assert f"is not a {'whole ' * (key == 'epochs')}number" in error.what
    assert Recipe.model_fields[key].description in error.hint


@given(number=FINITE.filter(lambda number: not number.is_integer()))
def test_a_fraction_is_no_whole_number(number):
    for value in written(number):
        assert "is not a whole number" in refusal(Recipe, {"epochs": value}).what


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("key", ["learning_rate", "epochs", "max_positions"])
def test_numbers_are_finite(key, value):
    error = refusal(Recipe, {key: value})
    assert (error.what, error.where) == ("a number that is not finite", f"config, {key}")


@given(number=st.one_of(FINITE, WHOLE))
@pytest.mark.parametrize(
    ("block", "key", "allowed"),
    [
        (Recipe, "learning_rate", lambda number: number > 0),
        (Recipe, "weight_decay", lambda number: number >= 0),
        (Recipe, "warmup_ratio", lambda number: 0 <= number <= 1),
        (Recipe, "dropout", lambda number: 0 <= number < 1),
        (Statistics, "confidence", lambda number: 0 < number < 1),
    ],
)
def test_limits(block, key, allowed, number):
    if allowed(number):
        assert complete(block, {key: number})[key] == number
    else:
        error = refusal(block, {key: number})
        assert (error.where, error.found) == (f"config, {key}", number)
        assert "imum of" in error.what


@given(number=WHOLE)
@pytest.mark.parametrize(
    ("block", "key", "low", "high"),
    [
        (Recipe, "epochs", 1, math.inf),
        (Recipe, "max_positions", 3, math.inf),
        (Statistics, "replicates", 100, 10**6),
        (Statistics, "bootstrap_seed", 0, math.inf),
    ],
)
def test_limits_of_whole_numbers(block, key, low, high, number):
    if low <= number <= high:
        assert complete(block, {key: number})[key] == number
    else:
        assert refusal(block, {key: number}).where == f"config, {key}"


# --- keys ---


@given(names=st.permutations(list(Recipe.model_fields)), count=st.integers(0, len(Recipe.model_fields)))
def test_keys_keep_the_order_in_which_they_were_written_and_the_others_follow(names, count):
    defaults = complete(Recipe, {})
    given_keys = names[:count]
    recipe = complete(Recipe, {name: defaults[name] for name in given_keys})
    assert list(recipe) == [*given_keys, *(name for name in Recipe.model_fields if name not in given_keys)]
    assert recipe == defaults
    assert repr(complete(Recipe, recipe)) == repr(recipe)


@given(name=st.text(min_size=1).filter(lambda name: name not in Recipe.model_fields), value=VALUES)
def test_an_unknown_key_is_named_with_all_that_there_are(name, value):
    error = refusal(Recipe, {name: plain(value)})
    assert error.what.startswith("unknown configuration key")
    assert ", ".join(Recipe.model_fields) in error.hint


# --- the whole config ---


def places(value: Any, prefix: tuple = ()) -> list[tuple]:
    """Every place inside a config."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in [(*prefix, key), *places(item, (*prefix, key))]]


def changed(place: tuple, value: Any) -> dict[str, Any]:
    """config.yaml with another value at a place."""
    raw = copy.deepcopy(CONFIG)
    functools.reduce(operator.getitem, place[:-1], raw)[place[-1]] = value
    return raw


def outcome(read: Callable[..., Any], *arguments: Any) -> tuple[Any, SeedbedError | None]:
    """What is read, and why nothing is."""
    try:
        return read(*arguments), None
    except SeedbedError as error:
        return None, error


@given(place=st.sampled_from(places(CONFIG)), value=VALUES)
def test_whatever_stands_anywhere_is_read_or_refused_with_its_place(place, value):
    settings, error = outcome(complete, Settings, plain(changed(place, value)))
    if error is not None:
        assert error.where.startswith(f"config, {'.'.join(map(str, place))}"[: len(error.where)])
        assert error.hint
        return
    # what is read passes the schema, which knows no numbers in text, and is read again as it is
    assert list(SCHEMA.iter_errors(settings)) == []
    assert repr(complete(Settings, settings)) == repr(settings)


@given(place=st.sampled_from(places(CONFIG)), value=VALUES)
def test_a_config_is_resolved_or_refused_and_stays_what_it_is(place, value):
    raw = changed(place, value)
    before = repr(raw)
    config, error = outcome(resolve_config, raw)
    kept = [key for key in raw if config is None or key in config]  # without `until` where no seeds are added
    assert error.where if config is None else list(config)[: len(kept)] == kept
    assert repr(raw) == before
