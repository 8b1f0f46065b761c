"""fairseq's --user-dir: extensions of `fairseq-train` for this workflow.

- the architecture `roberta_small` of the lab's checkpoint, which fairseq lacks;
- a task and a criterion that give their logits to the run's recorder, start from the run's initial weights,
  and keep </s> on long texts;
- for speed, a model that can omit padding, and Adam with a fused kernel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from fairseq.criterions import register_criterion
from fairseq.criterions.sentence_prediction import (
    SentencePredictionConfig as CriterionConfig,
)
from fairseq.criterions.sentence_prediction import SentencePredictionCriterion
from fairseq.data import BaseWrapperDataset
from fairseq.models import register_model, register_model_architecture
from fairseq.models.roberta import RobertaModel, base_architecture
from fairseq.optim import register_optimizer
from fairseq.optim.adam import FairseqAdamConfig
from fairseq.tasks import register_task, sentence_prediction
from fairseq.tasks.sentence_prediction import SentencePredictionConfig, SentencePredictionTask

from seedbed.core.truncation import Pair, kept_of_pair, truncate
from seedbed.training import graphs, packing
from seedbed.training.fairseq import packed, session
from seedbed.training.fairseq.adam import SeedbedAdam
from seedbed.training.packing import Texts

register_optimizer("seedbed_adam", dataclass=FairseqAdamConfig)(SeedbedAdam)


class Diverged(FloatingPointError):
    """The loss is no longer finite; the run ends here."""


@register_model("seedbed_roberta")
class Model(RobertaModel):
    """fairseq's RoBERTa, whose head can get its features from packed texts."""

    def forward(
        self,
        src_tokens: Any,
        features_only: bool = False,
        classification_head_name: str | None = None,
        **more: Any,
    ) -> tuple[Any, dict[str, Any]]:
        """Logits, (texts, classes), and fairseq's other outputs; without a head, fairseq's own result."""
        if classification_head_name is None or not packing.is_used_on(src_tokens.device):
            return super().forward(
                src_tokens, features_only, classification_head_name=classification_head_name, **more
            )
        texts = packed.pack(src_tokens, self.encoder.sentence_encoder.padding_idx)
        return self.classify(texts, classification_head_name), {}

    def train(self, mode: bool = True) -> "Model":
        """Set the mode only if it changes: fairseq sets it for all modules at each update."""
        return self if self.training == mode else super().train(mode)

    def classify(self, texts: Texts, head: str) -> torch.Tensor:
        """Logits, (texts, classes)."""
        features = packed.first_features(self.encoder.sentence_encoder, texts)
        # the head takes the first token of its input
        return self.classification_heads[head](features.unsqueeze(1))


@register_model_architecture("seedbed_roberta", "roberta_small")
def roberta_small(args: Any) -> None:
    """Defaults: 4 layers, d = ffn = 512, 8 heads."""
    args.encoder_layers = getattr(args, "encoder_layers", 4)
    args.encoder_embed_dim = getattr(args, "encoder_embed_dim", 512)
    args.encoder_ffn_embed_dim = getattr(args, "encoder_ffn_embed_dim", 512)
    args.encoder_attention_heads = getattr(args, "encoder_attention_heads", 8)
    base_architecture(args)


class KeepEndDataset(BaseWrapperDataset):
    """Cuts long texts to `limit` tokens and keeps their final </s>; fairseq's own truncation cuts it off.

    Of pairs, both texts are cut; `pairs` are the numbers of their tokens.
    """

    def __init__(self, dataset: Any, limit: int, pairs: Mapping[int, Pair] | None = None):
        super().__init__(dataset)
        self.limit, self.pairs = limit, pairs

    def __getitem__(self, index: int) -> Any:
        item = self.dataset[index]
        if len(item) <= self.limit:
            return item
        if self.pairs is None:
            return item.new_tensor(truncate(item.tolist(), self.limit))
        return item[kept_of_pair(self.pairs[index], len(item), self.limit)]

    @property
    def sizes(self) -> Any:
        """Lengths after the cut."""
        return self.dataset.sizes.clip(max=self.limit)

    def num_tokens(self, index: int) -> int:
        """Length after the cut."""
        return min(self.dataset.num_tokens(index), self.limit)

    def size(self, index: int) -> int:
        """Length after the cut."""
        return self.num_tokens(index)


class ChosenDataset(BaseWrapperDataset):
    """Some examples of a dataset, under their indices in the whole."""

    def __init__(self, dataset: Any, chosen: Sequence[int]):
        super().__init__(dataset)
        self.chosen = np.array(chosen)

    def __len__(self) -> int:
        return len(self.chosen)

    def ordered_indices(self) -> Any:
        """The order of the whole dataset, without what is not chosen."""
        ordered = self.dataset.ordered_indices()
        return ordered[np.isin(ordered, self.chosen)]


class KeptDataset(BaseWrapperDataset):
    """Caches examples, which fairseq would make in a dozen small steps in each epoch."""

    def __init__(self, dataset: Any):
        super().__init__(dataset)
        self._kept: dict[int, Any] = {}

    def __getitem__(self, index: int) -> Any:
        if index not in self._kept:
            self._kept[index] = self.dataset[index]
        return self._kept[index]


@dataclass
class TaskConfig(SentencePredictionConfig):
    longest_input: int = 0


@register_task("seedbed_sentence_prediction", dataclass=TaskConfig)
class Task(SentencePredictionTask):
    """fairseq's sentence prediction, observed by the run's session."""

    def load_dataset(self, split: str, combine: bool = False, **kwargs: Any) -> Any:
        """Load a split; long texts are cut before batches are made, and examples are made once."""
        original, pairs = sentence_prediction.maybe_shorten_dataset, session.current().pairs_of(split)
        sentence_prediction.maybe_shorten_dataset = lambda data, *_: KeepEndDataset(
            data, self.cfg.longest_input, pairs
        )
        try:
            super().load_dataset(split, combine=combine, **kwargs)
        finally:
            sentence_prediction.maybe_shorten_dataset = original
        if (rows := session.current().split_of(split).rows) is not None:
            self.datasets[split] = ChosenDataset(self.datasets[split], rows)
        self.datasets[split] = KeptDataset(self.datasets[split])
        return self.datasets[split]

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model at the run's initial weights."""
        model = super().build_model(cfg, from_checkpoint)
        session.current().initialise(model)
        return model

    def begin_epoch(self, epoch: int, model: Any) -> None:
        """Tell the session."""
        session.current().begin_epoch(epoch)

    def begin_valid_epoch(self, epoch: int, model: Any) -> None:
        """Tell the session."""
        session.current().begin_validation()

    def train_step(
        self, sample: Any, model: Any, criterion: Any, optimizer: Any, update_num: int, **more: Any
    ) -> Any:
        """fairseq's step, or one graph; the session counts it as tried."""
        session.current().tried += 1
        graphed = session.current().graphed(model)
        if not graphed:
            return super().train_step(sample, model, criterion, optimizer, update_num, **more)
        model.train()
        tokens, labels = sample["net_input"]["src_tokens"], sample["target"].view(-1)
        gap = graphs.filled_up(tokens.shape[1], self.cfg.longest_input) - tokens.shape[1]
        tokens = F.pad(tokens, (0, gap), value=model.encoder.sentence_encoder.padding_idx)
        loss, logits = graphed({"tokens": tokens, "labels": labels})
        session.current().saw_batch(sample["ntokens"], tokens, logits, labels)
        return loss, labels.numel(), {}

    def optimizer_step(self, optimizer: Any, model: Any, update_num: int) -> None:
        """fairseq's update, which is skipped if float16 overflowed; the session learns its number."""
        super().optimizer_step(optimizer, model, update_num)
        session.current().step = update_num + 1

    def post_validate(self, model: Any, stats: Any, agg: Any) -> None:
        """One subset was evaluated."""
        if session.current().end_validation():
            raise Diverged("the loss is not finite")


@register_criterion("seedbed_sentence_prediction", dataclass=CriterionConfig)
class Criterion(SentencePredictionCriterion):
    """The loss of fairseq's sentence_prediction, with the outputs given to the session."""

    def forward(
        self, model: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Any, int, dict[str, Any]]:
        """Loss summed over the batch, its number of examples, and fairseq's logging output."""
        logits = session.current().logits(model, sample)
        labels = sample["target"].view(-1)
        session.current().saw(sample, logits, labels, training=model.training)
        loss = session.current().objective.summed(logits.float(), labels)
        output = {
            "loss": loss.data,
            "ntokens": sample["ntokens"],
            "nsentences": labels.numel(),
            "sample_size": labels.numel(),
        }
        if not self.regression_target:
            output["ncorrect"] = (logits.argmax(dim=1) == labels).sum()
        return loss, labels.numel(), output
