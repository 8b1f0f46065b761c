"""Whole workflows with real fairseq and real Transformers, on generated checkpoints and data."""

import csv
import json
import math
import re
from pathlib import Path

import pytest
import yaml
from builders import make_fairseq_checkpoint, make_reviews
from builders_workflow import SHAPE
from harness import failed, succeeded
from sklearn.metrics import f1_score
from stock import PRINTED

from seedbed.commands import main

TABLES = {
    "runs", "curves", "summary", "contrasts", "pairs", "churn", "never_right", "calibration", "confusion",
    "variance", "expected_validation", "example_errors", "example_gains", "data_audit",
}  # fmt: skip
FIGURES = {
    "learning_curves", "test_accuracy", "contrasts", "calibration", "confusion", "time_and_memory",
    "data_audit",
}  # fmt: skip
# of an experiment with one dataset, two models, a sweep and test curves
FIGURES_OF_A_SWEEP = {
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


def test_an_experiment_from_its_sources_to_its_report(reference):
    experiment = reference.results / "small"
    check_reporting(experiment, FIGURES)
    runs = reference.rows(experiment / "runs.csv")
    places = {(run["framework"], run["init"], run["init_seed"]) for run in runs}
    assert len(runs) == len(places) == 2 * 2 * 2
    for run in runs:
        folder = f"books/generated/{run['framework']}/{run['init']}/quick/seed{run['init_seed']}"
        assert {path.name for path in (experiment / "runs" / folder).iterdir()} == RUN_FILES
        predictions = reference.rows(experiment / "runs" / folder / "predictions.csv")
        test = [row for row in predictions if row["split"] == "test"]
        assert len(test) == 16
        right = sum(row["label"] == row["prediction"] for row in test)
        assert right / len(test) == float(run["test_accuracy"])
    assert not (experiment / "work").exists()


def test_a_finished_experiment_is_bundled_and_verified(reference, tmp_path, capsys):
    output = tmp_path / "small.tar.gz"
    assert main(["bundle", str(reference.results / "small"), str(output)]) == 0
    assert main(["verify", str(output)]) == 0
    told = "small: 8 runs predict with the accuracy of runs.csv, on validation and test\n"
    assert capsys.readouterr().out.endswith(told)
    config = yaml.safe_load((reference.results / "small" / "config.yaml").read_text(encoding="utf-8"))
    assert config["grid"]["datasets"] == [*config["datasets"]] == ["books"]


def test_a_line_a_run_is_printed_and_nothing_by_the_jobs(reference):
    expected = r"""Using workflow specific profile .*
Config file config\.yaml is extended by .*
The grid has 2 seeds: no difference will get a verdict, .*
Assuming unrestricted shared filesystem usage\.
small: 8 of 8 runs to train, 2 at a time
preparing data and models
training: the first run shows how long it takes
(\d/8 \w+ from (the checkpoint|random weights), seed [01]: accuracy [\d.]+%, \d+ s(, about .* left)?
){8}making tables, figures and report
Complete log\(s\): .*
Elapsed time: .*
"""
    printed = (reference.folder / PRINTED).read_text(encoding="utf-8")
    assert re.fullmatch(expected, printed), printed


@pytest.mark.slow
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
    check_reporting(project.folder / base, FIGURES_OF_A_SWEEP)
    again = succeeded(project.snakemake(config=config))
    assert "Nothing to be done" in again.stdout + again.stderr
    assert not (project.folder / base / "work").exists() or not any(
        (project.folder / base / "work").rglob("*.csv")
    )


def check_reporting(experiment: Path, figures: set[str]) -> None:
    """Every figure, table and document is there; the report holds all figures and refers to nothing else."""
    assert len((experiment / "summary.md").read_text(encoding="utf-8").splitlines()) <= 62
    page = (experiment / "report.html").read_text(encoding="utf-8")
    drawn = {path.stem for path in (experiment / "figures").glob("*.svg")}
    assert drawn == figures
    captions = {}
    for name in ("captions", "data_audit_caption"):
        captions |= json.loads((experiment / "figures" / f"{name}.json").read_text(encoding="utf-8"))
    assert set(captions) == figures
    for name in ("test_accuracy", "data_audit"):
        assert captions[name]["text"].partition(",")[0] in page
    for name in drawn:
        for ending in ("svg", "png"):
            assert (experiment / "figures" / f"{name}.{ending}").stat().st_size > 1000
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


@pytest.mark.slow
def test_the_same_seed_gives_the_same_predictions_in_both_frameworks(finished):
    finished.config["grid"]["seeds"] = [0]
    run = "results/small/runs/books/generated/{}/{}/quick/seed0"
    files = [
        finished.folder / run.format(framework, init) / "predictions.csv"
        for framework in ("fairseq", "transformers")
        for init in ("pretrained", "random")
    ]
    before = [path.read_bytes() for path in files]
    assert len(set(before)) == len(before)  # four runs that differ
    inodes = [path.stat().st_ino for path in files]
    succeeded(finished.snakemake("--forcerun", "finetune_fairseq", "finetune_transformers"))
    assert [path.read_bytes() for path in files] == before
    assert all(path.stat().st_ino != inode for path, inode in zip(files, inodes, strict=True))


def planned(project, config) -> tuple[str, set[str]]:
    """What a dry-run prints, and the rules that it names."""
    out = succeeded(project.snakemake("--dry-run", config=config)).stdout
    return out, set(re.findall(r"^(?:local)?rule (\w+):", out, re.MULTILINE))


def test_a_changed_config_reruns_what_it_touches_and_no_more(finished):
    config = finished.config
    out = succeeded(finished.snakemake("--dry-run"))
    assert "Nothing to be done" in out.stdout + out.stderr
    config["recipes"]["quick"]["epochs"] = 2
    _, rerun = planned(finished, config)
    assert {"finetune_fairseq", "finetune_transformers"} <= rerun
    assert not rerun & {"fetch_source", "prepare", "tokenize_texts", "convert_checkpoint", "check_parity"}
    config["grid"]["seeds"] = [0, 1, 2]
    config["recipes"]["quick"]["epochs"] = 5
    out, _ = planned(finished, config)
    assert out.count("rule finetune_transformers:") == 2  # only the new seed, of each init
    config["grid"]["seeds"] = [0, 1]
    config["statistics"] = {"confidence": 0.9, "replicates": 400}
    _, rerun = planned(finished, config)
    assert rerun == {"aggregate", "write_report", "all"}
    config["statistics"] = {"replicates": 400}
    config["figures"] = {"smoothing": 0.9}
    _, rerun = planned(finished, config)
    assert rerun == {"write_report", "all"}  # it changes no number
    del config["figures"]
    config["datasets"]["books"]["label_names"] = ["mauvais", "bon"]
    _, rerun = planned(finished, config)
    assert rerun == {"audit", "aggregate", "write_report", "all"}


@pytest.mark.slow
def test_a_second_experiment_shares_data_and_models_and_may_not_redefine_them(finished):
    config = finished.config
    other = {**config, "experiment": "other"}
    _, rules = planned(finished, other)
    assert "finetune_transformers" in rules
    assert "prepare" not in rules
    other["datasets"] = {"books": {**config["datasets"]["books"], "label_names": ["bad", "good"]}}
    _, rules = planned(finished, other)
    assert "prepare" not in rules  # what people call the classes is not what the data are
    other["datasets"]["books"]["drop_leaks"] = True
    told = failed(finished.snakemake("--dry-run", config=other))
    assert "'books' has another definition in experiment 'small'" in told
    assert "define datasets.books_2 with this definition" in told
    other["datasets"]["books_2"] = other["datasets"].pop("books")
    other["grid"] = {**config["grid"], "datasets": ["books_2"]}
    out, rules = planned(finished, other)
    assert out.count("rule prepare:") == 1
    assert "convert_checkpoint" not in rules
    apart = {**config, "results": "apart", "datasets": {"books": other["datasets"]["books_2"]}}
    assert "prepare" in planned(finished, apart)[1]


@pytest.mark.slow
def test_runs_that_learn_nothing_are_marked_and_the_workflow_goes_on(prepared):
    # overflows at once
    prepared.config["recipes"]["quick"] = {"epochs": 2, "learning_rate": 1e30, "warmup_ratio": 0.0}
    succeeded(prepared.snakemake())
    runs = prepared.rows("results/small/runs.csv")
    assert len(runs) == 4
    assert {run["collapsed"] for run in runs} == {"true"}
    summary = (prepared.folder / "results/small/summary.md").read_text(encoding="utf-8")
    assert "collapsed" in summary


@pytest.mark.slow
def test_a_metric_and_class_weights_lead_an_experiment_on_data_that_is_there(prepared):
    prepared.config["datasets"]["books"]["metric"] = {"f1_of": "1"}
    prepared.config["recipes"]["quick"] = {"epochs": 2, "learning_rate": 1e-3, "class_weight": "balanced"}
    prepared.config["statistics"] = {"replicates": 400}
    done = succeeded(prepared.snakemake())
    assert "rule prepare:" not in done.stdout + done.stderr  # the metric is not a part of the dataset
    runs = prepared.rows("results/small/runs.csv")
    assert {run["framework"] for run in runs} == {"fairseq", "transformers"}
    for run in runs:
        folder = f"results/small/runs/books/generated/{run['framework']}/{run['init']}/quick/seed0"
        rows = [row for row in prepared.rows(f"{folder}/predictions.csv") if row["split"] == "test"]
        labels, predicted = ([row[name] for row in rows] for name in ("label", "prediction"))
        expected = f1_score(labels, predicted, pos_label="1", zero_division=0)
        assert float(run["test_f1_of_1"]) == pytest.approx(expected)
        record = json.loads((prepared.folder / folder / "run.json").read_text(encoding="utf-8"))
        assert record["metric"] == record["selected"]["metric"] == "f1_of_1"
        assert record["settings"]["class_weight"] == "balanced"
    summary = (prepared.folder / "results/small/summary.md").read_text(encoding="utf-8")
    assert "F1 of 1 (%)" in summary
    drawn = {path.stem for path in (prepared.folder / "results/small/figures").glob("*.svg")}
    assert drawn == FIGURES - {"test_accuracy"} | {"test_metric"}
