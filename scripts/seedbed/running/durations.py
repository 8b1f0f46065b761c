"""How long runs take, judged by the records (run.json) of earlier ones on machines of one kind."""

import contextlib
import math
import os
import platform
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbed.core.files import read_json
from seedbed.core.run_folder import LEVELS
from seedbed.core.splits import SAMPLE

NEWEST = 5  # runs of a kind, whose median counts: a machine may be busier than before


@dataclass(frozen=True)
class Kind:
    """Runs that take as long for each update.

    Attributes:
        model, framework, method: names in the config.
        batch_size, max_positions, precision: of the recipe.
        together: seeds that train as one batched model; 1 without `fused_seeds`.
    """

    model: str
    framework: str
    method: str
    batch_size: int
    max_positions: int | None
    precision: str
    together: int


def kind_of(run: Mapping[str, Any], settings: Mapping[str, Any], together: int = 1) -> Kind:
    """The kind of a run.

    Args:
        run: `run` of its record, or the attributes of a planned run.
        settings: its recipe.
        together: as in `Kind`.
    """
    names = (run[key] for key in ("model", "framework", "method"))
    return Kind(*names, *(settings[key] for key in ("batch_size", "max_positions", "precision")), together)


def this_machine() -> dict[str, Any]:
    """The part of a record's `hardware` that decides whether times of another machine count here."""
    return {"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count()}


@dataclass(frozen=True)
class _Took:
    """Seconds of a finished run until its first update and after it, and its updates."""

    start: float
    rest: float
    updates: int


class Durations:
    """The seconds of finished runs, and of planned ones.

    Args:
        results: the results folder, whose experiments are searched for earlier runs.
        machine: `this_machine` of the host that trains; by default of this one.
    """

    def __init__(self, results: Path, machine: Mapping[str, Any] | None = None):
        self._results, self._machine = results, this_machine() if machine is None else machine
        self._took: dict[Kind, list[_Took]] = {}  # the newest last
        self._examples: dict[str, int] = {}
        self._searched: set[tuple[str, str]] = set()

    def add(self, record: Mapping[str, Any]) -> None:
        """Take a record into account, as the newest one; of another version or machine, ignore it."""
        try:
            together = len(record.get("fused_with", ["itself"]))
            kind = kind_of(record["run"], record["settings"], together)
            start, total = (record["seconds"][key] / together for key in ("start_up", "total"))
            took = _Took(start, total - start, record["total_updates"])
            is_here = self._machine.items() <= record["hardware"].items()
        except (KeyError, TypeError):
            return
        if is_here:
            self._took.setdefault(kind, []).append(took)

    def of(self, kind: Kind, dataset: str, epochs: int, size: int | None = None) -> float | None:
        """Seconds that a run will take, or its share of those of a batched model; None if unknown.

        Args:
            kind: of the run.
            dataset: as in `updates`.
            epochs: as in `updates`.
            size: as in `updates`.
        """
        if (kind.model, kind.framework) not in self._searched:
            self._searched.add((kind.model, kind.framework))
            self._search(kind.model, kind.framework)
        took, updates = self._took.get(kind, [])[-NEWEST:], self.updates(kind, dataset, epochs, size)
        if not took or updates is None:
            return None
        return statistics.median(
            each.start + each.rest * (updates / each.updates if each.updates else 1) for each in took
        )

    def updates(self, kind: Kind, dataset: str, epochs: int, size: int | None = None) -> int | None:
        """Updates that a run will make if its method trains; None if its dataset is not prepared.

        Args:
            kind: of the run.
            dataset: its name in the config.
            epochs: passes over the training texts.
            size: number of these; None: all of the dataset.
        """
        examples = size or self._train_size(dataset)
        return None if examples is None else epochs * math.ceil(examples / kind.batch_size)

    def _search(self, model: str, framework: str) -> None:
        """Add the newest earlier runs of each recipe that trained this model."""
        found: dict[tuple[str, ...], list[tuple[float, Path]]] = {}
        pattern = ("*", "runs", "*", model, framework, *"*" * (len(LEVELS) - 3), "run.json")
        for path in self._results.glob("/".join(pattern)):
            experiment, dataset, recipe = path.parts[-9], path.parts[-7], path.parts[-3]
            found.setdefault((experiment, dataset, recipe), []).append((path.stat().st_mtime, path))
        newest = [pair for pairs in found.values() for pair in sorted(pairs)[-NEWEST:]]
        for _, path in sorted(newest):
            with contextlib.suppress(OSError, ValueError):  # removed meanwhile, or damaged
                self.add(read_json(path))

    def _train_size(self, dataset: str) -> int | None:
        """The examples of the training split; None if the dataset is not prepared."""
        if dataset not in self._examples:
            try:
                found = read_json(self._results / "data" / dataset / "splits.json")
                sample = found.get(SAMPLE, {}).get("train")
                self._examples[dataset] = len(sample["ids"]) if sample else found["read"]["train"]
            except (OSError, ValueError, KeyError):
                return None
        return self._examples[dataset]


def about(seconds: float) -> str:
    """A time for people, rounded up: 10 s, 50 s, 2 min, 3.5 h."""
    if seconds <= 50:
        return f"{max(1, math.ceil(seconds / 10)) * 10} s"
    if seconds <= 5400:
        return f"{math.ceil(seconds / 60)} min"
    return f"{math.ceil(seconds / 360) / 10:g} h"
