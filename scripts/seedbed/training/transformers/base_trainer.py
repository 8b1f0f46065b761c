"""Transformers' Trainer with a recipe and a recorder, the base of all tasks' trainers."""

import collections
import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import RandomSampler
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from seedbed.core.recipes import is_evaluated
from seedbed.running.jobs import Job
from seedbed.training import hardware, methods, products
from seedbed.training.progress import Progress, check_updates
from seedbed.training.recording import Recorder
from seedbed.training.schedule import learning_rate, updates_per_epoch


def train_and_select(trainer: "RecipeTrainer") -> dict[str, Any]:
    """Train, then load the selected weights.

    Returns:
        Entries for run.json: `updates`.

    Raises:
        SeedbedError: the Trainer's number of updates differs from the plan.
        Interrupted: a signal ended training.
    """
    recorder = trainer.recorder
    if recorder.total_updates:
        trainer.train()
    else:
        trainer.evaluate_untrained()
    step = trainer.state.global_step
    if not recorder.diverged:
        check_updates(step, recorder.total_updates)
    if recorder.selected is None:
        recorder.select_last(step, round(trainer.state.epoch or 0), trainer.weights())
    trainer.load_weights(recorder.selected.weights)
    return {"updates": step}


class RecipeTrainer(Trainer):
    """Transformers' Trainer with a recipe and a recorder.

    It overrides settings of the recipe (order of examples, optimizer groups, schedule) and gives training
    logits and evaluations to the recorder; the training loop is the Trainer's.

    It resumes from Seedbed's own training checkpoint. The Trainer's checkpoint is a folder of seven files,
    written in place, unchecked, and only after an update; it cannot include the recorder's tensors, since
    callbacks keep JSON. Seedbed's is one file, written atomically, checked by its hash, and written during
    evaluations, too. So the methods below take the state from memory where the Trainer would read its files.
    The Trainer's loop skips the trained batches of the epoch, and restores random numbers only at the first
    batch, since making an iterator draws one.

    A task adds its examples, its batches (`collate`), its loss and its predictions.

    Attributes:
        untrained_first: whether validation is also evaluated before the first update; that evaluation is only
            selected if nothing is trained.
        autocast: the precision of autocast, `float32` for none.
        keeps_all: whether training states and the selected checkpoint have the whole model if all of it is
            trained; else only the trained weights, tied ones once.
    """

    untrained_first = False
    keeps_all = True

    def __init__(self, job: Job, progress: Progress, splits: dict[str, Any], model: torch.nn.Module):
        self.job, self.progress, self.splits = job, progress, splits
        self.method = methods.of(job)
        self.recorder = recorder = progress.recorder
        self._resumed, progress.resumed = progress.resumed, None  # dropped when it is loaded
        self._at_epoch_end = False
        self.autocast = products.give(model, job.settings, recorder.device)
        super().__init__(
            model=model,
            args=training_arguments(job, recorder, self.autocast),
            train_dataset=self.examples(splits["train"]),
            eval_dataset=[0],  # the Trainer requires one; `evaluate` reads the splits itself
            data_collator=self.collate,
            callbacks=[_Observer(self)],
        )
        self.remove_callback(PrinterCallback)  # the recorder's log and metrics.csv have its numbers
        self._weights = list(model.parameters())
        # the Trainer asks for it at every update, and the module's own looks for its parameters each time
        model.zero_grad = self.drop_gradients

    # --- to be defined by a task ---

    def examples(self, split: Any) -> list[Any]:
        """The training examples for `collate`."""
        raise NotImplementedError

    def collate(self, batch: Sequence[Any]) -> dict[str, Any]:
        """A batch of examples, with at least `input_ids` and the number of its `tokens` without padding."""
        raise NotImplementedError

    def batch_loss(
        self, model: Any, inputs: dict[str, Any]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The loss of a batch, and its outputs and labels for the recorder."""
        raise NotImplementedError

    def predict_split(self, split: Any) -> np.ndarray:
        """The outputs of each example of a split for the recorder, without dropout."""
        raise NotImplementedError

    # --- trained weights ---

    def weights(self) -> dict[str, torch.Tensor]:
        """The weights for training states and the selected checkpoint, not copied.

        Where weights are frozen, only the trained ones: the frozen ones are the initial ones.
        """
        if self.keeps_all and not self.job.method.freezes:
            return self.model.state_dict()
        return {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}

    def load_weights(self, weights: dict[str, torch.Tensor]) -> None:
        """Load weights returned by `weights`."""
        if self.keeps_all and not self.job.method.freezes:
            self.model.load_state_dict(weights)
            return
        assert weights.keys() == self.weights().keys(), "other weights are trained than were kept"
        self.model.load_state_dict(weights, strict=False)

    def precision(self) -> contextlib.AbstractContextManager:
        """A context with the precision of training, for evaluation.

        A model prepared by the Trainer has it already, unlike an untrained model, or the one inside an
        adapter.
        """
        return hardware.autocast(self.args.device, self.autocast)

    # --- going on from a checkpoint ---

    def training_state(self) -> dict[str, Any]:
        """The state to resume the Trainer's loop after the last update; nothing is copied.

        After training, the weights are the selected ones, used only for predictions.
        """
        if self.optimizer is None:  # nothing is trained
            return {"step": 0}
        scaler, on_gpu = self.accelerator.scaler, self.args.device.type == "cuda"
        return {
            "step": self.state.global_step,
            "weights": self.weights(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.lr_scheduler.state_dict(),
            "scaler": scaler.state_dict() if scaler is not None else None,
            "random": torch.get_rng_state(),
            "random_gpu": torch.cuda.get_rng_state(self.args.device) if on_gpu else None,
        }

    def save_if_due(self) -> None:
        """Write a checkpoint if one is due; end if a signal asked for it."""
        self.progress.after_update(self.state.global_step, self.training_state)

    def _inner_training_loop(self, *args: Any, **kwargs: Any) -> Any:
        # the loop reads any value except None as a checkpoint's folder, and gives it to the methods below
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
        self._at_epoch_end = step > 0 and step % updates_per_epoch == 0
        return (epochs, 0) if self.recorder.diverged else divmod(step, updates_per_epoch)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if self._resumed is not None:
            self.load_weights(self._resumed.pop("weights"))
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

    def begin(self) -> None:
        """Before the next update, make the evaluations that are missing at the start or after a stop."""
        self.model.train()  # the whole model: an adapter begins in training mode around a model that does not
        if self._at_epoch_end:
            self._load_rng_state("")  # a checkpoint written meanwhile has them
            self.evaluate()
        elif self.untrained_first and self.state.global_step == 0:
            if self._resumed is not None:
                self._load_rng_state("")
            self.evaluate_untrained()

    def evaluate_untrained(self) -> None:
        """Record validation before any update."""
        self.recorder.clock.switch("evaluate")
        trained = self.recorder.total_updates > 0
        self._evaluate_splits(("validation",), 0, 0, select=not trained)
        if trained:
            self._go_on()
        else:
            self.save_if_due()

    def _run_epoch(self, *args: Any, **kwargs: Any) -> None:
        if not self.control.should_training_stop:  # `begin` may have found that the run diverged
            super()._run_epoch(*args, **kwargs)

    # --- settings of the recipe ---

    def _get_train_sampler(self, train_dataset: Any = None) -> RandomSampler:
        dataset = self.train_dataset if train_dataset is None else train_dataset
        order = torch.Generator().manual_seed(self.job.run["data_seed"])
        sampler = RandomSampler(dataset, generator=order)
        if self._resumed is not None:
            # one stream draws the orders of all epochs, so those of past epochs are drawn and dropped
            updates = updates_per_epoch(len(dataset), self.args.per_device_train_batch_size)
            for _ in range(self._resumed["step"] // updates):
                collections.deque(sampler, maxlen=0)
        return sampler

    def get_decay_parameter_names(self, model: torch.nn.Module) -> list[str]:
        """Parameters with weight decay: all except those that the recipe skips."""
        skipped = self.job.settings["weight_decay_skip"]
        norms = {name for name, module in model.named_modules() if type(module).__name__.endswith("Norm")}

        def decays(name: str) -> bool:
            in_norm = name.rpartition(".")[0] in norms
            is_bias = name.endswith("bias") and not in_norm
            return not (in_norm and "norm" in skipped) and not (is_bias and "bias" in skipped)

        return [name for name, _ in model.named_parameters() if decays(name)]

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> LambdaLR:
        """The recipe's schedule, with the same arithmetic as for fairseq.

        Raises:
            SeedbedError: the Trainer's planned number of updates differs from the run's.
        """
        settings = self.job.settings
        check_updates(num_training_steps, self.recorder.total_updates)

        def factor(done: int) -> float:
            return learning_rate(done, num_training_steps, settings) / settings["learning_rate"]

        self.lr_scheduler = LambdaLR(optimizer or self.optimizer, factor)
        return self.lr_scheduler

    # The four methods below leave out what no recipe asks the Trainer for. On a CPU they save 0.5 % of an
    # update; on an H200, which waits for Python, 14 % of the training of RoBERTa-small (median of six seeds).

    def training_step(
        self, model: torch.nn.Module, inputs: dict[str, Any], num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """Forward and backward pass of a batch, and its loss."""
        if not model.training:
            model.train()
        inputs = self._prepare_inputs(inputs)
        with self.compute_loss_context_manager():
            loss = self.compute_loss(model, inputs)
        self.accelerator.backward(loss)
        return loss.detach()

    def drop_gradients(self, set_to_none: bool = True) -> None:
        """Forget all gradients."""
        for weight in self._weights:
            weight.grad = None

    def _get_num_items_in_batch(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: the losses here are means, and know their number of terms."""

    def floating_point_ops(self, inputs: dict[str, Any]) -> int:
        """0: nobody reads the Trainer's estimate, and it counts the model's parameters at every update."""
        return 0

    def record_batch(self, inputs: dict[str, Any], outputs: torch.Tensor, labels: torch.Tensor) -> None:
        """Record a training batch."""
        self.recorder.add_batch(outputs, labels)
        # counted here, since the loader is a batch ahead
        self.recorder.count_tokens(inputs["tokens"], inputs["input_ids"].numel())

    def _get_grad_norm(self, model: torch.nn.Module, grad_norm: Any = None) -> Any:
        # The Trainer measures the norm for its log, which is off, and multiplies gradients by 1, or by NaN
        # if the norm overflows: 1.5 to 2.2 % of an update of RoBERTa-small and -tiny on a CPU. It still does
        # so for scaled gradients, since this removes their scale.
        return super()._get_grad_norm(model, grad_norm) if self.accelerator.scaler else grad_norm

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The task's loss of the batch, which is also recorded."""
        loss, outputs, labels = self.batch_loss(model, inputs)
        self.record_batch(inputs, outputs, labels)
        return (loss, {"outputs": outputs}) if return_outputs else loss

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """End an epoch: training metrics, then validation (and test if its curve is requested).

        After a stop, recorded evaluations are not repeated.
        """
        step, epoch = self.state.global_step, round(self.state.epoch)
        if not self.recorder.holds("train", step):
            self.recorder.end_training_epoch(step, epoch)
        if is_evaluated(self.job.settings, epoch):
            self._evaluate_splits(self.job.evaluated, step, epoch)
        self._go_on()
        return {}

    def _evaluate_splits(self, names: Sequence[str], step: int, epoch: int, select: bool = True) -> None:
        for name in names:
            if self.recorder.holds(name, step):
                continue
            split = self.splits[name]
            outputs = self.predict_split(split)
            labels = np.asarray(split.labels)
            self.recorder.evaluated(name, outputs, labels, step, epoch, self.weights, select)

    def _go_on(self) -> None:
        self.recorder.resume_training()
        # a loss stays NaN; the remaining epochs would only waste time
        self.control.should_training_stop |= self.recorder.diverged
        self.save_if_due()


def training_arguments(job: Job, recorder: Recorder, precision: str) -> TrainingArguments:
    """The recipe as the Trainer's arguments, with autocast's precision; nothing is saved in its folder."""
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
        fp16=precision == "float16",
        bf16=precision == "bfloat16",
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
        # Accelerate would replace our sampler by its own, seeded by seed + epoch: neighbouring seeds would
        # then share most of their orders; and it would wait for the GPU at each batch that it copies
        accelerator_config={"use_seedable_sampler": False, "non_blocking": on_gpu},
        activation_checkpointing=settings.get("gradient_checkpointing", False),
        # the reentrant kind does not reach adapters if their block gets no trained input
        activation_checkpointing_kwargs={"use_reentrant": False},
    )
    # one run, one GPU: with more visible, the Trainer would split each batch and multiply its size
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1
    return arguments


class _Observer(TrainerCallback):
    def __init__(self, trainer: RecipeTrainer):
        self.trainer = trainer

    def on_train_begin(self, *args: Any, **kwargs: Any) -> None:
        self.trainer.recorder.start_training()
        self.trainer.begin()

    def on_step_end(self, *args: Any, **kwargs: Any) -> None:
        self.trainer.save_if_due()
