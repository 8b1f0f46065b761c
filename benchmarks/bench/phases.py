"""What a run of the lab's way measures of itself, and writes when it ends."""

import resource
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import torch

from seedbed.core import files
from seedbed.training import hardware, stopwatch


class Observer:
    """Phases, counts and accuracies of one run; it changes nothing of what the run does.

    The clock is the one of Seedbed's runs: it starts with the process, and waits for a GPU at every switch.

    Attributes:
        epochs: {split: {"accuracy": a fraction, "loss": of the framework's own unit}}, one an epoch.
        training: whether batches are trained on now.
        real, padded: tokens of training batches without and with padding.
    """

    def __init__(self) -> None:
        self.clock = stopwatch.Stopwatch("start_up")
        self.training = False
        self.epochs: list[dict[str, dict[str, float]]] = []
        self.real = self.padded = self.updates = self.evaluated = self.seen = 0

    def count(self, examples: int, real: int, padded: int) -> None:
        """A training batch."""
        self.updates, self.seen = self.updates + 1, self.seen + examples
        self.real, self.padded = self.real + real, self.padded + padded

    def write(self, report: str | Path, extra: dict[str, Any]) -> None:
        """Write the report of the run, with the names of Seedbed's run.json where both have the same."""
        self.clock.switch("write")
        device = torch.device("cuda" if torch.cuda.is_initialized() else "cpu")
        seconds = {name: round(value, 3) for name, value in self.clock.seconds.items()}
        train = seconds.get("train", 0.0)
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        record = {
            "seconds": {**seconds, "total": round(sum(seconds.values()), 3)},
            "cpu_seconds": round(sum(one.ru_utime + one.ru_stime for one in used), 3),
            "updates": self.updates,
            "examples_evaluated": self.evaluated,
            "samples_per_second": self.seen / train if train else None,
            "tokens_per_second": self.real / train if train else None,
            "padding_share": 1 - self.real / self.padded if self.padded else None,
            "peak_memory_mib": round(hardware.peak_memory_mib(device), 1),
            "device": hardware.describe_device(device),
            "epochs": self.epochs,
            **extra,
        }
        files.write_json(report, record)
