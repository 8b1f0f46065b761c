"""Whole workflows with real fairseq and real Transformers, on generated checkpoints and data."""

import csv
import json
import math
import re
from pathlib import Path

from builders import make_fairseq_checkpoint, make_reviews
from conftest import SHAPE, small_config, succeeded, write_lab_dataset

TABLES = {
    "runs", "curves", "summary", "contrasts", "pairs", "churn", "never_right", "calibration", "confusion",
    "variance", "expected_validation", "data_audit",
}  # fmt: skip
# of an experiment with one dataset, two models, a sweep and test curves
FIGURES = {
    "learning_curves", "test_accuracy", "contrasts", "calibration", "confusion", "time_and_memory",
    "test_accuracy_by_recipe", "expected_validation", "test_curves", "data_audit",
}  # fmt: skip
RUN_FILES = {".sha256", "metrics.csv", "predictions.csv", "run.json", "tensorboard"}


def three_class_csv(folder: Path) -> None:
    """Reviews with three named verdicts, in a CSV whose columns have names of their own."""
    folder.mkdir(parents=True)
    values = ["mauvais", "bon", "moyen"]
    for seed, (name, size) in enumerate({"a.csv": 30, "b.csv": 12, "c.csv": 15}.items()):
        with open(folder / name, "w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["note", "ignored", "avis"])
            for index, review in enumerate(make_reviews(size, seed=seed)):
                writer.writerow([values[index % 3], "x", review["text"]])


def other_task(inputs: Path) -> dict:
    """Three classes, named labels, other columns, two models of other shapes, a sweep, two seeds."""
    three_class_csv(inputs / "verdicts")
    make_fairseq_checkpoint(inputs / "first", **SHAPE)
    make_fairseq_checkpoint(
        inputs / "second", **{**SHAPE, "layers": 1, "dim": 16, "vocab": 260}, model_type="unigram"
    )
    return {
        "experiment": "verdicts",
        "grid": {
            "datasets": ["verdicts"],
            "models": ["first", "second"],
            "recipes": ["swept"],
            "frameworks": ["fairseq", "transformers"],
            "inits": ["pretrained", "random"],
            "seeds": [{"init": 1, "data": 2}],
        },
        "sources": {name: {"locations": [str(inputs / name)]} for name in ("verdicts", "first", "second")},
        "datasets": {
            "verdicts": {
                "source": "verdicts",
                "format": "csv",
                "files": {"train": "a.csv", "validation": "b.csv", "test": "c.csv"},
                "columns": {"text": "avis", "label": "note"},
                "labels": ["mauvais", "moyen", "bon"],
            }
        },
        "models": {"first": {"source": "first"}, "second": {"source": "second"}},
        "recipes": {
            "swept": {
                "epochs": 2, "sweep": {"learning_rate": [1e-4, 1e-3]}, "max_positions": 12, "clip_norm": 1.0,
                "weight_decay": 0.1, "weight_decay_skip": ["bias", "norm"],
                "head_init": {"distribution": "normal"},
            }
        },
        "evaluation": {"test_curves": True},
        "checks": {"parity_reviews": 20},
    }  # fmt: skip


def test_another_task_by_configuration_alone(project, tmp_path):
    config = other_task(tmp_path / "inputs")
    succeeded(project.snakemake(config=config))
    base = "results/verdicts"
    runs = project.rows(f"{base}/runs.csv")
    assert len(runs) == 2 * 2 * 2 * 2
    assert {run["learning_rate"] for run in runs} == {"0.0001", "0.001"}
    assert {(run["init_seed"], run["data_seed"]) for run in runs} == {("1", "2")}
    for run in runs:
        check_run(project, f"{base}/runs/verdicts", run)
    check_reporting(project.folder / base)
    again = succeeded(project.snakemake(config=config))
    assert "Nothing to be done" in again.stdout + again.stderr
    assert not (project.folder / base / "work").exists() or not any(
        (project.folder / base / "work").rglob("*.csv")
    )


def check_reporting(experiment: Path) -> None:
    """Every figure, table and document is there; the report holds all figures and refers to nothing else."""
    summary = (experiment / "summary.md").read_text(encoding="utf-8")
    page = (experiment / "report.html").read_text(encoding="utf-8")
    drawn = {path.stem for path in (experiment / "figures").glob("*.svg")}
    assert drawn == FIGURES
    captions = {}
    for name in ("captions", "data_audit_caption"):
        captions |= json.loads((experiment / "figures" / f"{name}.json").read_text(encoding="utf-8"))
    assert set(captions) == FIGURES
    for name in ("test_accuracy", "data_audit"):
        assert captions[name].partition(",")[0] in page
    for name in drawn:
        for ending in ("svg", "png"):
            assert (experiment / "figures" / f"{name}.{ending}").stat().st_size > 1000
        assert f"figures/{name}.svg" in summary
    assert page.count('src="data:image/svg+xml') == len(drawn)
    assert not re.search(r"""(src|href)=["'](https?:)?//[^"']*\.(js|css|svg|png|woff2?)["']""", page)
    for name in ("summary", "contrasts"):
        for ending in ("csv", "md", "tex"):
            assert (experiment / "tables" / f"{name}.{ending}").read_text(encoding="utf-8").strip()
    assert {path.stem for path in experiment.glob("*.csv")} == TABLES


def check_run(project, base: str, run: dict[str, str]) -> None:
    folder = f"{base}/{run['model']}/{run['framework']}/{run['init']}/{run['recipe']}/seed1-2"
    assert {path.name for path in (project.folder / folder).iterdir()} == RUN_FILES
    record = json.loads((project.folder / folder / "run.json").read_text(encoding="utf-8"))
    assert record["updates"] == record["total_updates"] == 2 * math.ceil(30 / 8)
    assert record["label_names"] == ["mauvais", "moyen", "bon"]
    predictions = project.rows(f"{folder}/predictions.csv")
    assert [row["split"] for row in predictions].count("test") == 15
    names = ("mauvais", "moyen", "bon")
    for row in predictions:
        probabilities = {name: float(row[f"probability_{name}"]) for name in names}
        assert abs(sum(probabilities.values()) - 1) < 1e-6
        assert row["prediction"] == max(probabilities, key=probabilities.get)
    test = [row for row in predictions if row["split"] == "test"]
    accuracy = sum(row["label"] == row["prediction"] for row in test) / len(test)
    assert accuracy == record["test"]["accuracy"] == float(run["test_accuracy"])
    metrics = project.rows(f"{folder}/metrics.csv")
    assert {(row["split"], row["epoch"]) for row in metrics} == {
        (split, epoch) for split in ("train", "validation", "test") for epoch in ("1", "2")
    }
    step = str(record["selected"]["step"])
    selected = [
        row for row in metrics if (row["split"], row["metric"], row["step"]) == ("test", "accuracy", step)
    ]
    assert float(selected[0]["value"]) == accuracy


def test_the_same_seed_gives_the_same_predictions_in_both_frameworks(small):
    project, config = small
    succeeded(project.snakemake(config=config))
    run = "results/small/runs/books/generated/{}/{}/quick/seed0"
    files = [
        project.folder / run.format(framework, init) / "predictions.csv"
        for framework in ("fairseq", "transformers")
        for init in ("pretrained", "random")
    ]
    before = [path.read_bytes() for path in files]
    assert len(set(before)) == len(before)  # four runs that differ
    succeeded(project.snakemake("--forcerun", "finetune_fairseq", "finetune_transformers", config=config))
    assert [path.read_bytes() for path in files] == before


def test_a_changed_config_reruns_what_it_touches_and_no_more(small):
    project, config = small
    config["grid"]["frameworks"] = ["transformers"]
    config["grid"]["inits"] = ["random"]
    succeeded(project.snakemake(config=config))
    config["recipes"]["quick"]["epochs"] = 2
    out = succeeded(project.snakemake("--dry-run", config=config)).stdout
    assert "rule finetune_transformers:" in out
    for untouched in ("fetch_source", "prepare", "tokenize_texts", "convert_checkpoint", "check_parity"):
        assert f"rule {untouched}:" not in out
    config["grid"]["seeds"] = [0, 1]
    config["recipes"]["quick"]["epochs"] = 1
    out = succeeded(project.snakemake("--dry-run", config=config)).stdout
    assert out.count("rule finetune_transformers:") == 1  # only the new seed
    config["grid"]["seeds"] = [0]
    config["statistics"] = {"confidence": 0.9, "replicates": 1000}
    out = succeeded(project.snakemake("--dry-run", config=config)).stdout
    rerun = set(re.findall(r"^(?:local)?rule (\w+):", out, re.MULTILINE))
    assert rerun == {"aggregate", "plot_figures", "write_tables", "write_summary", "write_report", "all"}
    del config["statistics"]
    config["figures"] = {"smoothing": 0.9}
    out = succeeded(project.snakemake("--dry-run", config=config)).stdout
    assert "rule plot_figures:" in out
    assert "rule aggregate:" not in out  # it changes no number
    del config["figures"]
    config["datasets"]["books"]["label_names"] = ["mauvais", "bon"]
    out = succeeded(project.snakemake("--dry-run", config=config)).stdout
    rerun = set(re.findall(r"^(?:local)?rule (\w+):", out, re.MULTILINE))
    tables = {"audit", "aggregate", "plot_figures", "write_tables", "write_summary", "write_report"}
    assert rerun == {*tables, "all"}


def test_a_second_experiment_shares_data_and_models_and_may_not_redefine_them(small, tmp_path):
    project, config = small
    config["grid"]["frameworks"] = ["transformers"]
    config["grid"]["inits"] = ["random"]
    succeeded(project.snakemake(config=config))
    other = {**config, "experiment": "other"}
    out = succeeded(project.snakemake("--dry-run", config=other)).stdout
    assert "rule finetune_transformers:" in out
    assert "rule prepare:" not in out
    other["datasets"] = {"books": {**config["datasets"]["books"], "label_names": ["bad", "good"]}}
    out = succeeded(project.snakemake("--dry-run", config=other)).stdout
    assert "rule prepare:" not in out  # what people call the classes is not what the data are
    other["datasets"]["books"]["drop_leaks"] = True
    done = project.snakemake("--dry-run", config=other)
    assert done.returncode != 0
    assert "'books' means something else in experiment 'small'" in done.stdout + done.stderr
    assert "define datasets.books_2 with this definition" in done.stdout + done.stderr
    other["datasets"]["books_2"] = other["datasets"].pop("books")
    other["grid"] = {**config["grid"], "datasets": ["books_2"]}
    out = succeeded(project.snakemake("--dry-run", config=other)).stdout
    assert out.count("rule prepare:") == 1
    assert "rule convert_checkpoint:" not in out
    apart = {**config, "results": "apart", "datasets": {"books": other["datasets"]["books_2"]}}
    assert "rule prepare:" in succeeded(project.snakemake("--dry-run", config=apart)).stdout


def test_runs_that_learn_nothing_are_marked_and_the_workflow_goes_on(tmp_path, project):
    inputs = tmp_path / "inputs"
    write_lab_dataset(inputs / "books")
    make_fairseq_checkpoint(inputs / "generated", **SHAPE)
    config = small_config(inputs)
    config["recipes"]["quick"] = {
        "epochs": 2,
        "learning_rate": 1e30,
        "warmup_ratio": 0.0,
    }  # overflows at once
    succeeded(project.snakemake(config=config))
    runs = project.rows("results/small/runs.csv")
    assert len(runs) == 4
    assert {run["collapsed"] for run in runs} == {"true"}
    summary = (project.folder / "results/small/summary.md").read_text(encoding="utf-8")
    assert "collapsed" in summary
