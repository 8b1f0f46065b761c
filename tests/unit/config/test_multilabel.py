"""Datasets of sets of labels: what their blocks take, what they refuse, and what runs of them are told."""

from types import SimpleNamespace

import pytest
from builders_config import demo_config, refusal

from seedbed.config.plan import Plan
from seedbed.config.resolve import resolve_config
from seedbed.running.preflight import _notes_of_frameworks


@pytest.fixture
def raw(tmp_path):
    """The demo, with the topics of its reviews instead of classes."""
    config = demo_config(tmp_path)
    config["datasets"] = {
        "topics": {
            "task": "multilabel",
            "source": "reviews_fr",
            "files": {"train": "train.csv", "test": "test.csv"},
            "labels": ["love", "crime", "war"],
            "label_separator": ";",
        }
    }
    config["grid"]["datasets"] = ["topics"]
    return config


def run_of(raw):
    plan = Plan(raw)
    place = SimpleNamespace(
        dataset="topics", model="roberta_tiny_fr", init="random", recipe="demo", seed="seed0"
    )
    return plan, plan.transformers_run(place)


def test_it_is_planned_for_transformers_alone_with_an_output_for_each_label(raw):
    plan, run = run_of(raw)
    assert {each.framework for each in plan.runs} == {"transformers"}
    assert plan.config["grid"]["left_out"] == {"roberta_tiny_fr": ["fairseq"]}
    (note,) = _notes_of_frameworks(plan)
    assert note.endswith("runs without fairseq, which cannot train the task multilabel (grid.frameworks).")
    assert plan.task.reported == ("micro_f1", "macro_f1", "subset_accuracy")
    assert plan.head_size == 3
    assert run["task"] == "multilabel"
    assert "metric" not in run
    assert plan.reporting()["datasets"]["topics"]["classes"] == ["love", "crime", "war"]


def test_fairseq_alone_is_refused(raw):
    raw["grid"]["frameworks"] = ["fairseq"]
    error = refusal(raw)
    assert error.what == "multilabel runs with Transformers only"
    assert error.where == "config, grid.frameworks"


@pytest.mark.parametrize("metric", ["macro_f1", "subset_accuracy"])
def test_the_chosen_metric_selects_and_the_others_are_reported_beside_it(raw, metric):
    raw["datasets"]["topics"]["metric"] = metric
    plan, run = run_of(raw)
    assert run["metric"] == plan.task.selection == plan.task.reported[0] == metric
    assert set(plan.task.reported) == {"micro_f1", "macro_f1", "subset_accuracy"}


def test_the_tasks_own_metric_is_the_same_as_none(raw):
    before = resolve_config(raw)
    raw["datasets"]["topics"]["metric"] = "micro_f1"
    assert resolve_config(raw) == before


@pytest.mark.parametrize("metric", ["accuracy", "mcc", {"f1_of": "love"}])
def test_a_metric_that_sets_cannot_have_is_refused(raw, metric):
    raw["datasets"]["topics"]["metric"] = metric
    error = refusal(raw)
    assert error.where == "config, datasets.topics.metric"
    assert "['micro_f1', 'macro_f1', 'subset_accuracy']" in error.what


def test_a_metric_of_sets_is_refused_for_classes(tmp_path):
    config = demo_config(tmp_path)
    config["datasets"]["reviews_fr"]["metric"] = "micro_f1"
    assert refusal(config).where == "config, datasets.reviews_fr.metric"


def test_the_names_of_columns_are_the_labels(raw):
    dataset = raw["datasets"]["topics"]
    dataset["columns"] = {"label": ["love", "crime"]}
    for key in ("labels", "label_separator"):
        error = refusal(raw)
        assert error.where == f"config, datasets.topics.{key}"
        assert "leave it out" in error.hint
        del dataset[key]
    resolved = resolve_config(raw)["datasets"]["topics"]
    assert resolved["labels"] == resolved["label_names"] == ["love", "crime"]


def test_labels_have_to_be_declared_for_one_column(raw):
    del raw["datasets"]["topics"]["labels"]
    error = refusal(raw)
    assert error.where == "config, datasets.topics.labels"
    assert "labels: [a, b, c]" in error.hint


def test_the_column_of_clusters_is_none_of_the_labels(raw):
    dataset = raw["datasets"]["topics"]
    del dataset["labels"], dataset["label_separator"]
    dataset["columns"] = {"label": ["love", "crime"], "cluster": "crime"}
    assert refusal(raw).where == "config, datasets.topics.columns.cluster"


def test_weights_of_classes_are_refused(raw):
    raw["recipes"]["demo"]["class_weight"] = "balanced"
    error = refusal(raw)
    assert error.where == "config, recipes.demo.class_weight"
    assert error.hint == "leave class_weight out"


@pytest.mark.parametrize("form", ["lab", "folders", "webis_cls"])
def test_formats_without_a_column_of_sets_are_refused(raw, form):
    raw["datasets"]["topics"]["format"] = form
    assert refusal(raw).where == "config, datasets.topics.format"


def test_seeds_are_not_fused(raw):
    raw["fused_seeds"] = True
    assert "fused_seeds" in refusal(raw).where


@pytest.mark.parametrize(
    ("keys", "place"),
    [({"label_separator": ";"}, "label_separator"), ({"columns": {"label": ["a", "b"]}}, "columns.label")],
)
def test_several_labels_of_a_classification_name_the_task(tmp_path, keys, place):
    config = demo_config(tmp_path)
    config["datasets"]["reviews_fr"] |= keys
    error = refusal(config)
    assert error.where == f"config, datasets.reviews_fr.{place}"
    assert error.hint == "for texts with any number of labels, set task: multilabel"
