"""The run that `fairseq-train` is working on, as the plugin sees it.

fairseq builds tasks and criteria from command-line arguments, so there is no way to hand them an object: the
trainer opens a session, the plugin asks for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seedbed import finetuning
from seedbed.finetuning import Job, Split
from seedbed.initialisation import draw_encoder, draw_head
from seedbed.recording import Recorder

HEAD = "sentence_classification_head"
SUBSETS = {"validation": "valid", "test": "test"}  # fairseq's names of the splits
_current: "Session | None" = None


@dataclass
class Session:
    """One run inside `fairseq-train`: initial weights, captured logits, and what to record."""

    job: Job
    recorder: Recorder
    splits: dict[str, Split]
    model: Any = None
    step: int = 0  # updates made
    tried: int = 0  # updates tried; more than made where float16 overflowed
    epoch: int = 0
    _pending: list[str] = field(default_factory=list)
    _captured: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)

    @property
    def checkpoint(self) -> Path:
        """The pretrained checkpoint, rewritten in fairseq's format."""
        return self.job.weights / "model.pt"

    def initialise(self, model: Any) -> None:
        """Draw the head, and the encoder of a random run; a checkpoint is loaded later, by fairseq."""
        self.model = model
        seed, settings = self.job.run["init_seed"], self.job.settings
        if self.job.run["init"] == "random":
            encoder = model.encoder.sentence_encoder
            draw_encoder(encoder, seed, settings["random_init_sd"], lambda name: name)
        head = model.classification_heads[HEAD]
        draw_head(head.dense, head.out_proj, seed, settings["head_init"])

    def begin_epoch(self, epoch: int) -> None:
        """Before the first update: the run must start from the weights it was asked to start from."""
        self.epoch = epoch
        if epoch == 1:
            if self.job.run["init"] == "pretrained":
                self._check_loaded()
            self.recorder.start_training()

    def _check_loaded(self) -> None:
        prefix = "encoder.sentence_encoder."
        # read plainly: fairseq's own loader also rebuilds its whole configuration, which takes a second
        stored = torch.load(self.checkpoint, map_location="cpu", weights_only=True)["model"]
        encoder = {name: tensor for name, tensor in stored.items() if name.startswith(prefix)}
        finetuning.check_loaded(encoder, self.model.state_dict(), self.checkpoint)

    def saw(self, sample: dict[str, Any], logits: torch.Tensor, labels: torch.Tensor, training: bool) -> None:
        """Keep the logits of a batch."""
        if training:
            self.recorder.add_batch(logits, labels)
            padded = sample["net_input"]["src_tokens"].numel()
            self.recorder.count_tokens(int(sample["ntokens"]), padded)
        else:
            self._captured.append((sample["id"], logits.detach()))

    def begin_validation(self) -> None:
        """fairseq begins to evaluate its subsets, in the order of `--valid-subset`."""
        self._pending = list(self.job.evaluated)
        self._captured = []
        self.recorder.end_training_epoch(self.step, self.epoch)

    def end_validation(self) -> bool:
        """One subset is done: record it. Returns whether the run diverged."""
        name = self._pending.pop(0)
        split = self.splits[name]
        logits = self._in_order(len(split.labels))
        labels = np.asarray(split.labels)
        self.recorder.evaluated(name, logits, labels, self.step, self.epoch, self.model.state_dict)
        if not self._pending:
            self.recorder.resume_training()
        return self.recorder.diverged

    def _in_order(self, examples: int) -> np.ndarray:
        """The captured logits in the order of the split: fairseq shuffles validation too."""
        index = torch.cat([ids for ids, _ in self._captured]).cpu().numpy()
        values = torch.cat([logits for _, logits in self._captured]).float().cpu().numpy()
        self._captured = []
        assert sorted(index) == list(range(examples)), "fairseq did not evaluate every example once"
        logits = np.empty_like(values)
        logits[index] = values
        return logits

    @torch.no_grad()
    def predict_logits(self, ids: Sequence[Sequence[int]]) -> np.ndarray:
        """Logits of every example, shape (examples, classes), without dropout."""
        model = self.model.eval()

        def forward(batch: torch.Tensor) -> torch.Tensor:
            logits, _ = model(src_tokens=batch, features_only=True, classification_head_name=HEAD)
            return logits

        size = self.job.run["evaluation"]["batch_size"]
        return finetuning.predict_logits(forward, ids, size, self.recorder.device)


def open_session(session: Session) -> None:
    """Make `session` the one that the plugin sees."""
    global _current
    _current = session


def current() -> Session:
    """The open session."""
    assert _current is not None, "fairseq's plugin was loaded outside a run"
    return _current
