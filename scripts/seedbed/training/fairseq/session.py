"""The present run of `fairseq-train`, for the plugin.

fairseq builds tasks and criteria from command-line arguments, so they cannot be given an object. Instead the
trainer opens a session, and the plugin asks for it.
"""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seedbed.core.recipes import is_evaluated
from seedbed.core.truncation import Pair
from seedbed.running.jobs import Job
from seedbed.training import graphs, initialisation, objectives, packing, partial, products, token_ids
from seedbed.training.fairseq import layout
from seedbed.training.graphs import Graphed, Tensors
from seedbed.training.initialisation import draw_encoder, draw_head
from seedbed.training.objectives import Objective
from seedbed.training.partial import Part
from seedbed.training.progress import Progress
from seedbed.training.recording import Recorder

HEAD = "sentence_classification_head"
SUBSETS = {"validation": "valid", "test": "test"}  # fairseq's names of the splits
COUNTED = ("step", "tried", "epoch", "over")
_current: "Session | None" = None


@dataclass
class Session:
    """One run inside `fairseq-train`: initial weights, captured logits, recording and resuming."""

    job: Job
    progress: Progress
    splits: dict[str, Any]  # of texts, or of states
    model: Any = None
    trainer: Any = None  # a ResumableTrainer, once fairseq has built it
    step: int = 0  # updates made
    tried: int = 0  # updates tried, more than made if float16 overflowed
    epoch: int = 0
    over: bool = False  # training is over, and the weights are the selected ones
    _pending: list[str] = field(default_factory=list)  # splits still to record in the epoch
    _captured: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    _state: dict[str, Any] | None = None
    _graphed: Graphed | None = None

    def __post_init__(self) -> None:
        resumed, self.progress.resumed = self.progress.resumed, None  # dropped when it is loaded
        if resumed is not None:
            self.step, self.tried, self.epoch, self.over = (resumed[name] for name in COUNTED)
            self._pending = list(resumed["pending"])
            self._state = resumed["trainer"]

    @property
    def recorder(self) -> Recorder:
        """Records the run."""
        return self.progress.recorder

    @property
    def checkpoint(self) -> Path:
        """The pretrained checkpoint, rewritten in fairseq's format."""
        return self.job.weights / "model.pt"

    def initialise(self, model: Any) -> None:
        """Draw the head, and the encoder of a random run, and freeze what the method does not train.

        A checkpoint is loaded later, by fairseq, into the same tensors.
        """
        self.model = model
        seed, settings = self.job.run["init_seed"], self.job.settings
        if self.job.run["init"] == "random":
            encoder = model.encoder.sentence_encoder
            draw_encoder(encoder, seed, settings["random_init_sd"], lambda name: name)
        head = model.classification_heads[HEAD]
        draw_head(head.dense, head.out_proj, seed, settings["head_init"])
        if self.job.method.trains_part:
            partial.freeze(model, layout.layout_of(model, HEAD), settings)
        products.give(model, settings, self.recorder.device)

    def groups(self) -> list[Part]:
        """What is trained of the model, if it is a part of its weights."""
        if not self.job.method.trains_part:
            return []
        return partial.groups(self.model, layout.layout_of(self.model, HEAD), self.job.settings)

    def split_of(self, subset: str) -> Any:
        """The split of a subset of fairseq."""
        names = {fairseq_name: name for name, fairseq_name in SUBSETS.items()}
        return self.splits[names.get(subset, subset)]

    def pairs_of(self, subset: str) -> Mapping[int, Pair] | None:
        """Numbers of tokens of the pairs in a subset of fairseq, by their place in its files; None if its
        examples are single texts."""
        split = self.split_of(subset)
        if split.pairs is None:
            return None
        return dict(zip(split.rows or range(len(split.pairs)), split.pairs, strict=True))

    # --- going on from a checkpoint ---

    def take_state(self) -> dict[str, Any] | None:
        """The trainer's state for resuming, once; None for a run that starts anew."""
        state, self._state = self._state, None
        return state

    def save_if_due(self) -> None:
        """Write a checkpoint if one is due; end if a signal asked for it."""
        self.progress.after_update(self.step, self._whole_state)

    def _whole_state(self) -> dict[str, Any]:
        counted = {name: getattr(self, name) for name in COUNTED}
        trainer = {} if self.over else self.trainer.training_state()
        return {**counted, "pending": list(self._pending), "trainer": trainer}

    @property
    def to_evaluate(self) -> list[str]:
        """The splits that the epoch has not evaluated."""
        return [name for name in self._pending if name in SUBSETS]

    # --- events of fairseq ---

    def begin_epoch(self, epoch: int) -> None:
        """End an epoch without evaluation; before the first update, check that the run starts from the right
        weights."""
        if epoch != self.epoch:  # a resumed run begins its epoch a second time
            self._end_training_epoch()
        evaluated = self.job.evaluated if is_evaluated(self.job.settings, epoch) else ()
        self.epoch, self._pending = epoch, ["train", *evaluated]
        if self.tried == 0 and self.job.run["init"] == "pretrained":
            self._check_loaded()
        self.recorder.start_training()

    def _check_loaded(self) -> None:
        prefix = "encoder.sentence_encoder."
        # read directly: fairseq's own loader also rebuilds its whole configuration, which takes a second
        stored = torch.load(self.checkpoint, map_location="cpu", weights_only=True)["model"]
        encoder = {name: tensor for name, tensor in stored.items() if name.startswith(prefix)}
        initialisation.check_loaded(encoder, self.model.state_dict(), self.checkpoint)

    def saw(self, sample: dict[str, Any], logits: torch.Tensor, labels: torch.Tensor, training: bool) -> None:
        """Keep the logits of a batch."""
        if training and self.job.states:
            self.recorder.add_batch(logits, labels)  # no tokens are read
        elif training:
            self.saw_batch(sample["ntokens"], sample["net_input"]["src_tokens"], logits, labels)
        else:
            self._captured.append((sample["id"], logits.detach()))
            self.save_if_due()

    def logits(self, model: Any, sample: dict[str, Any]) -> torch.Tensor:
        """Logits of a batch of fairseq, (texts, size of the head)."""
        if self.job.states is None:
            return model(**sample["net_input"], features_only=True, classification_head_name=HEAD)[0]
        split = self.splits["train" if model.training else self._pending[0]]
        return self._of_states(model, split.at(sample["id"].cpu()))

    def _of_states(self, model: Any, chosen: torch.Tensor) -> torch.Tensor:
        """Logits of texts by the states of their first token, (texts, width)."""
        head = model.classification_heads[HEAD]
        # it takes the first token of its input
        return head(chosen.to(head.dense.weight)[:, None])

    def saw_batch(self, real: int, tokens: torch.Tensor, logits: torch.Tensor, labels: torch.Tensor) -> None:
        """Record a training batch; `real` is its number of tokens without padding."""
        self.recorder.add_batch(logits, labels)
        padded = int(real) if packing.is_used_on(tokens.device) else tokens.numel()
        self.recorder.count_tokens(int(real), padded)

    # --- forward and backward pass as a CUDA graph ---

    def graphed(self, model: Any) -> Graphed | None:
        """The captured pass for the gradients of the summed loss; None if graphs are not used."""
        if not graphs.are_used(self.job.run, self.recorder.device):
            return None
        if self._graphed is None:

            def loss_and_logits(batch: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
                texts = packing.padded(batch["tokens"], model.encoder.sentence_encoder.padding_idx)
                logits = model.classify(texts, HEAD).float()
                return self.objective.summed(logits, batch["labels"]), logits

            self._graphed = Graphed(loss_and_logits, model.parameters())
        return self._graphed

    @functools.cached_property
    def objective(self) -> Objective:
        """The training loss; fairseq divides its sum over a batch by the number of examples."""
        return objectives.of(self.job, self.splits["train"].labels, self.recorder.device)

    def drop_graphs(self) -> None:
        """Free the memory of graphs after training."""
        if self._graphed:
            self._graphed.close()

    def begin_validation(self) -> None:
        """fairseq begins to evaluate its subsets, in the order of `--valid-subset`."""
        self.recorder.clock.switch("evaluate")
        self._captured = []
        self._end_training_epoch()

    def _end_training_epoch(self) -> None:
        if self._pending[:1] == ["train"]:
            self.recorder.end_training_epoch(self.step, self.epoch)
            self._pending.pop(0)

    def end_validation(self) -> bool:
        """Record an evaluated subset; return whether the run diverged."""
        name = self._pending.pop(0)
        split = self.splits[name]
        logits = self._in_order(len(split.labels))
        labels = np.asarray(split.labels)
        self.recorder.evaluated(name, logits, labels, self.step, self.epoch, self.model.state_dict)
        if not self._pending:
            self.recorder.resume_training()
        if not self.recorder.diverged:
            self.save_if_due()
        return self.recorder.diverged

    def _in_order(self, examples: int) -> np.ndarray:
        """The captured logits in the order of the split, since fairseq also shuffles validation."""
        index = torch.cat([ids for ids, _ in self._captured]).cpu().numpy()
        values = torch.cat([logits for _, logits in self._captured]).float().cpu().numpy()
        self._captured = []
        assert sorted(index) == list(range(examples)), "fairseq did not evaluate every example once"
        logits = np.empty_like(values)
        logits[index] = values
        return logits

    @torch.no_grad()
    def predict_split(self, split: Any) -> np.ndarray:
        """Logits of every example, shape (examples, classes), without dropout."""
        model, size = self.model.eval(), self.job.run["evaluation"]["batch_size"]

        def on_states(chosen: list[int]) -> torch.Tensor:
            self.save_if_due()
            return self._of_states(model, split.states[chosen]).float()

        if self.job.states:
            return token_ids.predict_by_length(on_states, [1] * len(split.labels), size)

        def forward(batch: torch.Tensor) -> torch.Tensor:
            self.save_if_due()
            logits, _ = model(src_tokens=batch, features_only=True, classification_head_name=HEAD)
            return logits

        return token_ids.predict_logits(forward, split.ids, size, self.recorder.device)


@contextlib.contextmanager
def opened(session: Session) -> Iterator[None]:
    """Make `session` the plugin's session during the block; then its model and optimizer can be freed."""
    global _current
    _current = session
    try:
        yield
    finally:
        _current = session.trainer = None


def current() -> Session:
    """The open session."""
    assert _current is not None, "fairseq's plugin was loaded outside a run"
    return _current
