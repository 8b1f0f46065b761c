"""The run table of config files, and what enters params and tables."""

import copy
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders import load_config
from builders_config import SEQ_CLS, demo_config, questions_config, refusal

from seedbed.config.plan import Plan
from seedbed.config.resolve import resolve_config
from seedbed.config.runs import build_runs
from seedbed.core.errors import SeedbedError

ROOT = Path(__file__).parents[3]


@pytest.fixture
def raw(tmp_path):
    return demo_config(tmp_path)


@pytest.fixture
def questions(tmp_path):
    return questions_config(tmp_path)


def test_the_default_experiment_is_two_frameworks_by_two_inits_by_three_seeds(raw):
    runs = build_runs(resolve_config(raw))
    assert len(runs) == 12
    assert {(run.framework, run.init, run.init_seed) for run in runs} == {
        (framework, init, seed)
        for framework in ("fairseq", "transformers")
        for init in ("pretrained", "random")
        for seed in (0, 1, 2)
    }


def test_an_overlay_replaces_lists_whole_so_nothing_of_the_demo_leaks_in(tmp_path):
    names = ("config", "experiments/cls_books", "experiments/cls_books_lr")
    raw = load_config([ROOT / f"{name}.yaml" for name in names])
    plan = Plan({**raw, "results": str(tmp_path)})
    assert {run.dataset for run in plan.runs} == {"cls_books"}
    assert {run.model for run in plan.runs} == {"roberta_small_fr"}
    assert len(plan.runs) == 48


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


def test_a_run_outside_the_grid_is_an_error(raw):
    plan = Plan(raw)
    wildcards = SimpleNamespace(
        dataset="reviews_fr", model="roberta_tiny_fr", init="random", recipe="demo", seed="seed9"
    )
    with pytest.raises(SeedbedError, match="not in the grid"):
        plan.fairseq_run(wildcards)


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


def test_three_domains_by_two_frameworks_by_two_inits_by_three_seeds(tmp_path):
    overlay = [ROOT / "config.yaml", ROOT / "experiments/cls_all.yaml"]
    plan = Plan({**load_config(overlay), "results": str(tmp_path)})
    assert len(plan.runs) == 36
    assert {run.dataset for run in plan.runs} == {"webis_books", "webis_dvd", "webis_music"}
    assert {plan.config["datasets"][run.dataset]["source"] for run in plan.runs} == {"webis_cls"}


@pytest.mark.parametrize(("name", "classes"), [("flue_pawsx", 2), ("flue_xnli", 3)])
def test_flue_has_pairs(tmp_path, name, classes):
    overlay = [ROOT / "config.yaml", ROOT / f"experiments/{name}.yaml"]
    plan = Plan({**load_config(overlay), "results": str(tmp_path)})
    assert len(plan.runs) == 12
    (dataset,) = {run.dataset for run in plan.runs}
    assert dataset in plan.texts_of(2, "classes").split("|")
    assert len(plan.config["datasets"][dataset]["labels"]) == classes


# --- generation and adapters ---


def test_generation_may_start_from_random_weights_and_train_in_bfloat16(questions):
    questions["grid"]["inits"] = ["pretrained", "random"]
    questions["recipes"]["whole"]["precision"] = "bfloat16"
    runs = build_runs(resolve_config(questions))
    assert len(runs) == 16
    assert {run.init for run in runs} == {"pretrained", "random"}


@pytest.mark.parametrize(
    ("recipe", "kept"),
    [
        ("none", {"loss_on", "gradient_checkpointing"}),
        ("whole", {"loss_on", "gradient_checkpointing"}),
        ("adapter", {"loss_on", "gradient_checkpointing", "lora", "frozen_dtype"}),
        ("packed", {"loss_on", "gradient_checkpointing", "lora", "frozen_dtype", "quantization"}),
    ],
)
def test_what_a_method_does_not_use_changes_no_run(questions, recipe, kept):
    place = SimpleNamespace(dataset="asked", model="bloom", init="pretrained", recipe=recipe, seed="seed0")
    before = Plan(copy.deepcopy(questions)).transformers_run(place)
    changes = {
        "lora": {"r": 2},
        "frozen_dtype": "bfloat16",
        "quantization": {"bnb_4bit_quant_type": "fp4"},
        "loss_on": "all",
        "gradient_checkpointing": True,
    }
    for key, value in changes.items():
        changed = copy.deepcopy(questions)
        changed["recipes"][recipe][key] = value
        after = Plan(changed).transformers_run(place)
        assert (key in after["settings"]) == (key in kept)
        assert (after != before) == (key in kept)
    assert before["task"] == "generation"


def test_fairseq_trains_no_adapter_and_all_other_runs_are_there(raw):
    raw["recipes"]["adapter"] = {"method": "lora", "lora": SEQ_CLS, "precision": "bfloat16"}
    raw["grid"]["recipes"] = ["demo", "adapter"]
    runs = build_runs(resolve_config(raw))
    counts = {(run.framework, run.method): 0 for run in runs}
    for run in runs:
        counts[run.framework, run.method] += 1
    assert counts == {("fairseq", "full"): 6, ("transformers", "full"): 6, ("transformers", "lora"): 6}
    raw["grid"]["frameworks"] = ["fairseq"]
    error = refusal(raw)
    assert "lora needs Transformers" in error.what
    assert "config, grid.frameworks" in error.where


def test_the_tables_can_be_planned_from_what_they_are_given(questions):
    plan = Plan(questions)
    reporting = plan.aggregation()
    assert reporting["task"] == plan.task.name == "generation"
    assert reporting["datasets"].keys() == {"asked"}
    assert "label_names" not in reporting["datasets"]["asked"]
    assert build_runs(reporting) == plan.runs


def test_files_that_the_task_has_not_are_no_inputs(questions, raw):
    base = load_config([ROOT / "config.yaml"]) | {"results": raw["results"]}
    for plan, kind, other in ((Plan(questions), "causal", "encoder"), (Plan(base), "encoder", "causal")):
        assert plan.task.model == kind
        assert plan.only(kind, plan.per_dataset("test.jsonl")) == plan.per_dataset("test.jsonl") != []
        assert plan.only(other, plan.per_dataset("test.jsonl")) == []


def test_the_table_of_trainable_parameters_is_there_if_weights_are_frozen(questions):
    plan = Plan(copy.deepcopy(questions))
    assert plan.trainable_table == [f"{plan.experiment_folder}/trainable_parameters.csv"]
    assert plan.freezing.keys() == {"adapter", "packed"}
    assert plan.head_size is None
    questions["recipes"]["adapter"]["learning_rate"] = 1e-3
    assert Plan(copy.deepcopy(questions)).freezing == plan.freezing  # it trains the same parameters
    questions["grid"]["recipes"] = ["none", "whole"]
    assert Plan(questions).trainable_table == []


def test_the_layers_that_a_recipe_trains_count_for_its_table(raw):
    raw["recipes"]["demo"] |= {"method": "last_layers", "last_layers": 2}
    plan = Plan(raw)
    asked = {"method": "last_layers", "family": "demo", "last_layers": 2}
    assert plan.freezing == {"demo": asked}
    assert plan.adapter_recipes() == {}
    assert {run.framework for run in plan.runs} == {"fairseq", "transformers"}


def test_the_heads_of_classifiers_have_the_classes_of_the_dataset(raw):
    raw["datasets"]["reviews_fr"] |= {"labels": [0, 1, 2], "label_names": None}
    assert Plan(raw).head_size == 3


def test_no_name_of_one_task_matches_the_rules_of_the_other(questions):
    plan = Plan(questions)
    for kind, asked, labelled in (
        ("datasets", "asked", "reviews_fr"),
        ("models", "bloom", "roberta_tiny_fr"),
    ):
        assert re.fullmatch(plan.pattern(kind, "answers"), asked)
        assert re.fullmatch(plan.pattern(kind, "classes"), labelled)
        assert not re.fullmatch(plan.pattern(kind, "answers"), labelled)
        assert not re.fullmatch(plan.pattern(kind, "classes"), asked)
        assert re.fullmatch(plan.pattern(kind), asked)
    nothing = Plan(load_config([ROOT / "config.yaml"]) | {"results": questions["results"]}).pattern(
        "models", "answers"
    )
    assert [text for text in ("", "roberta_tiny_fr") if re.search(nothing, text)] == []


def test_a_causal_run_asks_for_more_memory_at_each_attempt(questions, raw):
    base = Plan(load_config([ROOT / "config.yaml"]) | {"results": raw["results"]})
    asked = Plan(questions)
    place = SimpleNamespace()
    assert asked.run_memory(place, 1) > base.run_memory(place, 1)
    assert asked.run_memory(place, 3) == 3 * asked.run_memory(place, 1)
    batched = Plan(questions | {"batches": {"runs": 4, "at_once": 2}})
    assert batched.batch_memory(place, 1) == 2 * asked.run_memory(place, 1)


@pytest.mark.parametrize(
    ("overlays", "runs", "methods"),
    [
        (["lora_bloom"], 12, {"none", "lora", "qlora", "full"}),
        (["lora_bloom", "lora_bloom_lr"], 15, {"lora"}),
        (["lora_bloom", "lora_llama"], 6, {"none", "lora"}),
        (["demo_lora", "demo_lora_lr"], 18, {"none", "lora"}),
        (["cls_books", "cls_books_lora"], 18, {"full", "lora"}),
    ],
)
def test_experiments_with_adapters(tmp_path, overlays, runs, methods):
    files = [ROOT / "config.yaml", *(ROOT / f"experiments/{name}.yaml" for name in overlays)]
    plan = Plan({**load_config(files), "results": str(tmp_path)})
    assert Path(plan.experiment_folder).name == overlays[-1]
    assert len(plan.runs) == runs
    assert {run.method for run in plan.runs} == methods
    assert {run.framework for run in plan.runs} == {"transformers"}


def test_only_datasets_with_clusters_have_their_splits_as_an_input_of_the_tables(raw, questions):
    assert Plan(copy.deepcopy(raw)).clustered("splits.json") == []
    assert Plan(questions).clustered("splits.json") == []
    raw["datasets"]["reviews_fr"] |= {"format": "csv", "columns": {"cluster": "author"}}
    plan = Plan(copy.deepcopy(raw))
    assert plan.clustered("splits.json") == plan.per_dataset("splits.json") != []
    # clusters are no part of a run
    raw["datasets"]["reviews_fr"]["columns"] = {}
    others = Plan(raw)
    assert plan.runs == others.runs
    for run in plan.runs:
        assert plan._params(plan.find_run(run.folder)) == others._params(others.find_run(run.folder))
