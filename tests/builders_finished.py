"""Finished runs in an experiment's folder, with the data and the model that they were trained on."""

import importlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders import make_fairseq_checkpoint, make_reviews
from builders_checkpoints import convert
from builders_encoders import convert_encoder
from builders_training import make_run

CHECKPOINT = {
    "format": "fairseq", "checkpoint": "model.pt", "dictionary": "dict.txt", "config": None, "source": "made",
    "sentencepiece": "sentencepiece.bpe.model",
}  # fmt: skip

UNLISTED = "▁Ce"
SPLITS = {"train": 16, "validation": 8, "test": 12}
ABOUT = {
    "classification": {"labels": ["0", "1"], "names": ["negative", "positive"]},
    "multilabel": {"labels": ["long", "good"], "names": ["long", "good"]},
    "regression": {"mean": 60.0, "sd": 20.0},
}


def make_results(
    folder: Path, task: str = "classification", pairs: bool = False, auto: str = "", unlisted: bool = False
) -> Path:
    """The folder of results with the dataset `books` and the model `generated`.

    `auto` is a kind of encoder, instead of a checkpoint of fairseq; with `unlisted`, the dict.txt of the
    latter lacks the piece UNLISTED of some texts.
    """
    results = folder / "results"
    model = results / "models" / "generated"
    model.parent.mkdir(parents=True)
    if auto:
        convert_encoder(folder, auto).rename(model)
    else:
        archive = make_fairseq_checkpoint(folder / "archive", vocab=300, positions=30)
        if unlisted:
            path = archive / "dict.txt"
            words = path.read_text(encoding="utf-8")
            path.write_text(words.replace(f"{UNLISTED} ", "étranger "), encoding="utf-8")
        convert(archive, CHECKPOINT).rename(model)
    write_dataset(results / "data" / "books", task, pairs)
    tokenize(results, auto=bool(auto))
    return results


def write_dataset(folder: Path, task: str, pairs: bool) -> None:
    """Prepared splits: reviews, the first ones cut to few words, with a label of the task."""
    from seedbed.core import files

    for seed, (split, size) in enumerate(SPLITS.items()):
        rows = []
        for index, review in enumerate(make_reviews(size, seed=seed)):
            row = {"id": f"{split}-{index}", "text": " ".join(review["text"].split()[: 2 + index])}
            if pairs:
                row["text_pair"] = review["text"][-40:].strip()
            good = review["label"]
            label = {"multilabel": [int(index < size // 2), good], "regression": 50.0 + 20 * good + index}
            rows.append(row | {"label": label.get(task, good)})
        files.write_jsonl(folder / f"{split}.jsonl", rows)
        files.write_text(folder / f"{split}.label", "".join(f"{row['label']}\n" for row in rows))
    files.write_json(folder / "labels.json", ABOUT[task])


def tokenize(results: Path, auto: bool) -> None:
    """Token ids as the rules make them."""
    from seedbed.models import text_ids, tokenization

    data, model = results / "data" / "books", results / "models" / "generated"
    texts = {split: data / f"{split}.jsonl" for split in SPLITS}
    folder = data / "generated" / "tokens"
    if auto:
        text_ids.tokenize(texts, model, folder, 1.0)
        return
    paths = {"subwords": model / "subwords", "dictionary": model / "fairseq" / "dict.txt"}
    tokenization.tokenize_texts(texts, {**paths, "definition": model / "model.json"}, folder, 1.0)


def binarize(results: Path) -> None:
    """The binarized data of fairseq."""
    from seedbed.training.fairseq.binarization import binarize as run

    data, model = results / "data" / "books", results / "models" / "generated"
    tokens = data / "generated" / "tokens"
    run(
        pieces={split: tokens / f"{split}.pieces" for split in SPLITS},
        labels={split: data / f"{split}.label" for split in SPLITS},
        tokens={split: tokens / f"{split}.jsonl" for split in SPLITS},
        dictionary=model / "fairseq" / "dict.txt",
        classes=data / "labels.json",
        output=data / "generated" / "binarized",
    )


def finish(results: Path, framework: str = "transformers", seeds: Sequence[int] = (3,), **run: Any) -> Path:
    """Train the seeds of a cell, and return the folder of the first run; `run`: see `make_run`."""
    from seedbed.running.jobs import PACE, job_of_run

    if framework == "fairseq" and not (results / "data/books/generated/binarized").exists():
        binarize(results)
    jobs = []
    for seed in seeds:
        chosen = {"max_positions": 24, "keep_model": True, "init": "pretrained", **run}
        params = make_run(framework, dataset="books", model="generated", **chosen)
        params |= {"init_seed": seed, "data_seed": seed}
        jobs.append(job_of_run(params, results / "small", 1, PACE))
        if jobs[-1].states and not jobs[-1].states.exists():
            encode(jobs[-1])
    trainer = importlib.import_module(jobs[0].trainer.module)
    for group in [jobs] if jobs[0].trainer.together else [[job] for job in jobs]:
        trainer.train(group)
    return jobs[0].target


def encode(job: Any) -> None:
    """The states that the head of a run is trained on."""
    from seedbed.core.states import EncoderOfStates
    from seedbed.training.states import write_states

    encoder, weights = EncoderOfStates.named(job.run["states"]), job.model.parent / "huggingface"
    write_states(encoder, weights, job.tokens, job.model, job.labels, job.states)


def write_tables(results: Path) -> None:
    """The tables of the experiment `small` that a model card reads, with made-up means of its cells."""
    from seedbed.analysis.table_rows import SummaryRow, write_summary
    from seedbed.core import files
    from seedbed.core.run_folder import RunFolder
    from seedbed.data.audit import COLUMNS

    rows: dict[str, SummaryRow] = {}
    runs = sorted((results / "small" / "runs").glob("*/*/*/*/*/*/run.json"))
    for path in runs:
        place, test = RunFolder.from_path(path.parent), files.read_json(path)["test"]
        cell = {name: getattr(place, name) for name in ("dataset", "model", "framework", "init", "recipe")}
        row = SummaryRow(
            **cell, recipe_family="demo", method="full", metric=next(iter(test)), n_seeds=len(runs),
            mean=0.71, ci_method="Student t over seeds, 0.95", both_low=0.64, both_high=0.78,
            majority_share=0.5, bag_of_words=0.66, ece=0.1,
        )  # fmt: skip
        rows[str(path.parents[1])] = row
        rows[f"{path.parents[1]} without leaks"] = replace(row, test_set="without leaks", mean=0.7)
    write_summary(results / "small/summary.csv", list(rows.values()))
    sizes = [
        {"dataset": "books", "split": split, "check": "examples", "count": size}
        for split, size in SPLITS.items()
    ]
    files.write_rows(results / "small/data_audit.csv", COLUMNS, sizes)
