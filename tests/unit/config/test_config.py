"""Configuration: errors that help, defaults, overlays, sweeps; and the run table built from it."""

import copy
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders import load_config

from seedbed.config.plan import Plan
from seedbed.config.resolve import resolve_config
from seedbed.config.runs import build_runs
from seedbed.config.yaml_files import locate, refuse_changed_labels, refuse_repeated_keys
from seedbed.core import checksums
from seedbed.core.errors import SeedbedError
from seedbed.core.files import fingerprint, write_json

ROOT = Path(__file__).parents[3]
LR_OVERLAYS = [
    ROOT / "config.yaml",
    ROOT / "experiments/cls_books.yaml",
    ROOT / "experiments/cls_books_lr.yaml",
]


@pytest.fixture
def raw(tmp_path):
    # elsewhere than the results of whoever runs the tests, which a plan looks at
    return {**load_config([ROOT / "config.yaml"]), "results": str(tmp_path / "results")}


def refused(raw) -> str:
    with pytest.raises(SeedbedError) as error:
        resolve_config(raw)
    return str(error.value)


def test_the_default_experiment_is_two_frameworks_by_two_inits_by_three_seeds(raw):
    runs = build_runs(resolve_config(raw))
    assert len(runs) == 12
    assert {(run.framework, run.init, run.init_seed) for run in runs} == {
        (framework, init, seed)
        for framework in ("fairseq", "transformers")
        for init in ("pretrained", "random")
        for seed in (0, 1, 2)
    }


def test_an_unknown_key_names_the_nearest(raw):
    raw["recipes"]["demo"]["lerning_rate"] = 1e-4
    message = refused(raw)
    assert "unknown configuration key 'lerning_rate'" in message
    assert "recipes.demo.lerning_rate" in message
    assert "did you mean 'learning_rate'?" in message


def test_an_unknown_key_at_the_top_level_names_the_nearest(raw):
    raw["experimnt"] = "x"
    assert "did you mean 'experiment'?" in refused(raw)


def test_a_name_that_is_not_defined_names_the_nearest(raw):
    raw["grid"]["datasets"] = ["review_fr"]
    message = refused(raw)
    assert "'review_fr' is not defined under datasets" in message
    assert "did you mean 'reviews_fr'?" in message


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("precision", "float8", "recipes.demo.precision"),
        ("precision", "bfloat16", "fairseq 0.12 has no bfloat16"),
        ("end_learning_rate", 1.0, "ends at a higher learning rate"),
    ],
)
def test_values_out_of_range_are_errors(raw, key, value, told):
    raw["recipes"]["demo"][key] = value
    assert told in refused(raw)


def test_numbers_of_a_sweep_are_read_as_those_of_a_recipe(raw):
    raw["recipes"]["demo"]["sweep"] = {
        "adam_epsilon": ["1e-8", "1e-6"],
        "epochs": [1.0],
        "weight_decay": [1.0],
    }
    config = resolve_config(raw)
    recipe = config["recipes"]["demo.adam_epsilon=1e-08.epochs=1.weight_decay=1"]
    assert list(recipe["swept"].values()) == [
        recipe["adam_epsilon"],
        recipe["epochs"],
        recipe["weight_decay"],
    ]
    assert [type(value) for value in recipe["swept"].values()] == [float, int, float]


def test_label_names_must_match_labels(raw):
    raw["datasets"]["reviews_fr"]["label_names"] = ["bad", "good", "so-so"]
    assert "3 names for 2 labels" in refused(raw)


def test_defaults_fill_what_is_left_out_and_the_raw_config_stays_as_it_was(raw):
    raw["recipes"]["short"] = {"epochs": 1}
    before = copy.deepcopy(raw)
    recipe = resolve_config(raw)["recipes"]["short"]
    assert (recipe["batch_size"], recipe["learning_rate"], recipe["warmup_ratio"]) == (8, 1e-5, 0.06)
    assert raw == before


def test_a_sweep_makes_a_family_and_several_lists_multiply(raw):
    raw["recipes"]["demo"]["sweep"] = {"learning_rate": [1e-5, 1e-4], "epochs": [1, 2]}
    config = resolve_config(raw)
    assert config["grid"]["recipes"] == [
        "demo.learning_rate=1e-05.epochs=1",
        "demo.learning_rate=1e-05.epochs=2",
        "demo.learning_rate=0.0001.epochs=1",
        "demo.learning_rate=0.0001.epochs=2",
    ]
    runs = build_runs(config)
    assert len(runs) == 48
    assert {run.recipe_family for run in runs} == {"demo"}
    assert dict(runs[-1].swept) == {"learning_rate": 1e-4, "epochs": 2}


def test_a_swept_value_is_checked_like_any_other(raw):
    raw["recipes"]["demo"]["sweep"] = {"learning_rate": [1e-5, -1.0]}
    assert "recipes.demo.learning_rate" in refused(raw)


def test_a_sweep_of_an_unknown_key_names_the_nearest(raw):
    raw["recipes"]["demo"]["sweep"] = {"batchsize": [8, 16]}
    assert "did you mean 'batch_size'?" in refused(raw)


def test_an_overlay_replaces_lists_whole_so_nothing_of_the_demo_leaks_in(tmp_path):
    plan = Plan({**load_config(LR_OVERLAYS), "results": str(tmp_path)})
    assert {run.dataset for run in plan.runs} == {"cls_books"}
    assert {run.model for run in plan.runs} == {"roberta_small_fr"}
    assert len(plan.runs) == 48


def test_the_labs_recipe_is_what_the_lab_states():
    config = resolve_config(load_config(LR_OVERLAYS[:2]))
    lab = config["recipes"]["lab"]
    assert (lab["batch_size"], lab["learning_rate"], lab["epochs"], lab["warmup_ratio"]) == (8, 1e-5, 5, 0.06)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"batches": {"runs": 4, "at_once": 2}}, ["batches.at_once", "found: 2", "set batches.at_once to 1"]),
        ({"recipe": {"precision": "float16"}}, ["recipes.demo.precision", "found: float16", "or bfloat16"]),
        ({"recipe": {"sweep": {"precision": ["float32", "float16"]}}}, ["'demo.precision=float16'"]),
        (
            {"recipe": {"method": "lora", "lora": {"task_type": "SEQ_CLS"}}},
            ["recipes.demo.method; fused_seeds", "found: lora", "give full"],
        ),
    ],
)
def test_what_fused_seeds_cannot_do_is_refused_by_name(raw, change, told):
    raw |= {"fused_seeds": True, "batches": change.get("batches", {})}
    raw["recipes"]["demo"] |= change.get("recipe", {})
    message = refused(raw)
    assert [part for part in told if part not in message] == []
    resolve_config(raw | {"fused_seeds": False})


def test_fused_seeds_take_float32_tf32_bfloat16_and_whatever_recipes_the_grid_leaves_out(raw):
    raw |= {"fused_seeds": True, "keep_model": True, "deterministic": True}
    raw["grid"]["frameworks"] = ["transformers"]
    raw["recipes"]["demo"]["sweep"] = {"precision": ["float32", "tf32", "bfloat16"], "dropout": [0.0, 0.1]}
    raw["recipes"]["other"] = {"method": "lora", "precision": "float16"}
    raw["evaluation"] |= {"test_curves": True}
    assert len(build_runs(resolve_config(raw))) == 6 * 2 * 3


@pytest.mark.parametrize(("told", "meant"), [("true", True), ("false", False), (True, True)])
def test_a_switch_may_come_from_the_command_line(raw, told, meant):
    assert resolve_config(raw | {"fused_seeds": told})["fused_seeds"] is meant


def test_what_is_no_switch_is_refused(raw):
    assert "fused_seeds" in refused(raw | {"fused_seeds": "perhaps"})


def test_seeds_of_init_and_data_may_differ_and_name_the_folder(raw):
    raw["grid"]["seeds"] = [{"init": 0, "data": 3}, 1]
    runs = build_runs(resolve_config(raw))
    assert {run.seed for run in runs} == {"seed0-3", "seed1"}
    assert {(run.init_seed, run.data_seed) for run in runs} == {(0, 3), (1, 1)}


def test_crossed_seeds_are_written_out_as_every_combination(raw):
    raw["grid"]["seeds"] = {"init": [0, 1], "data": [0, 2, 3]}
    plan = Plan(raw)
    pairs = [(0, 0), (0, 2), (0, 3), (1, 0), (1, 2), (1, 3)]
    assert plan.config["grid"]["seeds"] == [{"init": init, "data": data} for init, data in pairs]
    assert plan.reporting()["grid"]["seeds"] == [{"data": data, "init": init} for init, data in pairs]
    assert [(run.init_seed, run.data_seed) for run in plan.runs[::4]] == pairs
    assert [run.seed for run in plan.runs[::4]] == [
        "seed0", "seed0-2", "seed0-3", "seed1-0", "seed1-2", "seed1-3",
    ]  # fmt: skip


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


@pytest.mark.parametrize(("name", "seeds"), [("seeds5", 5), ("seeds10", 10), ("seeds25", 25)])
def test_a_preset_of_seeds_goes_on_top_of_any_experiment_and_keeps_its_runs(tmp_path, name, seeds):
    for overlays in ([], [ROOT / "experiments/cls_books.yaml"]):
        files = [ROOT / "config.yaml", *overlays]
        before, after = (
            Plan({**load_config(paths), "results": str(tmp_path)})
            for paths in (files, [*files, ROOT / f"experiments/{name}.yaml"])
        )
        assert sorted({run.init_seed for run in after.runs}) == list(range(seeds))
        assert len(after.runs) == 4 * seeds
        assert set(before.run_files("run.json")) < set(after.run_files("run.json"))


def test_the_preset_of_crossed_seeds_keeps_the_runs_of_equal_seeds(tmp_path):
    paths = [ROOT / "config.yaml", ROOT / "experiments/seeds_crossed.yaml"]
    plan = Plan({**load_config(paths), "results": str(tmp_path)})
    assert len(plan.runs) == 100
    folders = {run.folder for run in plan.runs}
    assert folders > {run.folder for run in build_runs(resolve_config(load_config([ROOT / "config.yaml"])))}


def test_swept_values_that_are_the_same_are_an_error_and_close_ones_keep_apart(raw):
    raw["recipes"]["demo"]["sweep"] = {"learning_rate": [1e-4, "1e-4"]}
    assert "two recipes are called 'demo.learning_rate=0.0001'" in refused(raw)
    raw["recipes"]["demo"]["sweep"] = {"learning_rate": [1e-4, 1.0000001e-4]}
    assert len(resolve_config(raw)["grid"]["recipes"]) == 2


def test_a_swept_null_is_called_as_yaml_writes_it(raw):
    raw["recipes"]["demo"]["sweep"] = {"max_positions": [None, 128]}
    assert resolve_config(raw)["grid"]["recipes"] == ["demo.max_positions=null", "demo.max_positions=128"]


def test_a_number_that_is_not_finite_is_refused_wherever_it_stands(raw):
    raw["recipes"]["demo"]["sweep"] = {"learning_rate": [1e-5, float("inf")]}
    assert "config, recipes.demo.sweep.learning_rate.1" in refused(raw)


def test_the_sweep_overlay_alone_stops_instead_of_sweeping_the_demo():
    alone = load_config([ROOT / "config.yaml", ROOT / "experiments/cls_books_lr.yaml"])
    assert "'cls_books' is not defined under datasets" in refused(alone)


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
    with pytest.raises(SeedbedError, match="means something else in experiment 'other'"):
        Plan(raw)


@pytest.mark.parametrize("content", ["", '{"experiment": "demo", "fingerprint": "0123456789abcdef"}'])
def test_a_damaged_stamp_of_a_shared_folder_is_named(raw, content):
    path = Path(raw["results"]) / "data/reviews_fr/fingerprint.json"
    write_json(path, {"experiment": "demo", **Plan(raw).shared.stamp("datasets", "reviews_fr")})
    checksums.record("prepare", [path])
    Plan(raw)
    path.write_text(content)
    with pytest.raises(SeedbedError, match="not what its rule wrote") as error:
        Plan(raw)
    assert error.value.where == str(path)
    path.unlink()
    Plan(raw)


def test_a_run_outside_the_grid_is_an_error(raw):
    plan = Plan(raw)
    wildcards = SimpleNamespace(
        dataset="reviews_fr", model="roberta_tiny_fr", init="random", recipe="demo", seed="seed9"
    )
    with pytest.raises(SeedbedError, match="not in the grid"):
        plan.fairseq_run(wildcards)


# --- statistics, figures and the report ---


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


@pytest.mark.parametrize(
    ("confidence", "needed"), [(0.9, 200), (0.95, 400), (0.99, 2_000), (0.999, 20_000), (0.9995, 40_000)]
)
def test_each_tail_of_an_interval_holds_ten_replicates(raw, confidence, needed):
    raw["statistics"] |= {"confidence": confidence, "replicates": needed - 1}
    message = refused(raw)
    assert f"too few bootstrap replicates for intervals of {confidence}" in message
    assert f"give at least {needed:,}" in message
    raw["statistics"]["replicates"] = needed
    assert resolve_config(raw)["statistics"]["replicates"] == needed


def test_one_margin_may_be_given_and_the_other_left_out(raw):
    raw["statistics"] = {"equivalence_margin": {"random": "5e-3"}}
    assert resolve_config(raw)["statistics"] == {
        "confidence": 0.95,
        "power": 0.8,
        "replicates": 10_000,
        "bootstrap_seed": 0,
        "equivalence_margin": {"pretrained": 0.01, "random": 0.005},
    }


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, float("nan")])
def test_smoothing_that_leaves_no_curve(raw, smoothing):
    raw["figures"]["smoothing"] = smoothing
    assert "config, figures.smoothing" in refused(raw)


def test_statistics_and_figures_are_no_part_of_a_run(raw):
    before = Plan(copy.deepcopy(raw))
    raw["statistics"] |= {"confidence": 0.9, "replicates": 500, "bootstrap_seed": 3}
    raw["figures"] = {"smoothing": 0.0}
    after = Plan(raw)
    place = SimpleNamespace(
        dataset="reviews_fr", model="roberta_tiny_fr", init="random", recipe="demo", seed="seed1"
    )
    for name in ("fairseq_run", "transformers_run", "dataset", "model"):
        assert getattr(before, name)(place) == getattr(after, name)(place)
    assert before.recipe_limits() == after.recipe_limits()
    assert after.aggregation()["statistics"]["replicates"] == 500


def test_how_figures_look_is_no_part_of_the_tables(raw):
    before = Plan(copy.deepcopy(raw))
    raw["figures"] = {"smoothing": 0.0}
    after = Plan(raw)
    assert before.aggregation() == after.aggregation()
    assert after.reporting()["figures"] == {"smoothing": 0.0}


# --- sources, formats and models ---


def test_the_table_of_sources_is_there_and_the_config_overrides_a_row(raw):
    raw["sources"]["cls_books"] = {"locations": ["here.zip"], "sha256": "0" * 64}
    sources = resolve_config(raw)["sources"]
    assert sources["cls_books"]["locations"] == ["here.zip"]
    assert sources["cls_books"]["version"] is None
    small = sources["roberta_small_fr"]
    assert small["locations"][0].endswith("RoBERTa_small_fr.zip")
    assert set(small) == set(sources["cls_books"])


def test_a_model_has_the_files_of_its_format(raw):
    raw["models"] = {
        "a": {"source": "cls_books"},
        "b": {"source": "cls_books", "checkpoint": "deep/er/model.pt", "dictionary": "dict.txt"},
        "c": {"source": "cls_books", "format": "huggingface", "checkpoint": "hf/pytorch_model.bin"},
    }
    raw["grid"]["models"] = ["a"]
    models = resolve_config(raw)["models"]
    files = ("checkpoint", "dictionary", "config", "sentencepiece")
    assert [models["a"][key] for key in files] == ["model.pt", "dict.txt", None, "sentencepiece.bpe.model"]
    assert [models["b"][key] for key in files] == [
        "deep/er/model.pt", "dict.txt", None, "deep/er/sentencepiece.bpe.model",
    ]  # fmt: skip
    assert [models["c"][key] for key in files] == [
        "hf/pytorch_model.bin", None, "hf/config.json", "hf/sentencepiece.bpe.model",
    ]  # fmt: skip


@pytest.mark.parametrize(("kind", "key"), [("fairseq", "config"), ("huggingface", "dictionary")])
def test_a_file_that_the_format_has_not(raw, kind, key):
    name = raw["grid"]["models"][0]
    raw["models"][name] = {"source": "cls_books", "format": kind, key: "x"}
    with pytest.raises(SeedbedError) as error:
        resolve_config(raw)
    assert error.value.where == f"config, models.{name}.{key}"
    assert error.value.found == "x"


def test_text_columns_are_a_list(raw):
    name = raw["grid"]["datasets"][0]
    assert resolve_config(raw)["datasets"][name]["columns"]["text"] == ["text"]
    raw["datasets"][name]["columns"] = {"text": ["summary", "text"]}
    assert resolve_config(raw)["datasets"][name]["columns"]["text"] == ["summary", "text"]


def test_labels_that_are_the_same_as_text(raw):
    raw["datasets"]["reviews_fr"]["labels"] = [1, "1"]
    assert "a label stands twice" in refused(raw)


@pytest.mark.parametrize("key", ["labels", "label_names"])
@pytest.mark.parametrize("name", ["", "none"])
def test_a_class_may_not_be_called_like_a_missing_prediction(raw, key, name):
    dataset = raw["datasets"]["reviews_fr"]
    dataset.update({"labels": ["0", "1"], "label_names": None} | {key: [name, "good"]})
    message = refused(raw)
    assert f"config, datasets.reviews_fr.{key}" in message
    assert f"found: {name!r}" in message


def test_a_label_called_none_may_have_another_name(raw):
    raw["datasets"]["reviews_fr"] |= {"labels": ["none", "1"], "label_names": ["bad", "good"]}
    assert resolve_config(raw)["datasets"]["reviews_fr"]["labels"] == ["none", "1"]


def test_what_a_dataset_does_not_use_changes_nothing(raw):
    before = Plan(raw).shared.stamp("datasets", "reviews_fr")
    dataset = raw["datasets"]["reviews_fr"]
    dataset |= {"validation_split": {"size": 0.2, "seed": 3}, "neutral_ratings": "drop"}
    assert Plan(raw).shared.stamp("datasets", "reviews_fr") == before
    dataset["files"] = {"train": "train.csv", "test": "test.csv"}
    drawn = Plan(raw).shared.stamp("datasets", "reviews_fr")
    dataset["validation_split"]["seed"] = 4
    assert Plan(raw).shared.stamp("datasets", "reviews_fr") not in (before, drawn)


def shuffled(value):
    """The same configuration with the keys of every mapping in the other order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


def test_the_order_of_keys_changes_no_params(raw):
    wildcards = SimpleNamespace(
        dataset="reviews_fr", model="roberta_tiny_fr", source="reviews_fr",
        init="random", recipe="demo", seed="seed1",
    )  # fmt: skip
    plans = Plan(raw), Plan(shuffled(raw))
    for name in ("dataset", "model", "source", "fairseq_run", "transformers_run"):
        one, other = (repr(getattr(plan, name)(wildcards)) for plan in plans)
        assert one == other
    assert len({repr(plan.reporting()) for plan in plans}) == 1


def test_prose_changes_no_params(raw):
    before = Plan(raw)
    raw["datasets"]["reviews_fr"] |= {"description": "other words", "language": "br"}
    raw["sources"]["reviews_fr"] = before.config["sources"]["reviews_fr"] | {"licence": "another"}
    after = Plan(raw)
    assert after.reporting() == before.reporting()
    place = SimpleNamespace(source="reviews_fr", dataset="reviews_fr")
    assert after.source(place) == before.source(place)
    assert after.shared.stamp("sources", "reviews_fr") == before.shared.stamp("sources", "reviews_fr")


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
    with pytest.raises(SeedbedError, match="'reviews_fr' means something else in experiment 'another'"):
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
    with pytest.raises(SeedbedError, match="'reviews_fr' means something else in experiment 'first'"):
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


def test_three_domains_by_two_frameworks_by_two_inits_by_three_seeds(tmp_path):
    overlay = [ROOT / "config.yaml", ROOT / "experiments/cls_all.yaml"]
    plan = Plan({**load_config(overlay), "results": str(tmp_path)})
    assert len(plan.runs) == 36
    assert {run.dataset for run in plan.runs} == {"webis_books", "webis_dvd", "webis_music"}
    assert {plan.config["datasets"][run.dataset]["source"] for run in plan.runs} == {"webis_cls"}


# --- recipes that the grid leaves out, paths, and keys that stand twice ---


def test_values_that_do_not_go_together_are_refused_in_the_grid_alone(raw):
    raw["recipes"]["other"] = {"precision": "bfloat16"}
    resolve_config(raw)
    raw["grid"]["recipes"] = ["other"]
    assert "fairseq 0.12 has no bfloat16" in refused(raw)


def test_an_end_of_the_learning_rate_counts_where_the_schedule_has_one(raw):
    raw["recipes"]["demo"]["end_learning_rate"] = 1.0
    assert "ends at a higher learning rate than its peak" in refused(raw)
    raw["recipes"]["demo"]["schedule"] = "constant"
    resolve_config(raw)


def test_a_block_is_swept_by_its_parts(raw):
    raw["recipes"]["demo"]["sweep"] = {"head_init": [{"sd": 0.1}]}
    told = refused(raw)
    assert "cannot sweep 'head_init'" in told
    assert "did you mean 'head_init.sd'?" in told


def test_a_tilde_is_the_user_s_own_folder(raw, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    plan = Plan(raw | {"results": "~/mine"})
    assert plan.experiment_folder == f"{tmp_path}/mine/demo"
    assert "does not match" in refused(raw | {"results": "a{b}"})
    for key in ("results", "lock", "mirror"):
        told = refused(raw | {key: "~nosuchuser/x"})
        assert "unknown user in a path" in told
        assert f"config, {key}" in told


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("http://[foo/x.zip", "invalid location: Invalid IPv6 URL"),
        ("file://[x/x.zip", "invalid location: Invalid IPv6 URL"),
        ("~nosuchuser/x.zip", "unknown user in a path"),
        ("data/d{x}.zip", "a brace, which Snakemake takes for a wildcard"),
        ("", "'' should be non-empty"),
    ],
)
def test_a_location_that_is_none(raw, location, told):
    raw["sources"] = {"mine": {"locations": [location]}}
    raw["datasets"]["reviews_fr"]["source"] = "mine"
    message = refused(raw)
    assert told in message
    assert "config, sources.mine.locations" in message
    assert "hint:" in message


@pytest.mark.parametrize(
    ("text", "line", "also"),
    [
        ("recipes:\n  demo: {epochs: 2}\nrecipes:\n  demo: {batch_size: 4}\n", 3, "recipes, also on line 1"),
        ("recipes:\n  demo:\n    epochs: 2\n    epochs: 9\n", 4, "epochs, also on line 3"),
        ("x: [{a: 1, b: 2}, {a: 1,\n a: 2}]\n", 2, "a, also on line 1"),
        ('{"experiment": "one",\n "experiment": "two"}', 2, "experiment, also on line 1"),
    ],
)
def test_a_key_that_stands_twice_is_refused(tmp_path, text, line, also):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(SeedbedError, match="stands twice") as error:
        refuse_repeated_keys(path)
    assert error.value.where == f"{path}, line {line}"
    assert error.value.found == also


def test_config_files_without_repeated_keys_pass(tmp_path):
    for path in (ROOT / "config.yaml", *(ROOT / "experiments").glob("*.yaml")):
        refuse_repeated_keys(path)
    (tmp_path / "empty.yaml").touch()
    (tmp_path / "broken.yaml").write_text("a: [1")
    (tmp_path / "odd.yaml").write_text("a: &x [*x, {b: 1}]\n? [c, d]\n: 1\n")
    merged = "one: &a {x: 1}\nother: &b {y: 2}\nboth:\n  <<: *a\n  <<: *b\n"
    (tmp_path / "merged.yaml").write_text(merged)
    refuse_repeated_keys(tmp_path / "merged.yaml")
    for name in ("empty", "broken", "missing", "odd"):  # Snakemake says what is wrong with these
        refuse_repeated_keys(tmp_path / f"{name}.yaml")


LINES = """# mine
datasets:
  d.v2:
    labels: [a, b]
    files:
      train: x.csv
recipes: {r: {epochs: 0}}
"""


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (
            "config, datasets.d.v2.files.train: x.csv",
            "config, datasets.d.v2.files.train ({path}, line 6): x.csv",
        ),
        ("config, recipes.r.epochs", "config, recipes.r.epochs ({path}, line 7)"),
        ("config, datasets.d.v2.labels.1", "config, datasets.d.v2.labels.1 ({path}, line 4)"),
        ("config, datasets.d.v2; more", "config, datasets.d.v2 ({path}, line 3); more"),
        ("config, datasets.d", "config, datasets.d"),
        ("train.csv, line 3", "train.csv, line 3"),
    ],
)
def test_a_key_is_told_with_its_file_and_line(tmp_path, where, expected):
    path, later = tmp_path / "mine.yaml", tmp_path / "later.yaml"
    path.write_text(LINES)
    later.write_text("experiment: x\n")
    assert locate(where, [path, later, tmp_path / "gone.yaml"]) == expected.format(path=path)


# --- what newcomers write ---


@pytest.mark.parametrize(
    ("block", "line", "what", "hint"),
    [
        ("[no, yes]", 3, "reads the label no as true or false", 'labels: ["no", "yes"]'),
        ("[01, 02]", 3, "reads the label 01 as a number", 'labels: ["01", "02"]'),
        ("[1, 010]", 3, "reads the label 010 as a number", 'labels: ["1", "010"]'),
        ("[1_000, 1:30]", 3, "reads the label 1_000 as a number", 'labels: ["1_000", "1:30"]'),
        ("[0.0, 1.0]", 3, "reads the label 0.0 as a number", 'labels: ["0.0", "1.0"]'),
        ("[2024-01-31, later]", 3, "reads the label 2024-01-31 as a date", 'labels: ["2024-01-31", "later"]'),
        ("\n      - some\n      - null", 5, "reads the label null as nothing", 'labels: ["some", "null"]'),
        ("[a, b]\n    label_names: [on, off]", 4, "reads the label on as true", 'label_names: ["on", "off"]'),
    ],
)
def test_labels_that_yaml_changes_are_refused_with_the_quotes_they_need(tmp_path, block, line, what, hint):
    path = tmp_path / "mine.yaml"
    path.write_text(f"datasets:\n  d:\n    labels: {block}\n")
    with pytest.raises(SeedbedError) as error:
        refuse_changed_labels(path)
    assert what in error.value.what
    assert error.value.where == f"{path}, line {line}"
    assert error.value.hint == f"put it into quotes: {hint}"
    key, _, listed = hint.partition(": ")
    path.write_text(f"datasets:\n  d:\n    {key}: {listed}\n")
    refuse_changed_labels(path)


def test_labels_that_yaml_leaves_alone_pass(tmp_path):
    path = tmp_path / "mine.yaml"
    for text in ("labels: [0, 1, -1, 12]", "labels: [a, 'no', \"1.0\", très bon]", "labels: 3", "{}", ""):
        path.write_text(f"datasets:\n  d: {{{text.strip('{}')}}}\n")
        refuse_changed_labels(path)
    for path in (ROOT / "config.yaml", *(ROOT / "experiments").glob("*.yaml")):
        refuse_changed_labels(path)


@pytest.mark.parametrize("label", [True, 1.5, None])
def test_a_label_that_is_no_text_is_refused_with_what_to_write(raw, label):
    raw["datasets"]["reviews_fr"]["labels"] = ["a", label]
    message = refused(raw)
    assert f"a label is not text: {label!r}" in message
    assert 'labels: ["no", "yes"]' in message


def test_spaces_around_a_label_do_not_count_and_forms_of_unicode_are_one(raw):
    raw["datasets"]["reviews_fr"]["labels"] = ["negative ", "\xa0positive"]
    assert resolve_config(raw)["datasets"]["reviews_fr"]["labels"] == ["negative", "positive"]
    raw["datasets"]["reviews_fr"]["labels"] = ["déçu", "de\u0301çu"]
    assert "a label stands twice" in refused(raw)


@pytest.mark.parametrize("task", ["regression", "token_classification", "nli", ["a"]])
def test_an_unknown_task_is_told_which_there_are(raw, task):
    raw["datasets"]["reviews_fr"]["task"] = task
    message = refused(raw)
    assert "did you mean" not in message
    assert "give classification (one of several labels for a text) or generation" in message


def yaml_of(hint: str) -> dict:
    """What a hint says to add, read as YAML: one config."""
    import yaml

    added: dict = {}
    text = hint.partition("To define it, add ")[2].replace(", and grid: ", ", grid: ")
    for key, content in yaml.safe_load(f"{{{text}}}").items():
        added[key] = content
    return added


@pytest.mark.parametrize(
    ("kind", "name", "form"),
    [
        ("models", "xlm-roberta-base", "huggingface"),
        ("models", "someone/small-encoder", "huggingface"),
        ("models", "almanach/camembert-base", "huggingface"),  # of which the table of sources knows
        ("models", "openai-community/gpt2", "causal"),
        ("datasets", "imdb", None),
        ("recipes", "short", None),
    ],
)
def test_a_name_that_is_not_defined_is_told_with_a_definition_that_works(raw, kind, name, form):
    raw["grid"][kind] = [name]
    with pytest.raises(SeedbedError, match=f"{name!r} is not defined under {kind}") as error:
        resolve_config(raw)
    added = yaml_of(error.value.hint)
    for key, content in added.items():
        raw[key] = {**(raw.get(key) or {}), **content}
    if kind == "recipes":
        assert resolve_config(raw)["recipes"][name]["epochs"] == 3
    elif form == "causal":
        assert "is not one for the task classification" in refused(raw)  # and why
    else:
        (short,) = added[kind]
        config = resolve_config(raw)
        assert config["grid"][kind] == [short]
        assert config[kind][short].get("format") == (form or "csv")
    if name == "almanach/camembert-base":
        assert added["models"]["camembert-base"]["source"] == "camembert_base_hf"
    elif "/" in name:
        assert added["sources"][name.split("/")[1]]["locations"] == [f"hf://{name}"]


@pytest.mark.parametrize(
    "name",
    [
        "roberta-base",
        "FacebookAI/roberta-large",
        "bert-base-uncased",
        "microsoft/deberta-v3-base",
        "t5-small",
    ],
)
def test_a_model_of_the_hub_that_cannot_be_read_is_not_offered(raw, name):
    raw["grid"]["models"] = [name]
    message = refused(raw)
    assert f"{name} cannot be added: " in message
    assert "which is not supported" in message
    assert "To define it" not in message


@pytest.mark.parametrize(
    "columns", [["sentence1", "sentence2"], ["premise", "hypothesis"], ["s1", "s2"], ["text_a", "text_b"],
                ["Question1", "Question2"], ["topic", "sentenceA", "sentenceB"]]
)  # fmt: skip
def test_pairs_of_texts_are_refused(raw, columns):
    raw["datasets"]["reviews_fr"]["columns"] = {"text": columns}
    message = refused(raw)
    assert "seem to be pairs. Seedbed takes single texts" in message
    assert "datasets.reviews_fr.columns.text" in message


@pytest.mark.parametrize("columns", [["title", "message"], ["summary", "text"], ["text"], ["data", "extra"]])
def test_texts_of_several_columns_that_are_no_pairs_pass(raw, columns):
    raw["datasets"]["reviews_fr"]["columns"] = {"text": columns}
    assert resolve_config(raw)["datasets"]["reviews_fr"]["columns"]["text"] == columns


def test_a_delimiter_is_for_csv_and_a_comma_changes_no_definition(raw):
    dataset = raw["datasets"]["reviews_fr"]
    del dataset["delimiter"]
    before = Plan(raw).shared.stamp("datasets", "reviews_fr")
    for delimiter in (None, ","):
        dataset["delimiter"] = delimiter
        assert Plan(raw).shared.stamp("datasets", "reviews_fr") == before
    dataset["delimiter"] = ";"
    assert resolve_config(raw)["datasets"]["reviews_fr"]["delimiter"] == ";"
    dataset["format"] = "tsv"
    assert "the format tsv has no delimiter to choose" in refused(raw)
    dataset["delimiter"] = ";;"
    assert "datasets.reviews_fr.delimiter" in refused(raw)


# --- names that become parts of paths -----------------------------------------------------------------------

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


@pytest.mark.parametrize("key", ["results", "lock", "mirror"])
@pytest.mark.parametrize(
    "path", ["r\n", "r\x1b[31m", "r\u2028", "r\u00a0", " r", "a/" + "x" * 256, "é" * 128]
)
def test_paths_that_no_file_system_has_or_that_a_slip_made(raw, key, path):
    message = refused(raw | {key: path})
    assert f"config, {key}" in message
    assert "\x1b" not in message


@pytest.mark.parametrize("names", [["a/b"], ["../x"], ["a\nb"], ["a\x1b[31m"], ["b" * 200], ["x/y", "z"]])
def test_swept_values_that_make_no_folder_are_refused(raw, names):
    raw["recipes"]["demo"].update(method="lora", sweep={"lora.target_modules": [names]})
    message = refused(raw)
    assert "a recipe's name that cannot be a folder's" in message
    assert "config, recipes.demo.sweep" in message
    assert "\x1b" not in message


@pytest.mark.parametrize("key", ["labels", "label_names"])
@pytest.mark.parametrize("label", ["a\nb", "a\x1b[31m", "a\u202eb", "a\u2028b", "a\tb", "\x9b"])
def test_labels_are_one_line_without_control_characters(raw, key, label):
    raw["datasets"]["reviews_fr"][key] = [label, "1"]
    message = refused(raw)
    assert f"datasets.reviews_fr.{key}" in message
    assert ascii(label)[1:-1] in message


@pytest.mark.parametrize("location", ["data\n.zip", "http://h/\x1b[2J", "file:///a\u2028b", "hf://a/b\r"])
def test_locations_hold_no_control_characters(raw, location):
    raw["sources"] = {"s": {"locations": [location]}}
    raw["datasets"]["reviews_fr"]["source"] = "s"
    message = refused(raw)
    assert "config, sources.s.locations" in message
    assert location not in message
