"""Fine-tune classifiers with Transformers' Trainer."""

import functools
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seedbed.models.auto_classifiers import is_auto
from seedbed.running.jobs import Job
from seedbed.training import (
    adapter_parameters,
    differences,
    graphs,
    hardware,
    initial_encoders,
    methods,
    objectives,
    packing,
    results,
    states,
    token_ids,
)
from seedbed.training.graphs import Graphed, Tensors
from seedbed.training.objectives import Objective
from seedbed.training.packing import Texts
from seedbed.training.progress import Progress, start
from seedbed.training.token_ids import Split, Text
from seedbed.training.transformers import be_quiet
from seedbed.training.transformers.base_trainer import RecipeTrainer, train_and_select
from seedbed.training.transformers.evaluation import TYPES, Evaluation, attention_mask, packed, padded
from seedbed.training.transformers.on_states import HeadTrainer, without_encoder

log = logging.getLogger(__name__)

READ = ("input_ids", "attention_mask", TYPES)  # by a classifier
GRAPHED = ("input_ids", "positions", "starts", TYPES, "labels")  # by a captured pass


def train(jobs: list[Job]) -> None:
    """Train, select, predict and publish the runs of one process, one after another."""
    be_quiet()
    for job in jobs:
        train_run(job)


def train_run(job: Job) -> None:
    """Fine-tune one run and publish its folder."""
    hardware.set_up_torch(job.threads, job.run["deterministic"], job.settings["precision"])
    splits = token_ids.read_splits(job)
    progress = start(job, len(splits["train"].ids))
    method = methods.of(job)
    model = method.classifier()
    # before training, since it may refuse the adapter
    parameters = adapter_parameters.describe(
        model, job.method.name, job.settings.get("lora"), method.groups(model)
    )
    trainer = _trainer(job, progress, splits, model)
    extra = train_and_select(trainer)
    trainer.drop_graphs()
    inner = method.inner(trainer.model)
    own = initial_encoders.differences_of(inner, job.run) if is_auto(inner.config) else None
    found = differences.of_transformers(job.settings, own) + differences.of_states(job)
    extra |= {"differences": found, "parameters": parameters}
    extra |= trainer.batching()
    predictor = results.predictor_of(job, trainer.predict_split)
    extra |= method.save(trainer.model, progress.recorder.ready)

    def keep_model(folder: Path) -> None:
        method.write_model(folder, trainer.model, progress.recorder.ready)

    # the selected weights are the whole model, unless others are frozen
    keep = keep_model if job.method.freezes else None
    results.finish(job, progress.recorder, trainer.splits, predictor, extra, keep)


def _trainer(job: Job, progress: Progress, splits: dict[str, Split], model: Any) -> Any:
    """The trainer of a run: of the texts, or of the states that an encoder gives them."""
    if job.states is None:
        return Finetuner(job, progress, splits, model)
    encoded = states.beside(splits, job.states, states.kind_of(model))
    return HeadTrainer(job, progress, encoded, without_encoder(model))


class Finetuner(RecipeTrainer):
    """Trains an encoder with a head by the mean loss of its objective."""

    def examples(self, split: Split) -> list[tuple[Text, int]]:
        """Tokens and label of each example."""
        return list(zip(split.texts, split.labels, strict=True))

    def collate(self, batch: Sequence[tuple[Text, int]]) -> dict[str, Any]:
        """A batch: token ids, labels, number of tokens; `packed` texts, or padded ids and an attention mask.

        The ids of packed texts are (tokens,), those of padded ones (batch, length), and so are types.
        """
        if self._evaluation.packs:
            batch = sorted(batch, key=lambda example: len(example[0].ids))  # the fastest order for attention
        texts = [text for text, _ in batch]
        made = {
            "labels": torch.tensor([label for _, label in batch]),
            "tokens": sum(len(text.ids) for text in texts),
        }
        if self._evaluation.packs:
            rows = packed(texts)
            return {**made, "input_ids": rows.ids, "packed": rows}
        if self._fills:
            filled = packing.filled(packed(texts), self._evaluation.pad)
            types = {} if filled.types is None else {TYPES: filled.types}
            parts = {"input_ids": filled.ids, "positions": filled.positions, "starts": filled.starts}
            return {**made, **parts, **types}
        if self._graphed:
            length = graphs.filled_up(max(len(text.ids) for text in texts), self._longest)
            return {**made, **padded(texts, self._evaluation.pad, length)}
        return {**made, **padded(texts, self._evaluation.pad), "attention_mask": attention_mask(texts)}

    @functools.cached_property
    def _evaluation(self) -> Evaluation:
        """Computes logits without dropout."""
        inner = self.method.inner(self.model)
        return Evaluation(self.model, inner, self.args.device, self.autocast)

    def batching(self) -> dict[str, bool]:
        """Entries of run.json: whether batches are packed, and that a model has no CUDA graphs."""
        packs = self._evaluation.packs or self._fills
        log.info("the texts of a batch are %s", "packed" if packs else "padded")
        return {"packed": packs} | ({} if self._evaluation.packable else {"cuda_graphs": False})

    @functools.cached_property
    def _longest(self) -> int:
        """Number of tokens of the longest training text."""
        return max(map(len, self.splits["train"].ids))

    @functools.cached_property
    def _graphed(self) -> Graphed | None:
        """The forward and backward pass as CUDA graphs; None if they are not used."""
        if not (self._evaluation.packable and graphs.are_used(self.job.run, self.args.device)):
            return None
        return Graphed(self._loss_and_logits, self.model.parameters())

    @functools.cached_property
    def _fills(self) -> bool:
        """Whether the batches of graphs are packed, and filled up, instead of padded."""
        return self._graphed is not None and graphs.are_packed(self.job.run)

    def drop_graphs(self) -> None:
        """Free the memory of graphs after training."""
        if self._graphed:
            self._graphed.close()

    def _loss_and_logits(self, batch: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean loss and logits of a batch; the operations depend only on its shapes."""
        ids, types = batch["input_ids"], batch.get(TYPES)
        if "starts" in batch:
            longest = max(self._longest, packing.MULTIPLE_OF_TOKENS)
            texts: Texts = packing.Filled(ids, batch["positions"], batch["starts"], longest, types)
        else:
            texts = packing.padded(ids, self._evaluation.pad, types)
        logits = self._evaluation.packed_logits(texts)[: len(batch["labels"])]
        return self._objective.mean(logits, batch["labels"]), logits

    @functools.cached_property
    def _objective(self) -> Objective:
        """The training loss."""
        return objectives.of(self.job, self.splits["train"].labels, self.args.device)

    def training_step(self, model: Any, inputs: dict[str, Any], *more: Any, **options: Any) -> torch.Tensor:
        """RecipeTrainer's step, or one graph."""
        if not self._graphed:
            return super().training_step(model, inputs, *more, **options)
        model.train()
        inputs = self._prepare_inputs(inputs)
        loss, logits = self._graphed({name: inputs[name] for name in GRAPHED if name in inputs})
        self.record_batch(inputs, logits, inputs["labels"])
        return loss

    def batch_loss(
        self, model: Any, inputs: dict[str, Any]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Mean loss, logits (batch, size of the head), labels (batch,)."""
        labels = inputs["labels"]
        if "packed" in inputs:
            logits = self._evaluation.packed_logits(inputs["packed"])
        else:
            logits = model(**{name: inputs[name] for name in READ if name in inputs}).logits
        return self._objective.mean(logits.float(), labels), logits, labels

    def predict_split(self, split: Split) -> np.ndarray:
        """Logits of every example, shape (examples, classes), without dropout."""
        size = self.job.run["evaluation"]["batch_size"]
        return self._evaluation.logits(split.texts, size, lambda _: self.save_if_due())
