"""Resume a run of `fairseq-train` after any update, bit by bit.

fairseq's own checkpoints pickle its configuration, which cannot be read safely, and lack the master copy of
float16 weights and parts of the loss scaler. So the state is read from fairseq's objects as plain data, and
restored when fairseq would load a checkpoint.
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
    """The run was stopped after its training, so only predictions are left."""


class ResumableTrainer(Trainer):
    """fairseq's Trainer, which notifies the run's session of each update and starts from the session's state.

    `fairseq-train` builds it instead of its own (see `seedbed.training.fairseq.trainer`).
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.cfg = _quick_to_read(self.cfg)
        # with it, fairseq would measure memory after each update, and reset the peak for run.json
        self.cuda_env = None
        self.session = sessions.current()
        self.session.trainer = self
        self._batches: Any = None  # fairseq's iterator over epochs, which knows where in the order it is
        self._place: dict[str, Any] | None = None  # where that iterator will start, if not at the beginning

    def training_state(self) -> dict[str, Any]:
        """The state to resume fairseq after the last update; nothing is copied.

        It lacks random numbers, since fairseq seeds them at each update and draws the order of batches from
        seed and epoch, and the learning rate, which follows from the number of updates.
        """
        return {
            "updates": self.get_num_updates(),
            "place": self._place or self._batches.state_dict(),
            "weights": self.get_model().state_dict(),
            "optimizer": optimizer_state(self.optimizer),
        }

    def train_step(self, samples: Any, raise_oom: bool = False) -> Any:
        """One update; then the session may write a checkpoint and end.

        Too little GPU memory is an error. fairseq itself would drop the batch and continue.
        """
        output = super().train_step(samples, raise_oom=True)
        self.session.save_if_due()
        return output

    def _build_optimizer(self) -> None:
        super()._build_optimizer()
        self._lr_scheduler.cfg = SimpleNamespace(**self._lr_scheduler.cfg)  # it reads some at every update

    def _set_seed(self) -> None:
        """Set fairseq's seed of an update, only for used generators.

        `torch.manual_seed` also seeds missing devices, which takes longer than a layer.
        """
        seed = self.cfg.common.seed + self.get_num_updates()
        torch.default_generator.manual_seed(seed)
        if self.cuda:
            torch.cuda.manual_seed(seed)

    def _reduce_and_log_stats(self, outputs: Any, sample_size: Any, grad_norm: Any = None) -> dict[str, Any]:
        """fairseq's statistics of an evaluation; none of an update, whose metrics the recorder keeps.

        They would only be logged, and on a GPU each would wait for the end of the update.
        """
        return super()._reduce_and_log_stats(outputs, sample_size) if grad_norm is None else {}

    def clip_grad_norm(self, clip_norm: float) -> torch.Tensor:
        """Clip as fairseq does; return 0 if updates are CUDA graphs and nothing is clipped.

        The norm would only show whether gradients are finite, after waiting for the GPU. The evaluation after
        the epoch shows it, too.
        """
        is_needed = clip_norm > 0 or self.session.graphed(self.model) is None
        return super().clip_grad_norm(clip_norm) if is_needed else torch.zeros(())

    def save_checkpoint(self, filename: str, extra_state: dict[str, Any]) -> None:
        """Do nothing: fairseq would write an unused crash.pt after a loss that is not finite."""

    def load_checkpoint(self, *args: Any, **kwargs: Any) -> Any:
        """Load the pretrained checkpoint if the run starts, or its state if it is resumed.

        Raises:
            TrainingOver: the run is resumed after its training.
            Diverged: the run was stopped before the evaluation in which it diverges.
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
        if self._place["iterations_in_epoch"] == 0:  # an epoch was completed; this is the next
            self._finish_epoch()
        return None  # as if fairseq found no checkpoint

    def _finish_epoch(self) -> None:
        """Make the missing evaluations of the completed epoch."""
        subsets = [SUBSETS[name] for name in self.session.to_evaluate]
        if subsets:
            cli.validate(self.cfg, self, self.task, SimpleNamespace(epoch=self.session.epoch), subsets)

    def get_train_iterator(self, epoch: int, *args: Any, **kwargs: Any) -> Any:
        """fairseq's iterator over epochs; in a resumed run, the first one starts at the next batch."""
        place, self._place = self._place, None
        self._batches = super().get_train_iterator(place["epoch"] if place else epoch, *args, **kwargs)
        if place:
            self._batches.load_state_dict(place)
        return self._batches


def _quick_to_read(config: Any) -> SimpleNamespace:
    """fairseq's settings with plain sections, except those from which fairseq builds its parts.

    Its trainer reads some forty settings per update, which is slow with omegaconf.
    """
    built = ("task", "model", "criterion", "optimizer", "lr_scheduler")
    sections = {name: config[name] for name in config}
    for name, section in sections.items():
        if OmegaConf.is_dict(section) and name not in built:
            sections[name] = SimpleNamespace(**section)
    return SimpleNamespace(**sections)


def optimizer_state(optimizer: Any) -> dict[str, Any]:
    """State of one of fairseq's optimizers, as plain data and tensors, which are not copied.

    For float16 weights, fairseq's own `state_dict` is not enough: it lacks the float32 master copy of the
    weights, and of the loss scaler the counters that decide when the scale changes.
    """
    scaler = getattr(optimizer, "scaler", None)
    return {
        "moments": optimizer.state_dict(),
        "masters": [master.detach() for master in _masters(optimizer)],
        "scaler": dict(vars(scaler)) if scaler is not None else None,
    }


def load_optimizer_state(optimizer: Any, state: dict[str, Any]) -> None:
    """Restore the state of `optimizer_state` in an optimizer for the same model."""
    optimizer.load_state_dict(state["moments"])
    with torch.no_grad():
        for master, stored in zip(_masters(optimizer), state["masters"], strict=True):
            master.copy_(stored)
    if state["scaler"] is not None:
        vars(optimizer.scaler).update(state["scaler"])


def _masters(optimizer: Any) -> list[torch.Tensor]:
    """The float32 copy that an optimizer of float16 weights updates; empty for float32 weights."""
    inner = getattr(optimizer, "fp32_optimizer", None)
    return [] if inner is None else list(inner.params)
