"""Pairs of texts from their file to the report, in both frameworks, through the real Snakefile."""

import csv

import pytest
from builders import make_fairseq_checkpoint
from builders_pairs import make_pairs
from builders_workflow import SHAPE, link_repository, small_config
from harness import Project, succeeded

SIZES = {"train": 24, "validation": 12, "test": 16}


@pytest.mark.slow
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_pairs_run_in_both_frameworks(tmp_path, task):
    of_numbers = task == "regression"
    inputs = tmp_path / "inputs"
    (inputs / "books").mkdir(parents=True)
    for number, (split, size) in enumerate(SIZES.items()):
        with open(inputs / "books" / f"{split}.csv", "w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["premise", "hypothesis", "label"])
            rows = [row | ({"label": row["label"] + len(row["text"]) / 50} if of_numbers else {})
                    for row in make_pairs(size, number)]  # fmt: skip
            writer.writerows(row.values() for row in rows)
    make_fairseq_checkpoint(inputs / "generated", **SHAPE)
    config = small_config(inputs)
    config["datasets"]["books"] |= {
        "format": "csv",
        "files": {split: f"{split}.csv" for split in SIZES},
        "columns": {"text": "premise", "text_pair": "hypothesis"},
    }
    if of_numbers:
        dataset = config["datasets"]["books"] | {"task": task}
        config["datasets"]["books"] = {
            key: value for key, value in dataset.items() if key not in ("labels", "label_names")
        }
    project = Project(link_repository(tmp_path / "work"), config=config)
    succeeded(project.snakemake("--cores", "2"))
    binarized = {name for name in project.ran() if name.startswith("binarize")}
    assert binarized == {"binarize_numbers_of_pairs" if of_numbers else "binarize_pairs"}
    rows = project.rows("results/small/runs.csv")
    assert {(row["framework"], row["init"]) for row in rows} == {
        (framework, init) for framework in ("fairseq", "transformers") for init in ("pretrained", "random")
    }
    assert (project.results / "data/books/generated/binarized/input1/test.bin").exists()
    audited = {(row["split"], row["check"]): row for row in project.rows("results/small/data_audit.csv")}
    assert int(audited["test", "truncated to 40 tokens (the model)"]["count"]) > 0
    page = (project.results / "small/report.html").read_text(encoding="utf-8")
    assert ("The sign ‖ stands between the two texts." in page) == bool(
        project.rows("results/small/never_right.csv")
    )
    again = succeeded(project.snakemake())
    assert "Nothing to be done" in again.stdout + again.stderr
