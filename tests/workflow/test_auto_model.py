"""An encoder of the format auto from its files to the report, through the real Snakefile."""

import json

import pytest
from builders_encoders import make_encoder
from builders_workflow import link_repository, small_config, write_lab_dataset
from harness import Project, succeeded


@pytest.mark.slow
def test_an_encoder_runs_with_transformers_alone_and_the_report_says_so(tmp_path):
    inputs = tmp_path / "inputs"
    write_lab_dataset(inputs / "books")
    make_encoder(inputs / "generated", "DeBERTa-v3", positions=60)
    config = small_config(inputs)
    config["models"]["generated"]["format"] = "auto"
    project = Project(link_repository(tmp_path / "work"), config=config)
    planned = succeeded(project.snakemake("--dry-run"))
    assert "The model generated (format: auto) runs without fairseq" in planned.stdout + planned.stderr
    succeeded(project.snakemake("--cores", "2"))
    assert not {"check_parity", "binarize", "finetune_fairseq", "tokenize_texts"} & project.ran()
    rows = project.rows("results/small/runs.csv")
    assert {(row["framework"], row["init"]) for row in rows} == {
        ("transformers", "pretrained"), ("transformers", "random"),
    }  # fmt: skip
    record = json.loads(
        next(project.results.rglob("random/quick/seed0/run.json")).read_text(encoding="utf-8")
    )
    assert record["packed"] is False
    told = {each["setting"]: each["done"] for each in record["differences"]}
    assert told["random_init_sd"].startswith("DebertaV2ForSequenceClassification's own initialisation")
    counted = project.rows("results/models/generated/parameters.csv")
    assert not any(row["formula"] for row in counted)
    page = (project.results / "small/report.html").read_text(encoding="utf-8")
    assert "generated runs without fairseq" in page
    assert "counted from the weights" in page
    again = succeeded(project.snakemake())
    assert "Nothing to be done" in again.stdout + again.stderr
