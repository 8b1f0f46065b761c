"""Questions and a causal model from files to report: all methods, through the real Snakefile."""

import json

import pytest
from harness import Project, copy, failed, succeeded
from stock import METHODS, answers_config


@pytest.fixture
def answers(stock) -> Project:
    """The finished experiment; not to be changed."""
    return stock.answers()


def test_every_method_is_in_the_tables(answers):
    rows = answers.rows("results/answers/runs.csv")
    assert [row["method"] for row in rows] == list(METHODS)
    for row in rows:
        assert int(row["test_groups"]) < int(row["test_examples"])
        assert float(row["test_loss"]) > 0
    counts = {row["method"]: int(row["trainable_parameters"]) for row in rows}
    assert counts["none"] == 0 < counts["lora"] == counts["qlora"] < counts["full"]
    contrasts = answers.rows("results/answers/contrasts.csv")
    assert {row["family"] for row in contrasts} == {"method"}
    assert {row["metric"] for row in contrasts} == {"loss", "token_accuracy", "exact_match", "f1"}
    counted = answers.rows("results/answers/trainable_parameters.csv")
    assert all(row["expected"] == row["counted"] for row in counted)


def test_adapters_are_kept_and_the_report_shows_answers(answers):
    runs = answers.folder / "results/answers/runs/questions/generated/transformers/pretrained"
    for method in ("lora", "qlora"):
        config = json.loads((runs / method / "seed0/adapter/adapter_config.json").read_text())
        assert (config["r"], config["base_model_name_or_path"]) == (4, "models/generated/huggingface")
    assert not (runs / "full/seed0/adapter").exists()
    page = (answers.folder / "results/answers/report.html").read_text(encoding="utf-8")
    assert "Answers before and after" in page
    assert "test questions on" in (answers.folder / "results/answers/summary.md").read_text(encoding="utf-8")


def test_a_second_start_finds_nothing_to_do(answers):
    done = succeeded(answers.snakemake())
    assert "Nothing to be done" in done.stdout + done.stderr


@pytest.mark.slow
def test_a_module_that_is_not_there_is_an_error_that_names_those_that_are(stock, tmp_path):
    project = copy(stock.answers(), tmp_path / "work")
    config = answers_config(stock.folder / "answers-inputs", target_modules=["q_proj"])
    told = failed(project.snakemake(config=config | {"experiment": "wrong"}))
    assert "q_proj" in told
    assert "query_key_value" in told
    assert "Traceback" not in told
    assert not (project.folder / "results/wrong/trainable_parameters.csv").exists()
