"""Train the head of a classifier on given states of its encoder, with Transformers' Trainer."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutputWithPooling

from seedbed.training import objectives, token_ids
from seedbed.training.objectives import Objective
from seedbed.training.states import EncodedSplit
from seedbed.training.transformers.base_trainer import RecipeTrainer


class GivenStates(nn.Module):
    """Stands for the encoder of a classifier: hands on the states that it is given.

    If the encoder has a pooler, which is of the head (see `auto_classifiers.in_head`), it pools them, too.
    """

    def __init__(self, encoder: nn.Module):
        super().__init__()
        self.pooler = getattr(encoder, "pooler", None)

    def forward(
        self, input_ids: None = None, inputs_embeds: torch.Tensor | None = None, **others: Any
    ) -> BaseModelOutputWithPooling:
        """The states, (texts, 1, width), as an encoder's last hidden states."""
        pooled = None if self.pooler is None else self.pooler(inputs_embeds)
        return BaseModelOutputWithPooling(last_hidden_state=inputs_embeds, pooler_output=pooled)


def without_encoder(model: Any) -> Any:
    """The classifier, changed to take states instead of texts; the names of the head's weights stay."""
    prefix = model.base_model_prefix
    setattr(model, prefix, GivenStates(getattr(model, prefix)))
    return model


def logits(model: Any, states: torch.Tensor) -> torch.Tensor:
    """Logits of a classifier of `without_encoder`.

    Args:
        model: on the device of the states.
        states: what its head reads, (texts, width).

    Returns:
        Tensor of shape (texts, size of the head), in the precision of the surrounding autocast.
    """
    one_token = torch.ones(len(states), 1, dtype=torch.int64, device=states.device)
    return model(inputs_embeds=states[:, None], attention_mask=one_token).logits


class HeadTrainer(RecipeTrainer):
    """Trains a head on the states of `EncodedSplit`s by the mean loss of its objective."""

    def examples(self, split: EncodedSplit) -> list[tuple[torch.Tensor, Any]]:
        """State and label of each example."""
        return list(zip(split.states, split.labels, strict=True))

    def collate(self, batch: Sequence[tuple[torch.Tensor, Any]]) -> dict[str, Any]:
        """A batch: `states`, (batch, width), and labels."""
        states, labels = zip(*batch, strict=True)
        return {"states": torch.stack(states), "labels": torch.tensor(labels)}

    def record_batch(self, inputs: dict[str, Any], outputs: torch.Tensor, labels: torch.Tensor) -> None:
        """Record a training batch, of which no tokens are read."""
        self.recorder.add_batch(outputs, labels)

    @functools.cached_property
    def _objective(self) -> Objective:
        """The training loss."""
        return objectives.of(self.job, self.splits["train"].labels, self.args.device)

    def batch_loss(
        self, model: Any, inputs: dict[str, Any]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Mean loss, logits (batch, size of the head), labels (batch,)."""
        found, labels = logits(model, inputs["states"]), inputs["labels"]
        return self._objective.mean(found.float(), labels), found, labels

    def predict_split(self, split: EncodedSplit) -> np.ndarray:
        """Logits of every example, shape (examples, size of the head), without dropout."""
        self.model.eval()

        def forward(chosen: list[int]) -> torch.Tensor:
            self.save_if_due()
            with self.precision():
                return logits(self.model, split.states[chosen].to(self.args.device)).float()

        size = self.job.run["evaluation"]["batch_size"]
        return token_ids.predict_by_length(forward, [1] * len(split.labels), size)

    def drop_graphs(self) -> None:
        """Nothing: there are none."""

    def batching(self) -> dict[str, bool]:
        """No entries of run.json: there are no texts in the batches."""
        return {}
