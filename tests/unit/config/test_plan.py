"""The run table of config files, and what enters params and tables."""

import copy
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders import load_config
from builders_config import demo_config

from seedbed.config.plan import Plan
from seedbed.config.resolve import resolve_config
from seedbed.config.runs import build_runs
from seedbed.core.errors import SeedbedError

ROOT = Path(__file__).parents[3]


@pytest.fixture
def raw(tmp_path):
    return demo_config(tmp_path)


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
