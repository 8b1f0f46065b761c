"""A classifier's logits of texts without dropout: of a run's splits, and of new texts after training."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from seedbed.training import hardware, packing, token_ids
from seedbed.training.packing import Packed, Texts
from seedbed.training.token_ids import Text
from seedbed.training.transformers import packed_batches

TYPES = "token_type_ids"  # Transformers' name


@dataclass(frozen=True)
class Evaluation:
    """Evaluates a classifier of Transformers.

    Attributes:
        model: the classifier, perhaps with an adapter.
        inner: the same without an adapter's wrapper.
        device: its device.
        precision: that of autocast, `float32` for none.
    """

    model: Any
    inner: Any
    device: torch.device
    precision: str

    @functools.cached_property
    def packable(self) -> bool:
        """Whether the model's layers can be computed on rows of tokens."""
        return packed_batches.fit(self.inner)

    @functools.cached_property
    def packs(self) -> bool:
        """Whether batches are packed instead of padded."""
        return packing.is_used_on(self.device) and self.packable

    @property
    def pad(self) -> int:
        """The id of padding."""
        return self.inner.config.pad_token_id

    def logits(
        self, texts: Sequence[Text], batch_size: int, before_batch: Callable[[int], None]
    ) -> np.ndarray:
        """Logits of texts, in their order; texts of similar length share a batch.

        Args:
            texts: their tokens.
            batch_size: texts in a batch.
            before_batch: called before each batch with its number of texts.

        Returns:
            float32 array of shape (texts, size of the head).
        """
        self.model.eval()

        def forward(chosen: list[int]) -> torch.Tensor:
            before_batch(len(chosen))
            batch = [texts[index] for index in chosen]
            if self.packs:
                return self.packed_logits(packed(batch))
            made = {**padded(batch, self.pad), "attention_mask": attention_mask(batch)}
            with hardware.autocast(self.device, self.precision):
                inputs = {name: tensor.to(self.device) for name, tensor in made.items()}
                return self.model(**inputs).logits.float()

        return token_ids.predict_by_length(forward, [len(text.ids) for text in texts], batch_size)

    def packed_logits(self, batch: Texts) -> torch.Tensor:
        """Logits of texts as rows of tokens, (texts, size of the head) float32."""
        with hardware.autocast(self.device, self.precision):
            return packed_batches.logits(self.inner, batch).float()


# --- batches ------------------------------------------------------------------------------------------------


def packed(texts: Sequence[Text]) -> Packed:
    """Texts for a CPU, without padding."""
    return packing.pack([text.ids for text in texts], _types(texts))


def padded(texts: Sequence[Text], padding: int, length: int = 0) -> dict[str, torch.Tensor]:
    """Token ids padded to the longest text, or to a `length` beyond, and types if there are any.

    Both have the shape (texts, length).
    """
    made = {"input_ids": token_ids.pad([text.ids for text in texts], padding, length=length)}
    types = _types(texts)
    return made if types is None else {**made, TYPES: token_ids.pad(types, 0, length=length)}


def attention_mask(texts: Sequence[Text]) -> torch.Tensor:
    """Whether a token is not padding, (batch, length); not by the id of padding, which a text may hold."""
    lengths = torch.tensor([len(text.ids) for text in texts])
    return (torch.arange(int(lengths.max())) < lengths[:, None]).long()


def _types(texts: Sequence[Text]) -> list[list[int]] | None:
    """The types of the tokens of each text; None if the model reads none."""
    found = [text.types for text in texts if text.types is not None]
    return found or None
