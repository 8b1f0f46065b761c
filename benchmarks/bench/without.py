"""One run of Seedbed without one of its savings: python without.py REQUEST.json (see ablation.py)."""

import contextlib
import importlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from seedbed import imports, jobs, running  # noqa: E402

TRAINERS = {"fairseq": "seedbed.fairseq.trainer", "transformers": "seedbed.transformers_trainer"}


def _pad(trainer: ModuleType) -> None:
    from seedbed import packing

    packing.pays = lambda device: False


def _fairseq_adam(trainer: ModuleType) -> None:
    importlib.import_module("seedbed.fairseq.adam").FUSED = ()


def _hydra(trainer: ModuleType) -> None:
    from fairseq.dataclass import utils
    from hydra.experimental import compose

    utils.compose = compose


def _make_examples_anew(trainer: ModuleType) -> None:
    from fairseq import utils

    original = utils.import_user_module

    def with_plugin(settings: Any) -> None:
        original(settings)
        sys.modules["seedbed_plugin"].KeptDataset = lambda dataset: dataset  # fairseq's name of the plugin

    utils.import_user_module = with_plugin


def _nothing(trainer: ModuleType) -> None:
    pass


@dataclass(frozen=True)
class Saving:
    """What may be left out.

    Attributes:
        how: leaves it out, once the trainer is imported.
        frameworks: that have it.
        on: devices on which it is one.
        params: the run's params without it.
        settings: the recipe's settings without it.
    """

    how: Callable[[ModuleType], None] = _nothing
    frameworks: tuple[str, ...] = ("fairseq", "transformers")
    on: tuple[str, ...] = ("cpu", "gpu")
    params: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def is_in(self, run: Mapping[str, Any]) -> bool:
        """Whether a run with these params would be another without it."""
        without = {**run, **self.params, "settings": {**run["settings"], **self.settings}}
        return without != run or not (self.params or self.settings)


SAVINGS = {
    "nothing": Saving(),
    "packed batches": Saving(_pad, on=("cpu",)),
    "CUDA graphs": Saving(on=("gpu",), params={"cuda_graphs": False}),
    "lower precision": Saving(on=("gpu",), settings={"precision": "float32"}),
    "fused Adam": Saving(_fairseq_adam, ("fairseq",)),
    "examples made once": Saving(_make_examples_anew, ("fairseq",)),
    "settings without Hydra": Saving(_hydra, ("fairseq",)),
    "fewer imports": Saving(),
}


def main() -> None:
    """Train one run; the request names its params, its experiment's folder and what to leave out."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    job = jobs.job_of_run(request["run"], Path(request["experiment"]), request["threads"], request["pace"])
    if request["without"] == "fewer imports":
        running.leave_out_unused = lambda runs: None
        imports.uncollected = contextlib.nullcontext
    running.leave_out_unused([job])
    name = TRAINERS[job.run["framework"]]
    with imports.uncollected():
        trainer = importlib.import_module(name)
    SAVINGS[request["without"]].how(trainer)
    running.run([job], name, {})


if __name__ == "__main__":
    main()
