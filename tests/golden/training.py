"""Make predictions and metrics of a tiny run of every trainer: python training.py FOLDER"""

import csv
import importlib
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "scripts")]

import builders_training as builders  # noqa: E402

FAIRSEQ = "seedbed.training.fairseq.trainer"
CLASSIFIER = "seedbed.training.transformers.classifier"
CAUSAL = "seedbed.training.transformers.causal"
FUSED = "seedbed.training.fused.trainer"
classifier, fairseq, causal = builders.make_job, builders.make_fairseq_job, builders.make_causal_job
# by name: the trainer, what makes its job, and the params of the run
RUNS = {
    "fairseq_random": (FAIRSEQ, fairseq, builders.make_run("fairseq")),
    "fairseq_pretrained": (FAIRSEQ, fairseq, builders.make_run("fairseq", init="pretrained")),
    "transformers_random": (CLASSIFIER, classifier, builders.make_run("transformers")),
    "transformers_lora": (
        CLASSIFIER,
        classifier,
        builders.make_run("transformers", method="lora", init="pretrained"),
    ),
    "fused": (
        FUSED,
        classifier,
        builders.make_run("transformers", fused=[["random", 3, 3], ["random", 4, 4]]),
    ),
    "causal_full": (CAUSAL, causal, builders.make_causal_run("full")),
    "causal_lora": (CAUSAL, causal, builders.make_causal_run("lora")),
    "causal_none": (CAUSAL, causal, builders.make_causal_run("none")),
}


def without_seconds(source: Path, target: Path) -> None:
    """Copy a table without what differs from run to run."""
    with open(source, encoding="utf-8", newline="") as stream:
        rows = [
            {name: cell for name, cell in row.items() if name != "seconds"} for row in csv.DictReader(stream)
        ]
    with open(target, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def main(target: Path) -> None:
    """Train all."""
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, (module, make, run) in RUNS.items():
            job = make(Path(folder), run, name)
            importlib.import_module(module).train([job])
            copy = target / name
            copy.mkdir(parents=True)
            without_seconds(job.target / "metrics.csv", copy / "metrics.csv")
            shutil.copyfile(job.target / "predictions.csv", copy / "predictions.csv")
        os.chdir("/")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
