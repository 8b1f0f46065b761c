"""Fine-tune causal language models on prompts and answers, with Transformers' Trainer."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seedbed.core import files, subsets
from seedbed.core.errors import SeedbedError
from seedbed.running.jobs import PREDICTED, Job
from seedbed.training import adapter_parameters, hardware, methods, results, token_ids
from seedbed.training.generation import Answered, Limits, Questions, generate_answers
from seedbed.training.initial_models import DROPOUTS
from seedbed.training.progress import Progress, start
from seedbed.training.transformers import be_quiet
from seedbed.training.transformers.base_trainer import RecipeTrainer, train_and_select


def train(jobs: list[Job]) -> None:
    """Train, select, predict and publish the runs of one process, one after another."""
    be_quiet()
    for job in jobs:
        train_run(job)


def train_run(job: Job) -> None:
    """Fine-tune one run, or evaluate the untrained model, and publish its folder."""
    hardware.set_up_torch(job.threads, job.run["deterministic"], job.settings["precision"])
    shape = files.read_json(job.model)
    splits = read_splits(job, shape["max_positions"])
    progress = start(job, len(splits["train"].examples))
    recorder, method = progress.recorder, methods.of(job)
    model = method.causal_model(recorder.device)
    trainer = CausalTrainer(job, progress, splits, model, shape["pad"])
    # before training, since it may refuse the adapter
    parameters = adapter_parameters.describe(trainer.model, job.method.name, job.settings.get("lora"))
    extra = train_and_select(trainer)
    extra |= {"differences": differences(job.settings, model.config), "parameters": parameters}
    extra |= method.save(trainer.model, recorder.ready)
    limits = Limits(
        shape["eos"], shape["pad"], job.run["evaluation"]["max_new_tokens"], shape["max_positions"]
    )

    def answer(prompts: Sequence[Sequence[int]]) -> list[list[int]]:
        return trainer.generate(prompts, limits)

    def keep_model(folder: Path) -> None:
        method.write_model(folder, trainer.model, recorder.ready)

    predictor = Answered(trainer.predict_split, answer, job.weights / "tokenizer.json")
    results.finish(job, recorder, splits, predictor, extra, keep_model)


# --- inputs ---


def read_splits(job: Job, positions: int | None) -> dict[str, Questions]:
    """Prompts and answers of the three splits.

    Args:
        job: the run.
        positions: the model's positions; None: unlimited.

    Raises:
        SeedbedError: an example is longer.
    """
    splits = {}
    for name in ("train", *PREDICTED):
        chosen = job.chosen if name == "train" else None
        rows, _ = subsets.taken(files.read_jsonl(job.tokens / f"{name}.jsonl"), chosen)
        split = splits[name] = Questions(
            examples=[row["id"] for row in rows],
            prompts=[row["prompt"] for row in rows],
            answers=[row["answer"] for row in rows],
            references=[row["reference"] for row in rows],
            groups=[row["group"] for row in rows],
        )
        for example, length in zip(split.examples, split.lengths, strict=True):
            if positions is not None and length > positions:
                raise SeedbedError(
                    "an example is longer than the model's positions",
                    where=f"{job.tokens / name}.jsonl, {example}",
                    found=f"{length} tokens, of {positions}",
                    hint=f"set max_tokens of the dataset to {positions} or less, or null, and overlong to "
                    "cut or drop longer examples",
                )
    return splits


# --- the model ---


def differences(settings: Mapping[str, Any], config: Any) -> list[dict[str, Any]]:
    """Differences of the run from the recipe: dropouts that the architecture lacks."""
    known = config.to_dict()
    return [
        {"setting": setting, "asked": settings[setting], "done": f"0: {config.model_type} has none"}
        for setting, keys in DROPOUTS.items()
        if settings[setting] > 0 and not any(key in known for key in keys)
    ]


# --- training ---


class CausalTrainer(RecipeTrainer):
    """Trains a causal model by the mean negative log-likelihood of its answers' tokens.

    Args:
        job: the run.
        progress: the run's progress.
        splits: the three splits.
        model: at its initial weights.
        pad: id of the padding token, perhaps the end token.
    """

    untrained_first = True
    keeps_all = False

    def __init__(
        self, job: Job, progress: Progress, splits: dict[str, Questions], model: torch.nn.Module, pad: int
    ):
        self._pad = pad
        super().__init__(job, progress, splits, model)

    def examples(self, split: Questions) -> list[tuple[list[int], list[int]]]:
        """Token ids of prompt and answer."""
        return list(zip(split.prompts, split.answers, strict=True))

    def collate(self, batch: Sequence[tuple[list[int], list[int]]]) -> dict[str, Any]:
        """A batch padded on the right: `input_ids` and two masks by position, of all tokens and of answers.

        `kept` is the number of last positions with all answers and the token before each.
        """
        ids = token_ids.pad([[*prompt, *answer] for prompt, answer in batch], self._pad)
        real = token_ids.pad([[1] * (len(prompt) + len(answer)) for prompt, answer in batch], 0)
        answers = token_ids.pad([[0] * len(prompt) + [1] * len(answer) for prompt, answer in batch], 0)
        return {
            "input_ids": ids,
            "attention_mask": real,
            "answer_mask": answers.bool(),
            "answer_tokens": torch.tensor([len(answer) for _, answer in batch]),
            "kept": ids.shape[1] - min(len(prompt) for prompt, _ in batch) + 1,
            "tokens": int(real.sum()),
        }

    def batch_loss(
        self, model: Any, inputs: dict[str, Any]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Mean nats per token, of the answers or of all tokens; outputs and tokens are of the answers."""
        nats, outputs = token_scores(model, inputs, on_all=self.job.settings["loss_on"] == "all")
        return nats.mean(), outputs, inputs["answer_tokens"]

    def predict_split(self, split: Questions) -> np.ndarray:
        """(examples, 2) float64: nats of each answer, and number of its tokens that are the most probable."""
        self.model.eval()
        examples = self.examples(split)

        def forward(chosen: list[int]) -> torch.Tensor:
            self.save_if_due()
            inputs = self._prepare_inputs(self.collate([examples[index] for index in chosen]))
            with self.precision():
                return token_scores(self.model, inputs)[1]

        size = self.job.run["evaluation"]["batch_size"]
        return token_ids.predict_by_length(forward, split.lengths, size)

    def generate(self, prompts: Sequence[Sequence[int]], limits: Limits) -> list[list[int]]:
        """Token ids of the answers to prompts, with the present weights."""
        model = self.method.inner(self.model)
        size = self.job.run["evaluation"]["batch_size"]
        with self.precision():
            return generate_answers(model, prompts, limits, size, self.save_if_due)


def token_scores(
    model: Any, inputs: Mapping[str, Any], on_all: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """A model's scores of the answers of a batch.

    Scores of the vocabulary are only computed from the token before the first answer on.

    Args:
        model: a causal model.
        inputs: a batch of `CausalTrainer.collate`.
        on_all: whether tokens of the prompts count, too, except the first of each, which is not predicted.

    Returns:
        Negative log-likelihood of each counted token in nats, (tokens,) float32; and outputs, (batch, 2)
        float64: the sum of nats of each answer, and the number of its tokens that are the most probable.
    """
    ids = inputs["input_ids"]
    kept = ids.shape[1] if on_all else inputs["kept"]
    logits = model(
        input_ids=ids, attention_mask=inputs["attention_mask"], use_cache=False, logits_to_keep=kept
    ).logits
    # the last position predicts a token after the batch
    later = slice(ids.shape[1] - kept + 1, None)
    targets, answers = ids[:, later], inputs["answer_mask"][:, later]
    counted = inputs["attention_mask"][:, later].bool() if on_all else answers
    logits, targets = logits[:, :-1][counted], targets[counted]
    nats = torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none")
    grid = torch.zeros(2, *counted.shape, dtype=torch.float64, device=ids.device)
    grid[0][counted] = nats.detach().double()
    grid[1][counted] = (logits.detach().argmax(dim=-1) == targets).double()
    outputs = torch.where(answers, grid, 0.0).sum(dim=-1).T
    return nats, outputs
