"""Fingerprints of sources, datasets and models, which experiments share."""

import copy
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders_config import demo_config

from seedbed.config.plan import Plan
from seedbed.core import checksums
from seedbed.core.errors import SeedbedError
from seedbed.core.files import fingerprint, write_json


@pytest.fixture
def raw(tmp_path):
    return demo_config(tmp_path)


def test_a_description_changes_no_fingerprint_and_no_rule(raw):
    before = Plan(copy.deepcopy(raw))
    raw["datasets"]["reviews_fr"]["description"] = "other words"
    after, wildcards = Plan(raw), SimpleNamespace(dataset="reviews_fr")
    assert before.shared.stamp("datasets", "reviews_fr") == after.shared.stamp("datasets", "reviews_fr")
    assert before.dataset(wildcards) == after.dataset(wildcards)


def test_two_experiments_that_mean_something_else_by_one_name_are_an_error(raw, tmp_path):
    raw["results"] = str(tmp_path)
    plan = Plan(raw)
    folder = tmp_path / "data" / "reviews_fr"
    folder.mkdir(parents=True)
    stamp = plan.shared.stamp("datasets", "reviews_fr")["fingerprint"]
    (folder / "fingerprint.json").write_text(f'{{"experiment": "other", "fingerprint": "{stamp}"}}')
    Plan(raw)  # the same definition: shared
    raw["datasets"]["reviews_fr"]["columns"] = {"text": "body"}
    with pytest.raises(SeedbedError, match="has another definition in experiment 'other'"):
        Plan(raw)


@pytest.mark.parametrize("content", ["", '{"experiment": "demo", "fingerprint": "0123456789abcdef"}'])
def test_a_damaged_stamp_of_a_shared_folder_is_named(raw, content):
    path = Path(raw["results"]) / "data/reviews_fr/fingerprint.json"
    write_json(path, {"experiment": "demo", **Plan(raw).shared.stamp("datasets", "reviews_fr")})
    checksums.record("prepare", [path])
    Plan(raw)
    path.write_text(content)
    with pytest.raises(SeedbedError, match="changed or damaged since") as error:
        Plan(raw)
    assert error.value.where == str(path)
    path.unlink()
    Plan(raw)


# Of the embedded experiment: the params of prepare, the stamp of the dataset, the params of a run. Where one
# of them changes, runs that users have trained are trained anew.
PARAMS, STAMP, RUN = "c0035b34d2156e4c", "00ceebd1ec7d1bad", "9faaf3e804f35919"


# and of the first two what they were with the names "bad" and "good", while these were a part of them
NAMED_PARAMS, NAMED_STAMP = "fca90c6eb11242b4", "e1a1138319dab3cd"


DEMO_RUN = SimpleNamespace(
    dataset="reviews_fr", model="roberta_tiny_fr", init="random", recipe="demo", seed="seed0"
)  # fmt: skip


def prints(plan) -> tuple[str, str, str]:
    """The fingerprints that runs rest on."""
    stamp = plan.shared.stamp("datasets", "reviews_fr")["fingerprint"]
    return fingerprint(plan.dataset(DEMO_RUN)), stamp, fingerprint(plan.transformers_run(DEMO_RUN))


@pytest.mark.parametrize("names", [None, ["bad", "good"], ["mauvais", "bon"]])
def test_names_of_classes_change_nothing_that_a_run_rests_on(raw, names):
    raw["datasets"]["reviews_fr"]["label_names"] = names
    plan = Plan(raw)
    assert prints(plan) == (PARAMS, STAMP, RUN)
    assert plan.aggregation()["datasets"]["reviews_fr"]["classes"] == ["negative", "positive"]
    read = names or ["negative", "positive"]
    assert plan.reporting()["datasets"]["reviews_fr"]["label_names"] == read
    assert plan.label_names() == {"reviews_fr": read}


@pytest.mark.parametrize("names", [None, ["bad", "good"], ["mauvais", "bon"]])
def test_runs_of_a_version_that_prepared_names_stay_as_they_are(raw, tmp_path, names):
    folder = tmp_path / "results/data/reviews_fr"
    write_json(folder / "labels.json", {"labels": ["negative", "positive"], "names": ["bad", "good"]})
    write_json(folder / "fingerprint.json", {"experiment": "another", "fingerprint": NAMED_STAMP})
    raw["datasets"]["reviews_fr"]["label_names"] = names
    plan = Plan(raw)  # which another experiment's data do not stop
    assert prints(plan) == (NAMED_PARAMS, NAMED_STAMP, RUN)
    assert plan.aggregation()["datasets"]["reviews_fr"]["classes"] == ["bad", "good"]
    raw["datasets"]["reviews_fr"]["near_duplicates"] = 0.9
    with pytest.raises(SeedbedError, match="'reviews_fr' has another definition in experiment 'another'"):
        Plan(raw)


@pytest.mark.parametrize(("key", "value"), [("include", ["*.csv"]), ("version", "2"), ("sha256", "0" * 64)])
def test_what_a_source_is_changes_its_fingerprint(raw, key, value):
    before = Plan(raw)
    raw["sources"]["reviews_fr"] = before.config["sources"]["reviews_fr"] | {key: value}
    after = Plan(raw)
    for kind in ("sources", "datasets"):
        assert after.shared.stamp(kind, "reviews_fr") != before.shared.stamp(kind, "reviews_fr")


def test_another_experiment_that_redefines_a_source(raw):
    plan = Plan(raw)
    folder = plan.results / "sources" / "reviews_fr"
    write_json(
        folder / "fingerprint.json", {"experiment": "first", **plan.shared.stamp("sources", "reviews_fr")}
    )
    Plan(raw)
    raw["sources"]["reviews_fr"] = {"locations": ["elsewhere"]}
    with pytest.raises(SeedbedError, match="'reviews_fr' has another definition in experiment 'first'"):
        Plan(raw)


def test_tokens_of_another_experiment_are_held_to_this_ones_limit(raw):
    plan = Plan(raw)
    stamps = [
        plan.results / folder / name / "fingerprint.json"
        for folder, name in (("data", "reviews_fr"), ("models", "roberta_tiny_fr"))
    ]
    for kind, stamp in zip(("datasets", "models"), stamps, strict=True):
        definition = plan.shared.definition(kind, stamp.parent.name)
        write_json(stamp, {"experiment": "demo", "fingerprint": fingerprint(definition)})
    path = plan.results / "data/reviews_fr/roberta_tiny_fr/tokens/statistics.json"
    write_json(path, {"test": {"unknown_share": 0.02}})
    with pytest.raises(SeedbedError, match=r"more than 1\.0% of the pieces in the split 'test'"):
        Plan(raw)
    write_json(path, {"test": {"unknown_share": 0.009, "least_limit": 0.09}})
    with pytest.raises(SeedbedError, match=r"set checks\.max_unknown_share to 0\.09 or more"):
        Plan(raw)
    raw["checks"]["max_unknown_share"] = 0.1
    Plan(raw)
    raw["checks"]["max_unknown_share"] = 0.01
    write_json(stamps[0], {"experiment": "demo", "fingerprint": "before"})
    Plan(raw)  # they are of a definition that is gone: made anew, and looked at then
