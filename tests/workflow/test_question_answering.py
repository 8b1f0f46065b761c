"""Questions and a causal model from files to report: all methods, through the real Snakefile."""

import json

import pytest
from builders_causal import make_causal_model, make_passages, write_questions
from builders_workflow import failed, link_repository, succeeded

METHODS = ("none", "lora", "qlora", "full")


def overlay(folder, **lora):
    """An experiment of one seed with a recipe for each method, on made-up questions and a random model."""
    adapter = {"r": 4, "lora_alpha": 8, "target_modules": ["query_key_value"], **lora}
    recipes = {name: {"method": name, "epochs": 1, "batch_size": 4, "dropout": 0.0} for name in METHODS}
    recipes["none"] = {"method": "none"}
    for name in ("lora", "qlora"):
        recipes[name]["lora"] = adapter
    return {
        "experiment": "answers",
        "grid": {
            "datasets": ["questions"], "models": ["generated"], "recipes": list(METHODS), "seeds": [0],
            "inits": ["pretrained"],
        },
        "sources": {
            "questions": {"locations": [str(folder / "questions")]},
            "generated": {"locations": [str(folder / "generated")]},
        },
        "datasets": {
            "questions": {
                "task": "generation", "source": "questions", "format": "jsonl",
                "files": {"train": "all.jsonl"},
                "columns": {"context": "context"}, "validation_split": {"size": 8}, "test_split": {"size": 8},
                "template": "Texte : {context}\nQuestion : {question}\nRéponse :",
            }
        },
        "models": {"generated": {"source": "generated", "format": "causal"}},
        "recipes": recipes,
        "evaluation": {"max_new_tokens": 4},
        "statistics": {"replicates": 400},
    }  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    (folder / "questions").mkdir()
    write_questions(folder / "questions" / "all.jsonl", make_passages(12, each=3))
    make_causal_model(folder / "generated")
    return link_repository(folder)


@pytest.fixture(scope="module")
def finished(project):
    succeeded(project.snakemake(config=overlay(project.folder)))
    return project


def test_every_method_is_in_the_tables(finished):
    rows = finished.rows("results/answers/runs.csv")
    assert [row["method"] for row in rows] == list(METHODS)
    for row in rows:
        assert int(row["test_groups"]) < int(row["test_examples"])
        assert float(row["test_loss"]) > 0
    counts = {row["method"]: int(row["trainable_parameters"]) for row in rows}
    assert counts["none"] == 0 < counts["lora"] == counts["qlora"] < counts["full"]
    contrasts = finished.rows("results/answers/contrasts.csv")
    assert {row["family"] for row in contrasts} == {"method"}
    assert {row["metric"] for row in contrasts} == {"loss", "token_accuracy", "exact_match", "f1"}
    counted = finished.rows("results/answers/trainable_parameters.csv")
    assert all(row["expected"] == row["counted"] for row in counted)


def test_adapters_are_kept_and_the_report_shows_answers(finished):
    runs = finished.folder / "results/answers/runs/questions/generated/transformers/pretrained"
    for method in ("lora", "qlora"):
        config = json.loads((runs / method / "seed0/adapter/adapter_config.json").read_text())
        assert (config["r"], config["base_model_name_or_path"]) == (4, "models/generated/huggingface")
    assert not (runs / "full/seed0/adapter").exists()
    page = (finished.folder / "results/answers/report.html").read_text(encoding="utf-8")
    assert "Answers before and after" in page
    assert "texts." in (finished.folder / "results/answers/summary.md").read_text(encoding="utf-8")


def test_a_second_start_finds_nothing_to_do(finished):
    done = succeeded(finished.snakemake(config=overlay(finished.folder)))
    assert "Nothing to be done" in done.stdout + done.stderr


def test_a_module_that_is_not_there_is_an_error_that_names_those_that_are(finished):
    config = overlay(finished.folder, target_modules=["q_proj"]) | {"experiment": "wrong"}
    told = failed(finished.snakemake(config=config))
    assert "q_proj" in told
    assert "query_key_value" in told
    assert "Traceback" not in told
    assert not (finished.folder / "results/wrong/trainable_parameters.csv").exists()
