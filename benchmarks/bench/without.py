"""One run of Seedbed without one of its savings: python without.py REQUEST.json (see ablation.py)."""

import contextlib
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

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


# what is left out, the frameworks that have it, and how, once the trainer is imported
SAVINGS: dict[str, tuple[tuple[str, ...], Callable[[ModuleType], None]]] = {
    "nothing": (("fairseq", "transformers"), lambda trainer: None),
    "packed batches": (("fairseq", "transformers"), _pad),
    "fused Adam": (("fairseq",), _fairseq_adam),
    "settings without Hydra": (("fairseq",), _hydra),
    "fewer imports": (("fairseq", "transformers"), lambda trainer: None),
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
    SAVINGS[request["without"]][1](trainer)
    running.run([job], name, {})


if __name__ == "__main__":
    main()
