"""The trainers: their runs, their modules, and the modules that may change their numbers.

A trainer is a module whose `train` takes a list of jobs. A new one needs an entry here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from seedbed.core.tasks import ANSWERS, CLASSES, LABEL_SETS, TASKS, VALUES

PACKING = {"packing": "training/packing.py"}
HEADS = PACKING | {"objectives": "training/objectives.py", "targets": "training/targets.py"}
TRANSFORMERS = {
    "initial_models": "training/initial_models.py",
    "training_methods": "training/methods.py",
    "transformers_loop": "training/transformers/base_trainer.py",
}


@dataclass(frozen=True)
class Trainer:
    """A trainer.

    Attributes:
        name: its name in `identity.KINDS`.
        module: its name for Python.
        code: further modules that may change a number of its runs: paths below the library by logical name.
        together: whether it trains the runs of a batch as one model, so that they succeed or fail together;
            else one after another.
    """

    name: str
    module: str
    code: Mapping[str, str]
    together: bool = False


# the runs of a recipe as one batched model, in both frameworks
FUSED = Trainer(
    "fused",
    "seedbed.training.fused.trainer",
    PACKING
    | {
        "fused_acceleration": "training/fused/acceleration.py",
        "fused_adapters": "training/fused/adapters.py",
        "fused_batches": "training/fused/batches.py",
        "fused_kernels": "training/fused/kernels.py",
        "fused_model": "training/fused/model.py",
        "fused_operations": "training/fused/operations.py",
        "fused_optimizer": "training/fused/optimizer.py",
        "fused_order": "training/fused/order.py",
        "fused_tables": "training/fused/tables.py",
        "fused_texts": "training/fused/texts.py",
        "fused_trainer": "training/fused/trainer.py",
        "roberta": "models/roberta.py",
    },
    together=True,
)
# encoders with a head
FAIRSEQ = Trainer(
    "fairseq",
    "seedbed.training.fairseq.trainer",
    HEADS
    | {
        "adam": "training/fairseq/adam.py",
        "composition": "training/fairseq/composition.py",
        "launcher": "models/fairseq_launcher.py",
        "fairseq_layout": "training/fairseq/layout.py",
        "fairseq_packed": "training/fairseq/packed.py",
        "resuming": "training/fairseq/resuming.py",
        "seedbed_plugin": "training/fairseq/seedbed_plugin/__init__.py",
        "session": "training/fairseq/session.py",
        "fairseq_trainer": "training/fairseq/trainer.py",
    },
)
ENCODERS = Trainer(
    "transformers",
    "seedbed.training.transformers.classifier",
    HEADS
    | TRANSFORMERS
    | {
        "initial_encoders": "training/initial_encoders.py",
        "on_states": "training/transformers/on_states.py",
        "transformers_evaluation": "training/transformers/evaluation.py",
        "transformers_packed": "training/transformers/packed_batches.py",
        "transformers_trainer": "training/transformers/classifier.py",
    },
)
LABEL_SET_CODE = {"label_sets": "training/label_sets.py", "set_metrics": "core/set_metrics.py"}
# by framework and kind of outputs
TRAINERS = {
    ("fairseq", CLASSES): FAIRSEQ,
    ("fairseq", VALUES): FAIRSEQ,
    ("transformers", CLASSES): ENCODERS,
    ("transformers", LABEL_SETS): replace(ENCODERS, code=ENCODERS.code | LABEL_SET_CODE),
    ("transformers", VALUES): ENCODERS,
    ("transformers", ANSWERS): Trainer(
        "transformers",
        "seedbed.training.transformers.causal",
        TRANSFORMERS
        | {
            "causal_trainer": "training/transformers/causal.py",
            "generation": "training/generation.py",
            "merging": "training/merging.py",
        },
    ),
}


def of(run: Mapping[str, Any]) -> Trainer:
    """The trainer of a run, from its params."""
    return FUSED if "fused" in run else TRAINERS[run["framework"], TASKS[run["task"]].outputs]


def named(name: str, task: str) -> Trainer:
    """The trainer of this name for a task."""
    return FUSED if name == FUSED.name else TRAINERS[name, TASKS[task].outputs]
