"""Fine-tuning with fairseq: `fairseq-train` itself, in this process, with Seedbed's plugin."""

import contextlib
import logging
import os
import sys
from pathlib import Path
from typing import Any

from seedbed.models.fairseq_launcher import prepare_import

prepare_import()

import fairseq.dataclass.utils  # noqa: E402
import fairseq.trainer  # noqa: E402
import fairseq_cli.train  # noqa: E402
from fairseq import checkpoint_utils  # noqa: E402

from seedbed.core import files  # noqa: E402
from seedbed.core.errors import SeedbedError  # noqa: E402
from seedbed.core.recipes import EVALUATED_EVERY, refuse_bfloat16  # noqa: E402
from seedbed.core.tasks import CLASSES, VALUES  # noqa: E402
from seedbed.running.jobs import Job  # noqa: E402
from seedbed.training import (  # noqa: E402
    adapter_parameters,
    differences,
    hardware,
    results,
    states,
    token_ids,
)
from seedbed.training.fairseq import layout  # noqa: E402
from seedbed.training.fairseq import session as sessions  # noqa: E402
from seedbed.training.fairseq.composition import compose  # noqa: E402
from seedbed.training.fairseq.resuming import ResumableTrainer, TrainingOver  # noqa: E402
from seedbed.training.fairseq.session import HEAD, SUBSETS, Session  # noqa: E402
from seedbed.training.progress import check_updates, start  # noqa: E402
from seedbed.training.schedule import end_learning_rate, warmup_updates  # noqa: E402

PLUGIN = Path(__file__).parent / "seedbed_plugin"
# fairseq repeats a step whose gradients are not finite with hooks that search for the cause. On current
# PyTorch these hooks fail with another error; without them, the step's own error is raised.
fairseq.trainer.NanDetector = contextlib.nullcontext
# fairseq-train composes its settings and builds its trainer with the objects under these names
fairseq.dataclass.utils.compose = compose
fairseq_cli.train.Trainer = ResumableTrainer
_validate_and_save = fairseq_cli.train.validate_and_save


def _after_update(_: Any, trainer: ResumableTrainer, *more: Any) -> Any:
    """fairseq's check after each update whether to evaluate or stop, with settings that are quick to read."""
    return _validate_and_save(trainer.cfg, trainer, *more)


fairseq_cli.train.validate_and_save = _after_update
log = logging.getLogger(__name__)


def train(jobs: list[Job]) -> None:
    """Train, select, predict and publish the runs of one process, one after another."""
    for job in jobs:
        train_run(job)


def train_run(job: Job) -> None:
    """Fine-tune one run and publish its folder.

    Raises:
        SeedbedError: the checkpoint is missing, the precision is bfloat16 on a GPU, or fairseq's number of
            updates differs from the plan.
    """
    checkpoint = job.weights / "model.pt"
    if job.run["init"] == "pretrained" and not checkpoint.is_file():
        raise SeedbedError(
            "the checkpoint is missing; fairseq would train from scratch without a warning",
            where=str(checkpoint),
            hint="make it again: snakemake --forcerun convert_checkpoint",
        )
    hardware.set_up_torch(job.threads, job.run["deterministic"], job.settings["precision"])
    splits: dict[str, Any] = dict(token_ids.read_splits(job))
    if job.states:
        splits = dict(states.beside(splits, job.states))
    session = Session(job, start(job, len(splits["train"].ids)), splits)
    if session.recorder.device.type != "cpu":
        refuse_bfloat16(job.settings, hardware.describe_device(session.recorder.device))
    with sessions.opened(session):
        _train_and_publish(session)


def _train_and_publish(session: Session) -> None:
    job, recorder = session.job, session.recorder
    command = arguments(session)
    _fairseq_train(command, session)
    session.drop_graphs()
    if recorder.selected is None:
        recorder.select_last(session.step, session.epoch, session.model.state_dict())
    session.model.load_state_dict(recorder.selected.weights)
    session.over = True
    skipped = session.tried - session.step
    found = differences.of_fairseq(job.settings) + differences.of_states(job)
    if skipped and not recorder.diverged:
        done = f"{skipped} skipped, as float16 overflowed"
        found.append({"setting": "updates", "asked": recorder.total_updates, "done": done})
    extra = {
        "updates": session.step,
        "differences": found,
        "command": ["fairseq-train", *command],
        "parameters": adapter_parameters.describe(
            layout.used(session.model), job.run["method"], groups=session.groups()
        ),
    }
    predictor = results.predictor_of(job, session.predict_split)
    results.finish(job, recorder, session.splits, predictor, extra)


def _fairseq_train(command: list[str], session: Session) -> None:
    """Run `fairseq-train` with these arguments; a loss that is not finite ends the run, recorded as such."""
    before = sys.argv
    sys.argv = ["fairseq-train", *command]
    # fairseq keeps the best accuracy here for its log, even across runs of a process
    vars(checkpoint_utils.save_checkpoint).pop("best", None)
    try:
        fairseq_cli.train.cli_main()
    except TrainingOver:
        log.info("training was already over, after update %d", session.step)
    except FloatingPointError as error:
        log.warning("the run diverged at update %d: %s", session.step, error)
        session.recorder.diverged = True
    finally:
        sys.argv = before
    overflows = session.job.settings["precision"] == "float16"
    if not session.recorder.diverged and not overflows:
        check_updates(session.step, session.recorder.total_updates)


# by a task's outputs: the metric by which fairseq would keep a checkpoint, and flags
LABELS = {
    CLASSES: ("accuracy", ["--maximize-best-checkpoint-metric"]),
    VALUES: ("loss", ["--regression-target"]),
}


def arguments(session: Session) -> list[str]:
    """The command line of `fairseq-train` for a run."""
    job, recorder = session.job, session.recorder
    run, settings, total = job.run, job.settings, recorder.total_updates
    shape = files.read_json(job.model)
    beta1, beta2 = settings["adam_betas"]
    best, of_labels = LABELS[job.task.outputs]
    options = {
        "--user-dir": os.path.relpath(PLUGIN),  # relative, since run.json records the command
        "--task": "seedbed_sentence_prediction",
        "--criterion": "seedbed_sentence_prediction",
        "--classification-head-name": HEAD,
        "--num-classes": job.head_size,
        "--init-token": 0,
        "--separator-token": 2,
        "--max-positions": shape["max_positions"],
        "--longest-input": settings["max_positions"] or shape["max_positions"],
        "--arch": "roberta_small",
        "--encoder-layers": shape["layers"],
        "--encoder-embed-dim": shape["embed_dim"],
        "--encoder-ffn-embed-dim": shape["ffn_dim"],
        "--encoder-attention-heads": shape["attention_heads"],
        "--activation-fn": shape["activation"],
        "--dropout": settings["dropout"],
        "--attention-dropout": settings["attention_dropout"],
        "--activation-dropout": settings["activation_dropout"],
        "--pooler-dropout": settings["pooler_dropout"],
        "--optimizer": "seedbed_adam",
        "--adam-betas": f"({beta1}, {beta2})",
        "--adam-eps": settings["adam_epsilon"],
        "--weight-decay": settings["weight_decay"],
        "--clip-norm": settings["clip_norm"],
        "--lr": settings["learning_rate"],
        "--lr-scheduler": "polynomial_decay",
        "--total-num-update": total,
        "--warmup-updates": warmup_updates(total, settings["warmup_ratio"]),
        "--power": settings["schedule_power"],
        "--end-learning-rate": end_learning_rate(settings),
        "--batch-size": settings["batch_size"],
        "--batch-size-valid": run["evaluation"]["batch_size"],
        "--required-batch-size-multiple": 1,
        "--max-epoch": settings["epochs"],
        "--max-update": total,
        "--seed": run["data_seed"],
        "--valid-subset": ",".join(SUBSETS[split] for split in job.evaluated),
        "--best-checkpoint-metric": best,
        "--num-workers": 0,
        "--distributed-world-size": 1,
        "--save-dir": job.work / "fairseq",
        "--log-format": "simple",
        "--log-interval": 100,
    }
    if settings.get(EVALUATED_EVERY, 1) > 1:
        options["--validate-interval"] = settings[EVALUATED_EVERY]
    flags = [*of_labels, "--no-save", "--no-progress-bar"]
    if run["init"] == "pretrained":
        options["--restore-file"] = session.checkpoint
        flags += ["--reset-optimizer", "--reset-dataloader", "--reset-meters", "--reset-lr-scheduler"]
    if recorder.device.type == "cpu":
        flags.append("--cpu")
    if settings["precision"] == "float16":
        flags.append("--fp16")
    pairs = [str(part) for pair in options.items() for part in pair]
    return [str(job.binarized), *pairs, *flags]
