"""Numbers to predict, from a table of marks to the report in both frameworks, through the real Snakefile."""

import json

import pytest
from builders import make_fairseq_checkpoint, make_reviews
from builders_workflow import SHAPE, link_repository, small_config
from harness import Project, failed, succeeded

MARKS = {"train": 40, "test": 20}


def write_marks(folder, change=lambda row: row):
    """Tables of reviews with marks out of 20: low ones of bad reviews, high ones of good ones."""
    folder.mkdir(parents=True)
    for seed, (split, size) in enumerate(MARKS.items()):
        rows = [
            f"{index % 5 + 12 * int(review['label'])}.5\t{review['text']}"
            for index, review in enumerate(make_reviews(size, seed=seed))
        ]
        (folder / f"{split}.tsv").write_text("\n".join(["mark\ttext", *map(change, rows)]) + "\n")


def marks_config(inputs):
    config = small_config(inputs)
    config["sources"]["marks"] = {"locations": [str(inputs / "marks")]}
    config["datasets"] = {
        "marks": {
            "task": "regression", "source": "marks", "files": {"train": "train.tsv", "test": "test.tsv"},
            "columns": {"label": "mark"}, "validation_split": {"size": 10},
        }
    }  # fmt: skip
    config["recipes"]["adapter"] = {
        "method": "lora", "epochs": 1, "learning_rate": 1e-3,
        "lora": {"r": 2, "target_modules": ["query"], "task_type": "SEQ_CLS"},
    }  # fmt: skip
    config["grid"] |= {"datasets": ["marks"], "recipes": ["quick", "adapter"], "seeds": [0, 1]}
    return config | {"statistics": {"replicates": 400}}


@pytest.mark.slow
def test_marks_are_predicted_by_both_frameworks_and_by_an_adapter(tmp_path):
    inputs = tmp_path / "inputs"
    write_marks(inputs / "marks")
    make_fairseq_checkpoint(inputs / "generated", **SHAPE)
    project = Project(link_repository(tmp_path / "work"), config=marks_config(inputs))
    succeeded(project.snakemake("--cores", "2"))
    assert {"binarize_numbers", "bag_of_words", "finetune_fairseq", "finetune_transformers"} <= project.ran()
    runs = project.rows("results/small/runs.csv")
    assert len(runs) == 2 * 2 * 3
    scale = json.loads((project.results / "data/marks/labels.json").read_text())
    assert {"mean", "sd"} == scale.keys()
    for row in runs:
        assert -1 <= float(row["test_pearson"]) <= 1
        # no head has moved far from the mean, where the error is the variance
        assert 0 < float(row["test_mse"]) < 3 * scale["sd"] ** 2
    summary = project.rows("results/small/summary.csv")
    assert {row["metric"] for row in summary} == {"pearson", "spearman", "mse"}
    assert all(row["bag_of_words"] and row["majority_share"] for row in summary)
    contrasts = project.rows("results/small/contrasts.csv")
    assert {row["family"] for row in contrasts} == {"init", "framework", "method"}
    counted = project.rows("results/small/trainable_parameters.csv")
    assert all(row["expected"] == row["counted"] for row in counted)
    page = (project.results / "small/report.html").read_text(encoding="utf-8")
    assert "mean of the training values" in page
    assert "majority class" not in page
    assert (project.results / "small/figures/test_metric.svg").exists()
    again = succeeded(project.snakemake())
    assert "Nothing to be done" in again.stdout + again.stderr


@pytest.mark.slow
def test_a_decimal_comma_stops_the_workflow_before_any_training(tmp_path):
    inputs = tmp_path / "inputs"
    write_marks(inputs / "marks", lambda row: row.replace(".5\t", ",5\t"))
    make_fairseq_checkpoint(inputs / "generated", **SHAPE)
    project = Project(link_repository(tmp_path / "work"), config=marks_config(inputs))
    told = failed(project.snakemake("--cores", "2"))
    assert "train.tsv, line 2" in told
    assert "write decimals with a point: 3.5, not 3,5" in told
    assert not (project.results / "small/runs").exists()
