"""What may stand at each key: errors that name it, and values as users write them."""

import datetime

import pytest
from builders_config import demo_config, refused

from seedbed.config.plan import Plan
from seedbed.config.resolve import resolve_config
from seedbed.core.errors import SeedbedError


@pytest.fixture
def raw(tmp_path):
    return demo_config(tmp_path)


def test_an_unknown_key_names_the_nearest(raw):
    raw["recipes"]["demo"]["lerning_rate"] = 1e-4
    message = refused(raw)
    assert "unknown configuration key 'lerning_rate'" in message
    assert "recipes.demo.lerning_rate" in message
    assert "did you mean 'learning_rate'?" in message


def test_an_unknown_key_at_the_top_level_names_the_nearest(raw):
    raw["experimnt"] = "x"
    assert "did you mean 'experiment'?" in refused(raw)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("precision", "float8", "recipes.demo.precision"),
        ("end_learning_rate", 1.0, "ends at a higher learning rate"),
    ],
)
def test_values_out_of_range_are_errors(raw, key, value, told):
    raw["recipes"]["demo"][key] = value
    assert told in refused(raw)


@pytest.mark.parametrize(("told", "meant"), [("true", True), ("false", False), (True, True)])
def test_a_switch_may_come_from_the_command_line(raw, told, meant):
    assert resolve_config(raw | {"fused_seeds": told})["fused_seeds"] is meant
    assert resolve_config(raw | {"gpus": {"mps": told}})["gpus"]["mps"] is meant


def test_what_is_no_switch_is_refused(raw):
    assert "fused_seeds" in refused(raw | {"fused_seeds": "perhaps"})
    assert "gpus.mps" in refused(raw | {"gpus": {"mps": "perhaps"}})


@pytest.mark.parametrize(
    ("seeds", "where", "told"),
    [
        ([], "grid.seeds", "[] should be non-empty"),
        ([1, 1], "grid.seeds", "[1, 1] has non-unique elements"),
        ({"init": [], "data": [0]}, "grid.seeds.init", "[] should be non-empty"),
        ({"init": [0], "data": [3, 3]}, "grid.seeds.data", "[3, 3] has non-unique elements"),
        ({"init": [0]}, "grid.seeds", "'data' is a required property"),
        ({"init": [-1], "data": [0]}, "grid.seeds.init.0", "-1 is less than the minimum of 0"),
        ({"init": 0, "data": 1}, "grid.seeds.init", "0 is not a list"),
        ({"init": [0], "data": [0], "dta": [1]}, "grid.seeds.dta", "unknown configuration key 'dta'"),
        (3, "grid.seeds", "3 is not a list"),
        (["one"], "grid.seeds.0", "'one' is not a whole number"),
        ([0.5], "grid.seeds.0", "0.5 is not a whole number"),
        ([2**31], "grid.seeds.0", "2147483648 is greater than the maximum of 2147483647"),
        ({"init": [0], "data": [1e23]}, "grid.seeds.data.0", "greater than the maximum of 2147483647"),
        ([{"init": 0}], "grid.seeds.0", "'data' is a required property"),
        ([{"init": 0, "data": 1, "x": 2}], "grid.seeds.0.x", "unknown configuration key 'x'"),
    ],
)
def test_seeds_that_are_no_seeds(raw, seeds, where, told):
    raw["grid"]["seeds"] = seeds
    with pytest.raises(SeedbedError) as error:
        resolve_config(raw)
    assert told in str(error.value)
    assert error.value.where == f"config, {where}"


def test_seeds_may_be_written_as_other_numbers_are(raw):
    """1.0e+3 is an integer, and `--config` hands nested values over as text."""
    raw["grid"]["seeds"] = [1.0e3, "2", {"init": 0, "data": 3.0}]
    plan = Plan(raw)
    assert [str(seed) for seed in plan.config["grid"]["seeds"]] == ["1000", "2", "{'init': 0, 'data': 3}"]
    raw["grid"]["seeds"] = {"init": ["0", 1.0], "data": [0]}
    assert {(run.init_seed, run.data_seed) for run in Plan(raw).runs} == {(0, 0), (1, 0)}


def test_a_number_that_is_not_finite_is_refused_wherever_it_stands(raw):
    raw["recipes"]["demo"]["sweep"] = {"learning_rate": [1e-5, float("inf")]}
    assert "config, recipes.demo.sweep.learning_rate.1" in refused(raw)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("replicates", 10, "10 is less than the minimum of 100"),
        ("replicates", 2_000_000, "2000000 is greater than the maximum of 1000000"),
        ("bootstrap_seed", -1, "-1 is less than the minimum of 0"),
        ("equivalence_margin", {"pretrained": 0}, "0 is less than or equal to the minimum of 0"),
        ("equivalence_margin", {"pretraned": 0.01}, "did you mean 'pretrained'?"),
        ("equivalence_margin", 0.01, "0.01 is not a block of keys"),
    ],
)
def test_statistics_out_of_range(raw, key, value, told):
    raw["statistics"][key] = value
    message = refused(raw)
    assert told in message
    assert f"config, statistics.{key}" in message


def test_one_margin_may_be_given_and_the_other_left_out(raw):
    raw["statistics"] = {"equivalence_margin": {"random": "5e-3"}}
    assert resolve_config(raw)["statistics"] == {
        "confidence": 0.95,
        "power": 0.8,
        "replicates": 10_000,
        "bootstrap_seed": 0,
        "difference_of_interest": 0.02,
        "equivalence_margin": {"pretrained": 0.01, "random": 0.005},
    }


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, float("nan")])
def test_smoothing_that_leaves_no_curve(raw, smoothing):
    raw["figures"]["smoothing"] = smoothing
    assert "config, figures.smoothing" in refused(raw)


def test_text_columns_are_a_list(raw):
    name = raw["grid"]["datasets"][0]
    assert resolve_config(raw)["datasets"][name]["columns"]["text"] == ["text"]
    raw["datasets"][name]["columns"] = {"text": ["summary", "text"]}
    assert resolve_config(raw)["datasets"][name]["columns"]["text"] == ["summary", "text"]


def test_labels_that_are_the_same_as_text(raw):
    raw["datasets"]["reviews_fr"]["labels"] = [1, "1"]
    assert "a label is repeated" in refused(raw)


@pytest.mark.parametrize(
    ("label", "told"),
    [
        (True, "a label is not text: True, beside labels that are"),
        (None, "a label is neither text nor a number: None"),
        (datetime.date(2024, 1, 31), "a label is neither text nor a number: datetime.date(2024, 1, 31)"),
        (float("inf"), "a label is neither text nor a number: inf"),
    ],
)
def test_a_label_that_yaml_read_otherwise_is_refused_with_what_to_write(raw, label, told):
    raw["datasets"]["reviews_fr"]["labels"] = ["a", label]
    message = refused(raw)
    assert told in message
    assert 'labels: ["no", "yes"]' in message


@pytest.mark.parametrize(
    ("labels", "text"),
    [([False, True], ["false", "true"]), ([1.0, 2], ["1", "2"]), ([0.5, 1.5], ["0.5", "1.5"])],
)
def test_numbers_and_truth_values_need_no_quotes(raw, labels, text):
    raw["datasets"]["reviews_fr"]["labels"] = labels
    assert resolve_config(raw)["datasets"]["reviews_fr"]["labels"] == text


def test_spaces_around_a_label_do_not_count_and_forms_of_unicode_are_one(raw):
    raw["datasets"]["reviews_fr"]["labels"] = ["negative ", "\xa0positive"]
    assert resolve_config(raw)["datasets"]["reviews_fr"]["labels"] == ["negative", "positive"]
    raw["datasets"]["reviews_fr"]["labels"] = ["déçu", "de\u0301çu"]
    assert "a label is repeated" in refused(raw)


@pytest.mark.parametrize("task", ["pairs", "token_classification", "nli", ["a"]])
def test_an_unknown_task_is_told_which_there_are(raw, task):
    raw["datasets"]["reviews_fr"]["task"] = task
    message = refused(raw)
    assert "did you mean" not in message
    assert "give classification (one of several labels for a text) " in message
    assert " or regression (a number for a text)" in message


BLOCKS = ("sources", "datasets", "models", "recipes")


# a line end, white space of any script, a mark without width, a way out of the folder, a device, too long
BAD_NAMES = [
    *("\n", "\r", "\r\n", " ", "\t", "\x0b", "\x1c", "\x85", "\u00a0", "\u2003", "\u2028", "\u3000"),
    *("\u200b", "\ufeff", "\u202e", "\x00", "/..", "é", "٣", "x" * 150),
]


@pytest.mark.parametrize("end", BAD_NAMES)
@pytest.mark.parametrize("kind", ["experiment", *BLOCKS])
def test_a_name_is_ascii_in_one_line_to_its_end(raw, kind, end):
    if kind == "experiment":
        raw["experiment"] = f"demo{end}"
    else:
        block = raw.setdefault(kind, {})
        block[f"demo{end}"] = dict(next(iter(block.values()), {"locations": ["x"]}))
    message = refused(raw)
    assert f"config, {kind}" in message
    assert len(message.splitlines()) == 4


@pytest.mark.parametrize("name", [".", "..", "", "-x", "_x", " x", "\nx", "\ufeffx"])
@pytest.mark.parametrize("kind", BLOCKS)
def test_a_name_begins_with_a_letter_or_a_digit(raw, kind, name):
    block = raw.setdefault(kind, {})
    block[name] = dict(next(iter(block.values()), {"locations": ["x"]}))
    assert f"config, {kind}" in refused(raw)


@pytest.mark.parametrize("name", ["data", "models", "sources", "logs", "benchmarks"])
def test_folders_of_the_workflow_are_no_experiments_even_with_a_line_end(raw, name):
    for end in ("", "\n"):
        assert "config, experiment" in refused(raw | {"experiment": name + end})


def test_a_hash_ends_where_its_digits_end(raw):
    raw["sources"] = {"s": {"locations": ["x"], "sha256": "0" * 64 + "\n"}}
    assert "config, sources.s.sha256" in refused(raw)
