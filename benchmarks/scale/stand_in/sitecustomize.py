"""A stand-in for training, in Python processes that have this folder on PYTHONPATH (benchmarks/scale.py).

Where a job imports a trainer, which would import PyTorch, it gets one that sleeps for $SEEDBED_STAND_IN
seconds and writes a run folder of invented numbers. All else of the job is as it is.
"""

import importlib.abc
import importlib.machinery
import os
import sys
import time

SECONDS = os.environ.get("SEEDBED_STAND_IN")
TRAINERS = ("seedbed.training.transformers.classifier", "seedbed.training.fairseq.trainer")


def train(jobs):
    """In place of a trainer's: sleep, write the files of each run and publish them."""
    from seedbed.core import files
    from seedbed.running import publishing

    for job in jobs:
        time.sleep(float(SECONDS))
        ready = job.work / "run"
        columns = ["split", "example", "label", "prediction", "probability_negative", "probability_positive"]
        row = dict(zip(columns, ("test", "0", "negative", "negative", 0.6, 0.4), strict=True))
        files.write_rows(ready / "predictions.csv", columns, [row] * 264)
        files.write_rows(ready / "metrics.csv", ["step", "value"], [{"step": 102, "value": 0.5}] * 14)
        files.write_json(ready / "run.json", {"run": job.run, "identity": job.identity, "stand_in": True})
        files.write_text(ready / "tensorboard" / "events", "")
        publishing.publish(job)


class Trainers(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the trainers, and makes modules that hold nothing but the function above."""

    def find_spec(self, name, path, target=None):
        """A spec for a trainer, None for all other modules."""
        return importlib.machinery.ModuleSpec(name, self) if name in TRAINERS else None

    def exec_module(self, module):
        """Fill the module."""
        module.train = train


if SECONDS:
    sys.meta_path.insert(0, Trainers())
