"""Sources from outside, in whole workflows: a server that goes away, a harmful checkpoint, leaks, formats."""

import contextlib
import csv
import functools
import http.server
import os
import pickle
import shutil
import threading
import zipfile
from pathlib import Path

import pytest
import torch
from builders import make_reviews
from builders_workflow import SHAPE, link_repository, small_config, write_lab_dataset
from harness import Project, failed, succeeded

from seedbed.core.files import read_json, read_jsonl
from seedbed.core.splits import SPLITS
from seedbed.data.texts import normalise

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def serving(folder: Path):
    """A web server of `folder` on this machine; yields its URL and the list of paths that were asked for."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            asked.append(self.path)

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=functools.partial(server.serve_forever, 0.01), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def zip_folder(folder: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder.parent).as_posix())
    return target


def in_archive(config, name: str) -> None:
    """Let the config look for its files in the archive's inner folder."""
    books, model = config["datasets"]["books"], config["models"]["generated"]
    books["files"] = {split: f"books/{path}" for split, path in books["files"].items()}
    model["checkpoint"] = "generated/model.pt"
    for source in ("books", "generated"):
        config["sources"][source]["locations"] = [f"{name}/{source}.zip"]


def test_after_the_first_download_the_network_may_be_gone(small, tmp_path):
    project, config = small
    for name in ("books", "generated"):
        zip_folder(tmp_path / "inputs" / name, tmp_path / "served" / f"{name}.zip")
    config["grid"] |= {"frameworks": ["transformers"], "inits": ["pretrained"]}
    with serving(tmp_path / "served") as (url, asked):
        in_archive(config, url)
        succeeded(project.snakemake(config=config))
    assert sorted(asked) == ["/books.zip", "/generated.zip"]
    lock = read_json(project.folder / "sources.lock.json")
    assert {name: entry["location"] for name, entry in lock.items()} == {
        name: f"{url}/{name}.zip" for name in ("books", "generated")
    }
    shutil.rmtree(project.folder / "results/small")
    # the server is gone; the same command completes from what is there
    succeeded(project.snakemake(config=config))
    assert "fetch_source" not in project.ran()
    assert "finetune_transformers" in project.ran()
    (run,) = project.rows("results/small/runs.csv")
    assert run["init"] == "pretrained"


def test_another_file_than_the_locked_one_is_refused(small, tmp_path):
    project, config = small
    manifest = "results/sources/books/manifest.json"
    archive = zip_folder(tmp_path / "inputs/books", tmp_path / "served/books.zip")
    with serving(tmp_path / "served") as (url, _):
        in_archive(config, url)
        succeeded(project.snakemake("--", manifest, config=config))
        write_lab_dataset(tmp_path / "inputs/books", {"train": 10, "valid": 4, "test": 4})
        zip_folder(tmp_path / "inputs/books", archive)
        shutil.rmtree(project.folder / "results")
        out = failed(project.snakemake("--", manifest, config=config))
        assert "sources.lock.json" in out
        assert not (project.folder / manifest).exists()
        (project.folder / "sources.lock.json").unlink()
        succeeded(project.snakemake("--", manifest, config=config))


class Harmful:
    """What a pickle from outside may ask for: running a command."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


@pytest.mark.parametrize("kind", ["torch", "pickle"])
def test_a_harmful_checkpoint_is_refused_and_runs_nothing(small, tmp_path, kind):
    project, config = small
    marker = tmp_path / "marker"
    path = tmp_path / "inputs/generated/model.pt"
    checkpoint = {"model": {}, "args": Harmful(marker)}
    if kind == "torch":
        torch.save(checkpoint, path)
    else:
        path.write_bytes(pickle.dumps(checkpoint))
    out = failed(project.snakemake(config=config))
    assert "refused" in out
    assert "os.system" in out or "posix.system" in out or kind == "pickle"
    assert not marker.exists()
    assert not list((project.folder / "results/models").rglob("model.pt"))
    assert not [rule for rule in project.ran() if rule.startswith("finetune_")]
    # the marker tells: unpickled without care, this file does run its command
    pickle.loads(pickle.dumps(Harmful(marker)))
    assert marker.exists()


def leaky_dataset(folder: Path) -> None:
    """40 training texts, of which two stand in the test split, too; no validation split."""
    train = make_reviews(40, seed=0)
    test = [*make_reviews(14, seed=1), train[3], {**train[8], "text": train[8]["text"].replace(" ", "  ")}]
    folder.mkdir(parents=True)
    for split, reviews in (("train", train), ("test", test)):
        (folder / f"{split}.review").write_text("".join(f"{r['text']}\n" for r in reviews), encoding="utf-8")
        (folder / f"{split}.label").write_text("".join(f"{r['label']}\n" for r in reviews), encoding="utf-8")


def test_leaks_are_dropped_and_the_summary_shows_both_accuracies(prepared, stock, tmp_path):
    project, config = prepared, small_config(stock.folder / "prepared-inputs")
    leaky_dataset(tmp_path / "books")
    config["sources"]["books"]["locations"] = [str(tmp_path / "books")]
    books = config["datasets"]["books"]
    books |= {"files": {"train": "train", "test": "test"}, "validation_split": {"size": 8, "seed": 1}}
    books |= {"drop_leaks": True, "near_duplicates": None}
    config["grid"] |= {"frameworks": ["transformers"], "seeds": [0, 1]}
    succeeded(project.snakemake(config=config))
    data = project.folder / "results/data/books"
    ids = {
        split: [row["id"] for row in read_jsonl(data / f"{split}.jsonl")] for split in ("train", "validation")
    }
    assert not {"train-3", "train-8"} & set(ids["train"])
    splits = read_json(data / "splits.json")
    assert splits["ids"]["validation"] == ids["validation"]
    assert len(ids["validation"]) == 8
    texts = {
        split: {normalise(row["text"]) for row in read_jsonl(data / f"{split}.jsonl")} for split in SPLITS
    }
    assert not texts["train"] & (texts["validation"] | texts["test"])
    rows = project.rows("results/small/summary.csv")
    assert {row["test_set"] for row in rows} == {"all", "without leaks"}
    runs = project.rows("results/small/runs.csv")
    leaked = 16 - int(runs[0]["test_examples_without_leaks"])
    assert leaked >= 2
    page = (project.folder / "results/small/report.html").read_text(encoding="utf-8")
    assert f"{leaked} test examples of 16 leaked" in page
    audit = project.rows("results/small/data_audit.csv")
    assert {row["split"] for row in audit} == {"train", "validation", "test"}


def write_reviews_of_authors(folder: Path) -> None:
    """Three splits as CSV, each with texts in clusters of four."""
    folder.mkdir(parents=True)
    for seed, (split, size) in enumerate({"train": 24, "validation": 12, "test": 16}.items()):
        with open(folder / f"{split}.csv", "w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["text", "label", "author"])
            for number, review in enumerate(make_reviews(size, seed=seed)):
                writer.writerow([review["text"], review["label"], f"{split} {number // 4}"])


def test_a_column_of_clusters_changes_intervals_and_trains_nothing_anew(prepared, stock, tmp_path):
    project, config = prepared, small_config(stock.folder / "prepared-inputs")
    write_reviews_of_authors(tmp_path / "books")
    config["sources"]["books"]["locations"] = [str(tmp_path / "books")]
    books = config["datasets"]["books"]
    books |= {"format": "csv", "files": {split: f"{split}.csv" for split in SPLITS}}
    config["grid"] |= {"frameworks": ["transformers"], "seeds": [0, 1]}
    succeeded(project.snakemake(config=config))
    data, results = project.folder / "results/data/books", project.folder / "results/small"
    records = {path: path.read_bytes() for path in results.rglob("run.json")}
    prepared_files = {path: path.read_bytes() for path in data.glob("*.jsonl")}
    assert len(records) == 4
    (before,) = project.rows("results/small/contrasts.csv")[:1]

    books["columns"] = {"cluster": "author"}
    succeeded(project.snakemake(config=config))
    found = read_json(data / "splits.json")["clusters"]
    assert {split: len(names) for split, names in found.items()} == {"train": 6, "validation": 3, "test": 4}
    assert {path: path.read_bytes() for path in prepared_files} == prepared_files
    assert {path: path.read_bytes() for path in records} == records
    (after,) = project.rows("results/small/contrasts.csv")[:1]
    assert float(after["delta"]) == pytest.approx(float(before["delta"]), abs=1e-6)
    assert (after["ci_low"], after["ci_high"]) != (before["ci_low"], before["ci_high"])
    audit = project.rows("results/small/data_audit.csv")
    counts = {(row["split"], row["check"]): row["count"] for row in audit}
    assert (counts["test", "clusters"], counts["test", "largest cluster"]) == ("4", "4")
    assert "whole clusters: 4 on books" in (results / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["huggingface", "roberta.base"])
def test_a_model_of_another_layout_feeds_both_frameworks(tmp_path, kind):
    from builders_checkpoints import make_huggingface_model, make_roberta_base

    inputs = tmp_path / "inputs"
    write_lab_dataset(inputs / "books")
    project, config = Project(link_repository(tmp_path / "work")), small_config(inputs)
    if kind == "huggingface":
        make_huggingface_model(inputs / "generated", **SHAPE)
        config["models"]["generated"] = {"source": "generated", "format": "huggingface"}
    else:
        make_roberta_base(inputs / "generated")
        config["keep_model"] = True
    succeeded(project.snakemake(config=config))
    runs = project.rows("results/small/runs.csv")
    assert {(run["framework"], run["init"]) for run in runs} == {
        (framework, init) for framework in ("fairseq", "transformers") for init in ("pretrained", "random")
    }
    if kind == "huggingface":
        assert not list((inputs / "generated").glob("*.pt"))
    else:
        counted = project.rows("results/models/generated/parameters.csv")
        assert all(row["expected"] == row["counted"] for row in counted)
        parity = read_json(project.results / "data/books/generated/parity.json")
        assert parity["texts"] == 52
        assert parity["largest_difference"] < 1e-5
        assert len(list(project.results.rglob("runs/**/model/model.safetensors"))) == 4
        page = (project.results / "small/report.html").read_text(encoding="utf-8")
        assert "the token ids of 52 texts are equal" in page
