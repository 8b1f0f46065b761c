"""Fine-tuning with Transformers' Trainer."""

import collections
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import RandomSampler
from transformers import (
    PreTrainedModel,
    RobertaConfig,
    RobertaForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.utils import logging as transformers_logging

from seedbed import files, finetuning, hardware
from seedbed.finetuning import Job, Progress, Split
from seedbed.initialisation import draw_encoder, draw_head
from seedbed.naming import fairseq_name
from seedbed.recording import Recorder
from seedbed.schedule import learning_rate, updates_per_epoch

# What differs from fairseq under every recipe; the report lists it.
STANDING_DIFFERENCES = (
    {"setting": "batches", "asked": "order by data seed", "done": "drawn anew every epoch"},
    {"setting": "adam_epsilon", "asked": "", "done": "added after the bias correction (torch.optim.AdamW)"},
    {"setting": "dropout", "asked": "", "done": "one stream of random numbers, seeded once by the data seed"},
)


def train(jobs: list[Job]) -> None:
    """Train, select, predict and publish the runs of one process, one after another."""
    transformers_logging.set_verbosity_warning()
    transformers_logging.disable_progress_bar()
    for job in jobs:
        train_run(job)


def train_run(job: Job) -> None:
    """Fine-tune one run and publish its folder."""
    hardware.set_up_torch(job.threads, job.run["deterministic"])
    splits = finetuning.read_splits(job)
    progress = finetuning.start(job, len(splits["train"].ids))
    recorder = progress.recorder
    model = build_model(job)
    trainer = Finetuner(job, progress, splits, model)
    trainer.train()
    if not recorder.diverged:
        finetuning.check_updates(trainer.state.global_step, recorder.total_updates)
    if recorder.selected is None:
        recorder.select_last(trainer.state.global_step, round(trainer.state.epoch), model.state_dict())
    model.load_state_dict(recorder.selected.weights)
    extra = {"updates": trainer.state.global_step, "differences": differences(job.settings)}
    finetuning.finish(job, recorder, splits, trainer.predict_logits, extra)


def build_model(job: Job) -> RobertaForSequenceClassification:
    """The model at its initial weights, on the CPU.

    Raises:
        SeedbedError: a pretrained run whose weights are not the checkpoint's.
    """
    settings = job.settings
    classes = len(files.read_json(job.labels)["names"])
    config = RobertaConfig.from_pretrained(
        job.weights,
        num_labels=classes,
        hidden_dropout_prob=settings["dropout"],
        attention_probs_dropout_prob=settings["attention_dropout"],
        classifier_dropout=settings["pooler_dropout"],
    )
    if job.run["init"] == "pretrained":
        model = _load(job, config)
    else:
        model = RobertaForSequenceClassification(config)
        draw_encoder(model.roberta, job.run["init_seed"], settings["random_init_sd"], fairseq_name)
    head = model.classifier
    draw_head(head.dense, head.out_proj, job.run["init_seed"], settings["head_init"])
    # fairseq has no token types: their one row stays the zero it is in the converted checkpoint
    model.roberta.embeddings.token_type_embeddings.weight.requires_grad_(False)
    return model


def _load(job: Job, config: RobertaConfig) -> RobertaForSequenceClassification:
    from safetensors.torch import load_file

    model = RobertaForSequenceClassification.from_pretrained(job.weights, config=config, dtype=torch.float32)
    checkpoint = job.weights / "model.safetensors"
    stored = load_file(checkpoint)
    encoder = {name: tensor for name, tensor in stored.items() if name.startswith("roberta.")}
    finetuning.check_loaded(encoder, model.state_dict(), checkpoint)
    return model


def differences(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Where Transformers departs from the recipe or from fairseq."""
    found = [*STANDING_DIFFERENCES]
    if settings["activation_dropout"] > 0:
        asked = settings["activation_dropout"]
        found.append({"setting": "activation_dropout", "asked": asked, "done": "0: its RoBERTa has none"})
    if settings["precision"] == "float16":
        found.append({"setting": "precision", "asked": "float16", "done": "autocast over float32 weights"})
    return found


class Finetuner(Trainer):
    """Transformers' Trainer, driven by a recipe and observed by a recorder.

    It overrides what a recipe settles (order of examples, optimizer groups, schedule) and what the recorder
    must see (training logits, evaluation); the training loop is the Trainer's.

    It goes on from Seedbed's own training checkpoint, not from a folder of the Trainer's: where the Trainer
    would read its files, the methods below take the state from memory. Its loop does the rest: it skips the
    batches of the epoch that were trained on, and sets the random numbers only when the first batch is there,
    because making an iterator draws one.
    """

    def __init__(self, job: Job, progress: Progress, splits: dict[str, Split], model: PreTrainedModel):
        self.job, self.progress, self.splits = job, progress, splits
        self.recorder = recorder = progress.recorder
        self._resumed, progress.resumed = progress.resumed, None  # dropped when it is loaded
        self._at_epoch_end = False
        train_split = splits["train"]
        super().__init__(
            model=model,
            args=training_arguments(job, recorder),
            train_dataset=list(zip(train_split.ids, train_split.labels, strict=True)),
            eval_dataset=splits[
                "validation"
            ].ids,  # the Trainer wants one; `evaluate` reads the splits itself
            data_collator=self._collate,
            callbacks=[_Observer(self)],
        )

    # --- going on from a checkpoint ---

    def training_state(self) -> dict[str, Any]:
        """All that the Trainer's loop needs to go on after the last update; nothing is copied.

        Once training is over, the weights are the selected ones, and nothing uses them but predictions.
        """
        scaler, on_gpu = self.accelerator.scaler, self.args.device.type == "cuda"
        return {
            "step": self.state.global_step,
            "weights": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.lr_scheduler.state_dict(),
            "scaler": scaler.state_dict() if scaler is not None else None,
            "random": torch.get_rng_state(),
            "random_gpu": torch.cuda.get_rng_state(self.args.device) if on_gpu else None,
        }

    def save_if_due(self) -> None:
        """Write a checkpoint if one is due; leave if a signal asked for it."""
        self.progress.after_update(self.state.global_step, self.training_state)

    def _inner_training_loop(self, *args: Any, **kwargs: Any) -> Any:
        # the loop takes any value but None for the folder of a checkpoint, and hands it to the methods below
        if self._resumed is not None:
            kwargs["resume_from_checkpoint"] = "Seedbed's training state"
        return super()._inner_training_loop(*args, **kwargs)

    def _init_training_state(
        self, max_steps: int, updates_per_epoch: int, epochs: int, *args: Any, **kwargs: Any
    ) -> tuple[int, int]:
        begin = super()._init_training_state(max_steps, updates_per_epoch, epochs, *args, **kwargs)
        if self._resumed is None:
            return begin
        step = self._resumed["step"]
        self.state.global_step, self.state.epoch = step, step / updates_per_epoch
        self._at_epoch_end = step % updates_per_epoch == 0
        return (epochs, 0) if self.recorder.diverged else divmod(step, updates_per_epoch)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if self._resumed is not None:
            self.model.load_state_dict(self._resumed.pop("weights"))
            self.optimizer.load_state_dict(self._resumed.pop("optimizer"))
            self.lr_scheduler.load_state_dict(self._resumed.pop("schedule"))

    def _load_scaler(self, checkpoint: str | None) -> None:
        if self._resumed is not None and self._resumed["scaler"]:
            self.accelerator.scaler.load_state_dict(self._resumed["scaler"])

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            torch.set_rng_state(self._resumed["random"])
            if self._resumed["random_gpu"] is not None:
                torch.cuda.set_rng_state(self._resumed["random_gpu"], self.args.device)

    def finish_epoch(self) -> None:
        """Evaluate what is left to evaluate, where the run was stopped at the end of an epoch."""
        if self._at_epoch_end:
            self._load_rng_state("")  # a checkpoint written meanwhile holds them
            self.evaluate()

    def _run_epoch(self, *args: Any, **kwargs: Any) -> None:
        if not self.control.should_training_stop:  # `finish_epoch` may have found that the run diverged
            super()._run_epoch(*args, **kwargs)

    # --- what a recipe settles ---

    def _collate(self, batch: Sequence[tuple[list[int], int]]) -> dict[str, torch.Tensor]:
        ids = finetuning.pad([example for example, _ in batch])
        labels = torch.tensor([label for _, label in batch])
        tokens = sum(len(example) for example, _ in batch)
        return {
            "input_ids": ids,
            "attention_mask": ids.ne(finetuning.PAD).long(),
            "labels": labels,
            "tokens": tokens,
        }

    def _get_train_sampler(self, train_dataset: Any = None) -> RandomSampler:
        dataset = self.train_dataset if train_dataset is None else train_dataset
        order = torch.Generator().manual_seed(self.job.run["data_seed"])
        sampler = RandomSampler(dataset, generator=order)
        if self._resumed is not None:
            # one stream gives the orders of all epochs: those of epochs that are over are drawn and dropped
            updates = updates_per_epoch(len(dataset), self.args.per_device_train_batch_size)
            for _ in range(self._resumed["step"] // updates):
                collections.deque(sampler, maxlen=0)
        return sampler

    def get_decay_parameter_names(self, model: torch.nn.Module) -> list[str]:
        """Parameters with weight decay: all but what the recipe skips."""
        skipped = self.job.settings["weight_decay_skip"]
        norms = {name for name, module in model.named_modules() if isinstance(module, torch.nn.LayerNorm)}

        def decays(name: str) -> bool:
            in_norm = name.rpartition(".")[0] in norms
            is_bias = name.endswith("bias") and not in_norm
            return not (in_norm and "norm" in skipped) and not (is_bias and "bias" in skipped)

        return [name for name, _ in model.named_parameters() if decays(name)]

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> LambdaLR:
        """The recipe's schedule, the same arithmetic that fairseq uses.

        Raises:
            SeedbedError: the Trainer planned another number of updates than the run has.
        """
        settings = self.job.settings
        finetuning.check_updates(num_training_steps, self.recorder.total_updates)

        def factor(done: int) -> float:
            return learning_rate(done, num_training_steps, settings) / settings["learning_rate"]

        self.lr_scheduler = LambdaLR(optimizer or self.optimizer, factor)
        return self.lr_scheduler

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Mean cross-entropy of the batch; its logits go to the recorder."""
        labels = inputs["labels"]
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        self.recorder.add_batch(outputs.logits, labels)
        # counted here, since the loader is a batch ahead
        self.recorder.count_tokens(inputs["tokens"], inputs["input_ids"].numel())
        loss = torch.nn.functional.cross_entropy(outputs.logits.float(), labels)
        return (loss, outputs) if return_outputs else loss

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """End an epoch: training metrics, then validation (and test, where its curve is asked for).

        What is recorded already, before the run was stopped here, is not done again.
        """
        step, epoch = self.state.global_step, round(self.state.epoch)
        if not self.recorder.holds("train", step):
            self.recorder.end_training_epoch(step, epoch)
        for name in self.job.evaluated:
            if self.recorder.holds(name, step):
                continue
            split = self.splits[name]
            logits = self.predict_logits(split.ids)
            weights = self.model.state_dict
            self.recorder.evaluated(name, logits, np.asarray(split.labels), step, epoch, weights)
        self.recorder.resume_training()
        # a loss that became NaN does not come back; the remaining epochs would only burn time
        self.control.should_training_stop |= self.recorder.diverged
        self.save_if_due()
        return {}

    def predict_logits(self, ids: Sequence[Sequence[int]]) -> np.ndarray:
        """Logits of every example, shape (examples, classes), without dropout."""
        self.model.eval()

        def forward(batch: torch.Tensor) -> torch.Tensor:
            self.save_if_due()
            with self.compute_loss_context_manager():  # the precision of training
                return self.model(input_ids=batch, attention_mask=batch.ne(finetuning.PAD).long()).logits

        size = self.job.run["evaluation"]["batch_size"]
        return finetuning.predict_logits(forward, ids, size, self.args.device)


def training_arguments(job: Job, recorder: Recorder) -> TrainingArguments:
    """The recipe in the Trainer's terms; its folder is only scratch, nothing is saved there."""
    settings = job.settings
    on_gpu = recorder.device.type == "cuda"
    arguments = TrainingArguments(
        output_dir=str(job.work / "trainer"),
        num_train_epochs=settings["epochs"],
        per_device_train_batch_size=settings["batch_size"],
        learning_rate=settings["learning_rate"],
        adam_beta1=settings["adam_betas"][0],
        adam_beta2=settings["adam_betas"][1],
        adam_epsilon=settings["adam_epsilon"],
        weight_decay=settings["weight_decay"],
        max_grad_norm=settings["clip_norm"],
        optim="adamw_torch_fused",
        fp16=settings["precision"] == "float16",
        bf16=settings["precision"] == "bfloat16",
        seed=job.run["data_seed"],
        use_cpu=not on_gpu,
        dataloader_pin_memory=on_gpu,
        eval_strategy="epoch",
        save_strategy="no",
        logging_strategy="no",
        logging_nan_inf_filter=False,
        remove_unused_columns=False,
        disable_tqdm=True,
        report_to="none",
        # Accelerate would put its own sampler in place of ours, seeded by seed + epoch: neighbouring seeds
        # would then share most of their orders
        accelerator_config={"use_seedable_sampler": False},
    )
    # one run, one GPU: with more in sight the Trainer would split every batch and multiply its size
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1
    return arguments


class _Observer(TrainerCallback):
    def __init__(self, trainer: Finetuner):
        self.trainer = trainer

    def on_train_begin(self, *args: Any, **kwargs: Any) -> None:
        self.trainer.recorder.start_training()
        self.trainer.finish_epoch()

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        self.trainer.save_if_due()
