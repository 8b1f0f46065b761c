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

from seedbed.core import imports  # noqa: E402
from seedbed.running import jobs, runner  # noqa: E402

TRAINERS = {
    "fairseq": "seedbed.training.fairseq.trainer",
    "transformers": "seedbed.training.transformers.classifier",
}


def _pad(trainer: ModuleType) -> None:
    from seedbed.training import packing

    packing.is_used_on = lambda device: False


def _fairseq_adam(trainer: ModuleType) -> None:
    importlib.import_module("seedbed.training.fairseq.adam").FUSED = ()


def _hydra(trainer: ModuleType) -> None:
    from fairseq.dataclass import utils
    from hydra.experimental import compose

    utils.compose = compose


def _wait_for_copies(trainer: ModuleType) -> None:
    from seedbed.training.transformers import base_trainer

    original = base_trainer.training_arguments

    def waiting(*told: Any) -> Any:
        arguments = original(*told)
        arguments.accelerator_config.non_blocking = False
        return arguments

    base_trainer.training_arguments = waiting


def _import_all() -> None:
    runner.leave_out_unused = lambda runs: None
    imports.uncollected = contextlib.nullcontext


def _let_the_gpu_be() -> None:
    runner.gpus.wake = lambda: None


def _nothing(*told: Any) -> None:
    pass


@dataclass(frozen=True)
class Saving:
    """What may be left out.

    Attributes:
        before: leaves it out before the trainer is imported.
        how: leaves it out, once the trainer is imported.
        frameworks: that have it.
        on: devices on which it is one.
        params: the run's params without it.
        settings: the recipe's settings without it.
    """

    before: Callable[[], None] = _nothing
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
    "packed batches": Saving(how=_pad, on=("cpu",)),
    "CUDA graphs": Saving(on=("gpu",), params={"cuda_graphs": False}),
    "lower precision": Saving(settings={"precision": "float32"}),
    "batches copied meanwhile": Saving(how=_wait_for_copies, frameworks=("transformers",), on=("gpu",)),
    "GPU made ready meanwhile": Saving(before=_let_the_gpu_be, on=("gpu",)),
    "fused Adam": Saving(how=_fairseq_adam, frameworks=("fairseq",)),
    "settings without Hydra": Saving(how=_hydra, frameworks=("fairseq",)),
    "fewer imports": Saving(before=_import_all),
}


def main() -> None:
    """Train one run; the request names its params, its experiment's folder and what to leave out."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    job = jobs.job_of_run(request["run"], Path(request["experiment"]), request["threads"], request["pace"])
    saving = SAVINGS[request["without"]]
    saving.before()
    runner.leave_out_unused([job])
    name = TRAINERS[job.run["framework"]]
    saving.how(runner.imported(name, job))
    runner.run([job], name, {})


if __name__ == "__main__":
    main()
