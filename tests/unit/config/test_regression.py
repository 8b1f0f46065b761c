"""Datasets of numbers: what their blocks take, what they refuse, and what runs of them are told."""

from types import SimpleNamespace

import pytest
from builders_config import demo_config, refusal

from seedbed.config.plan import Plan
from seedbed.config.resolve import resolve_config


@pytest.fixture
def raw(tmp_path):
    """The demo, with the marks of its reviews instead of classes."""
    config = demo_config(tmp_path)
    files = {"train": "train.csv", "test": "test.csv"}
    config["datasets"] = {"marks": {"task": "regression", "source": "reviews_fr", "files": files}}
    config["grid"]["datasets"] = ["marks"]
    return config


def run_of(raw):
    plan = Plan(raw)
    place = SimpleNamespace(
        dataset="marks", model="roberta_tiny_fr", init="random", recipe="demo", seed="seed0"
    )
    return plan, plan.fairseq_run(place)


def test_a_regression_is_planned_for_both_frameworks_with_one_output(raw):
    plan, run = run_of(raw)
    assert len(plan.runs) == 12
    assert plan.task.reported == ("pearson", "spearman", "mse")
    assert plan.task.selection == "pearson"
    assert plan.head_size == 1
    assert run["task"] == "regression"
    assert "metric" not in run
    assert "class_weight" not in run["settings"]
    assert "label_names" not in plan.reporting()["datasets"]["marks"]
    assert plan.pattern("datasets", "encoder") == plan.pattern("datasets", "values") == "marks"


@pytest.mark.parametrize("metric", ["spearman", "mse"])
def test_the_chosen_metric_selects_and_the_others_are_reported_beside_it(raw, metric):
    raw["datasets"]["marks"]["metric"] = metric
    plan, run = run_of(raw)
    assert run["metric"] == metric
    assert plan.task.reported[0] == plan.task.selection == metric
    assert set(plan.task.reported) == set(plan.task.metrics) == {"pearson", "spearman", "mse"}
    assert plan.task.direction == (-1 if metric == "mse" else 1)


def test_the_tasks_own_metric_is_the_same_as_none(raw):
    before = resolve_config(raw)
    raw["datasets"]["marks"]["metric"] = "pearson"
    assert resolve_config(raw) == before


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("labels", [0, 1]),
        ("label_names", ["bad", "good"]),
        ("other_labels", "drop"),
        ("absent_classes", "allow"),
    ],
)
def test_keys_of_classes_are_refused_with_a_remedy(raw, key, value):
    raw["datasets"]["marks"][key] = value
    error = refusal(raw)
    assert error.where == f"config, datasets.marks.{key}"
    assert error.found == value
    assert f"leave {key} out, or set task: classification" in error.hint


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", {"f1_of": "1"}])
def test_a_metric_of_classes_is_refused(raw, metric):
    raw["datasets"]["marks"]["metric"] = metric
    error = refusal(raw)
    assert error.where == "config, datasets.marks.metric"
    assert "['pearson', 'spearman', 'mse']" in error.what


def test_a_metric_of_numbers_is_refused_for_classes(tmp_path):
    config = demo_config(tmp_path)
    config["datasets"]["reviews_fr"]["metric"] = "pearson"
    error = refusal(config)
    assert error.where == "config, datasets.reviews_fr.metric"
    assert "'macro_f1'" in error.what


def test_weights_of_classes_are_refused(raw):
    raw["recipes"]["demo"]["class_weight"] = "balanced"
    error = refusal(raw)
    assert error.where == "config, recipes.demo.class_weight"
    assert error.hint == "leave class_weight out"


@pytest.mark.parametrize("form", ["lab", "folders", "webis_cls"])
def test_formats_without_a_column_of_numbers_are_refused(raw, form):
    raw["datasets"]["marks"]["format"] = form
    error = refusal(raw)
    assert error.where == "config, datasets.marks.format"
    assert "'csv'" in error.what


def test_seeds_of_numbers_are_not_fused(raw):
    raw["fused_seeds"] = True
    assert "fused_seeds" in refusal(raw).where
