"""Going on with a run of `fairseq-train` after any of its updates, to the bit.

fairseq's own checkpoints pickle its configuration, which cannot be read safely, and keep neither the master
copy of float16 weights nor all of the loss scaler. So its state is taken from its objects as plain data, and
put back where fairseq would load a checkpoint.
"""

from types import SimpleNamespace
from typing import Any

from seedbed.models.fairseq_launcher import prepare_import

prepare_import()

import torch  # noqa: E402
from fairseq.trainer import Trainer  # noqa: E402
from fairseq_cli import train as cli  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402

from seedbed.training.fairseq import session as sessions  # noqa: E402
from seedbed.training.fairseq.session import SUBSETS  # noqa: E402


class TrainingOver(Exception):
    """The run was stopped after its training: there is a model for the predictions, and nothing to train."""


class ResumableTrainer(Trainer):
    """fairseq's Trainer, which tells the run's session of every update and starts where the session says.

    `fairseq-train` builds it in place of its own (see `seedbed.training.fairseq.trainer`).
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.cfg = _quick_to_read(self.cfg)
        # with it, fairseq would measure memory after every update, and set the peak back that run.json tells
        self.cuda_env = None
        self.session = sessions.current()
        self.session.trainer = self
        self._batches: Any = None  # fairseq's iterator over epochs, which knows where in the order it is
        self._place: dict[str, Any] | None = None  # where that iterator will start, if not at the beginning

    def training_state(self) -> dict[str, Any]:
        """All that fairseq needs to go on after the last update; nothing is copied.

        No random numbers: fairseq seeds them anew at every update and draws the order of batches from seed
        and epoch. No learning rate: it follows from the number of updates.
        """
        return {
            "updates": self.get_num_updates(),
            "place": self._place or self._batches.state_dict(),
            "weights": self.get_model().state_dict(),
            "optimizer": optimizer_state(self.optimizer),
        }

    def train_step(self, samples: Any, raise_oom: bool = False) -> Any:
        """One update; then the session may write a checkpoint, and leave.

        A GPU without enough memory is an error here. fairseq by itself would drop the batch and go on.
        """
        output = super().train_step(samples, raise_oom=True)
        self.session.save_if_due()
        return output

    def _build_optimizer(self) -> None:
        super()._build_optimizer()
        self._lr_scheduler.cfg = SimpleNamespace(**self._lr_scheduler.cfg)  # it reads some at every update

    def _set_seed(self) -> None:
        """fairseq's seed of an update, for the generators that are used.

        `torch.manual_seed` also tells those of devices that are not there, which takes longer than a layer.
        """
        seed = self.cfg.common.seed + self.get_num_updates()
        torch.default_generator.manual_seed(seed)
        if self.cuda:
            torch.cuda.manual_seed(seed)

    def _reduce_and_log_stats(self, outputs: Any, sample_size: Any, grad_norm: Any = None) -> dict[str, Any]:
        """fairseq's figures of an evaluation; none of an update, whose metrics the recorder keeps.

        They would only be logged, and on a GPU each of them would wait for the update to end.
        """
        return super()._reduce_and_log_stats(outputs, sample_size) if grad_norm is None else {}

    def clip_grad_norm(self, clip_norm: float) -> torch.Tensor:
        """fairseq's; 0 where updates are CUDA graphs and nothing is clipped.

        The norm would only tell that the gradients are finite, and for that wait until the GPU has done the
        update. The evaluation after the epoch tells it, too.
        """
        is_needed = clip_norm > 0 or self.session.graphed(self.model) is None
        return super().clip_grad_norm(clip_norm) if is_needed else torch.zeros(())

    def save_checkpoint(self, filename: str, extra_state: dict[str, Any]) -> None:
        """Nothing: fairseq would write crash.pt where a loss is not finite, and nobody reads it."""

    def load_checkpoint(self, *args: Any, **kwargs: Any) -> Any:
        """The pretrained checkpoint for a run that starts, the state of one that goes on.

        Raises:
            TrainingOver: the run goes on after its training.
            Diverged: it was stopped before the evaluation in which it diverges.
        """
        state = self.session.take_state()
        if state is None:
            return super().load_checkpoint(*args, **kwargs)
        if self.session.over:
            raise TrainingOver
        self.get_model().load_state_dict(state["weights"])
        load_optimizer_state(self.optimizer, state["optimizer"])
        self.set_num_updates(state["updates"])  # and the learning rate
        self._place = state["place"]
        if self._place["iterations_in_epoch"] == 0:  # all of an epoch is trained on; this is the next
            self._finish_epoch()
        return None  # as where fairseq finds no checkpoint

    def _finish_epoch(self) -> None:
        """Evaluate what the epoch that is over lacks."""
        subsets = [SUBSETS[name] for name in self.session.to_evaluate]
        if subsets:
            cli.validate(self.cfg, self, self.task, SimpleNamespace(epoch=self.session.epoch), subsets)

    def get_train_iterator(self, epoch: int, *args: Any, **kwargs: Any) -> Any:
        """fairseq's iterator over epochs; the first one of a run that goes on starts at its next batch."""
        place, self._place = self._place, None
        self._batches = super().get_train_iterator(place["epoch"] if place else epoch, *args, **kwargs)
        if place:
            self._batches.load_state_dict(place)
        return self._batches


def _quick_to_read(config: Any) -> SimpleNamespace:
    """fairseq's settings with plain sections, but for those from which fairseq builds its parts.

    Its trainer reads some forty settings an update, and omegaconf takes its time for each.
    """
    built = ("task", "model", "criterion", "optimizer", "lr_scheduler")
    sections = {name: config[name] for name in config}
    for name, section in sections.items():
        if OmegaConf.is_dict(section) and name not in built:
            sections[name] = SimpleNamespace(**section)
    return SimpleNamespace(**sections)


def optimizer_state(optimizer: Any) -> dict[str, Any]:
    """State of one of fairseq's optimizers, as plain data and tensors that are not copied.

    With float16 weights that is more than fairseq's own `state_dict`: it lacks the float32 master copy of the
    weights, which rounding to float16 cannot give back, and of the loss scaler it keeps the scale alone, not
    the counters that decide when it changes.
    """
    scaler = getattr(optimizer, "scaler", None)
    return {
        "moments": optimizer.state_dict(),
        "masters": [master.detach() for master in _masters(optimizer)],
        "scaler": dict(vars(scaler)) if scaler is not None else None,
    }


def load_optimizer_state(optimizer: Any, state: dict[str, Any]) -> None:
    """Put the state of `optimizer_state` back into an optimizer that was built for the same model."""
    optimizer.load_state_dict(state["moments"])
    with torch.no_grad():
        for master, stored in zip(_masters(optimizer), state["masters"], strict=True):
            master.copy_(stored)
    if state["scaler"] is not None:
        vars(optimizer.scaler).update(state["scaler"])


def _masters(optimizer: Any) -> list[torch.Tensor]:
    """The float32 copy that an optimizer of float16 weights updates; there is none for float32 weights."""
    inner = getattr(optimizer, "fp32_optimizer", None)
    return [] if inner is None else list(inner.params)
