"""Texts with any number of labels from files to the report, through the real Snakefile."""

import json

import pytest
from builders import make_fairseq_checkpoint, make_reviews
from builders_workflow import SHAPE, link_repository, small_config
from harness import Project, succeeded

LABELS = ["amour", "crime", "guerre"]
SIZES = {"train": 60, "test": 30}


def write_dataset(folder):
    """Reviews with a label for each word of a label, as CSV; validation is drawn."""
    folder.mkdir(parents=True)
    for seed, (split, size) in enumerate(SIZES.items()):
        lines = ["text,labels"]
        for index, review in enumerate(make_reviews(size, seed=seed)):
            held = [label for place, label in enumerate(LABELS) if index >> place & 1]
            lines.append(f'"{" ".join(held)} {review["text"]}",{"|".join(held)}')
        (folder / f"{split}.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")


@pytest.mark.slow
def test_texts_with_any_number_of_labels_run_from_files_to_report(tmp_path):
    inputs = tmp_path / "inputs"
    write_dataset(inputs / "books")
    make_fairseq_checkpoint(inputs / "generated", **SHAPE)
    config = small_config(inputs)
    config["datasets"]["books"] = {
        "task": "multilabel",
        "source": "books",
        "files": {"train": "train.csv", "test": "test.csv"},
        "columns": {"label": "labels"},
        "labels": LABELS,
        "label_separator": "|",
        "validation_split": {"size": 0.3},
        "near_duplicates": None,
    }
    config["recipes"]["quick"] |= {"epochs": 3, "learning_rate": 1e-2}
    project = Project(link_repository(tmp_path / "work"), config=config)
    planned = succeeded(project.snakemake("--dry-run"))
    assert "runs without fairseq, which cannot train the task multilabel" in planned.stdout + planned.stderr
    succeeded(project.snakemake("--cores", "2"))
    assert not {"binarize", "finetune_fairseq"} & project.ran()
    rows = project.rows("results/small/runs.csv")
    assert {row["framework"] for row in rows} == {"transformers"}
    assert all(0 <= float(row[f"test_{name}"]) <= 1 for row in rows for name in ("micro_f1", "macro_f1"))
    folder = project.results / "small/runs" / "books/generated/transformers/random"
    record = json.loads(next(folder.rglob("run.json")).read_text(encoding="utf-8"))
    assert record["selected"]["metric"] == "micro_f1"
    assert set(record["constant_answers"]) == {"micro_f1", "macro_f1", "subset_accuracy"}
    summary = project.rows("results/small/summary.csv")
    best = [row for row in summary if row["selection"] == "equal" and row["metric"] == "micro_f1"]
    assert all(float(row["bag_of_words"]) > float(row["majority_share"]) for row in best)
    assert {row["metric"] for row in project.rows("results/small/contrasts.csv")} >= {"subset_accuracy"}
    page = (project.results / "small/report.html").read_text(encoding="utf-8")
    assert "micro-F1" in page
    assert "best constant answer" in page
    again = succeeded(project.snakemake())
    assert "Nothing to be done" in again.stdout + again.stderr
