"""The lab's way with Transformers: python plain_transformers.py REPORT SETTINGS.json

The plain Trainer as run_glue.py sets it up: float32, every input padded to the longest allowed, fixed
batches, evaluation at the Trainer's own batch size of 8, on validation after every epoch, prediction of test
at the end, nothing saved. The hyperparameters are the recipe's.

With run_glue.py's options for speed (lean) it trains in the recipe's precision, pads a batch to its longest
text, and evaluates as many examples at a time as Seedbed does.

SETTINGS.json: tokens and weights (folders), classes, limit (tokens of an input), settings (the recipe), init,
seed, cpu, output, evaluation_batch (examples; null: not lean). If they are true: test_every_epoch;
recipe_weights: the run starts from the weights from which Seedbed's run of the seed starts, not from those
that Transformers draws.
"""

import json
import sys
from pathlib import Path
from typing import Any

from phases import Observer

sys.modules.setdefault("bitsandbytes", None)  # Seedbed's runs leave it out as well; it takes two seconds

import numpy as np  # noqa: E402
import torch  # noqa: E402
from transformers import (  # noqa: E402
    RobertaConfig,
    RobertaForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    default_data_collator,
    set_seed,
)

from seedbed.core import files  # noqa: E402
from seedbed.core.naming import PAD  # noqa: E402
from seedbed.core.truncation import truncate  # noqa: E402
from seedbed.training.schedule import warmup_updates  # noqa: E402
from seedbed.training.token_ids import pad  # noqa: E402


def read(path: Path, limit: int, pads: bool) -> tuple[list[dict[str, Any]], int]:
    """A split, perhaps with every input padded to `limit` tokens, and its tokens without padding.

    A list is read faster than the files of `datasets` from which run_glue.py reads.
    """
    rows = [(truncate(row["ids"], limit), row["label"]) for row in files.read_jsonl(path)]
    examples = [
        {
            "input_ids": ids + [PAD] * room,
            "attention_mask": [1] * len(ids) + [0] * room,
            "label": label,
        }
        for ids, label in rows
        for room in [limit - len(ids) if pads else 0]
    ]
    return examples, sum(len(ids) for ids, _ in rows)


class LongestOfBatch:
    """Pads a batch to its longest input, as DataCollatorWithPadding does, and counts training tokens."""

    def __init__(self, observer: Observer):
        self.observer = observer

    def __call__(self, batch: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        ids = pad([one["input_ids"] for one in batch])
        if self.observer.training:
            self.observer.real += sum(len(one["input_ids"]) for one in batch)
            self.observer.padded += ids.numel()
        labels = torch.tensor([one["label"] for one in batch])
        return {"input_ids": ids, "attention_mask": ids.ne(PAD).long(), "labels": labels}


class Phases(TrainerCallback):
    """Switches the observer's clock."""

    def __init__(self, observer: Observer):
        self.observer = observer

    def on_epoch_begin(self, *args: Any, **kwargs: Any) -> None:
        self.observer.training = True
        self.observer.clock.switch("train")

    def on_epoch_end(self, *args: Any, **kwargs: Any) -> None:
        self.observer.training = False
        self.observer.clock.switch("evaluate")


def accuracy(prediction: Any) -> dict[str, float]:
    """What run_glue.py computes for tasks of one sentence."""
    return {"accuracy": float((np.argmax(prediction.predictions, axis=1) == prediction.label_ids).mean())}


def training_arguments(asked: dict[str, Any], updates: int) -> TrainingArguments:
    """The Trainer's defaults but for what the recipe sets."""
    recipe = asked["settings"]
    return TrainingArguments(
        output_dir=asked["output"],
        per_device_train_batch_size=recipe["batch_size"],
        num_train_epochs=recipe["epochs"],
        learning_rate=recipe["learning_rate"],
        warmup_steps=warmup_updates(updates, recipe["warmup_ratio"]),
        weight_decay=recipe["weight_decay"],
        adam_beta1=recipe["adam_betas"][0],
        adam_beta2=recipe["adam_betas"][1],
        adam_epsilon=recipe["adam_epsilon"],
        max_grad_norm=recipe["clip_norm"],
        eval_strategy="epoch",
        save_strategy="no",
        report_to="none",
        seed=asked["seed"],
        use_cpu=asked["cpu"],
        **lean(asked),
    )


def lean(asked: dict[str, Any]) -> dict[str, Any]:
    """run_glue.py's options for speed, where they are asked for."""
    if not asked["evaluation_batch"]:
        return {}
    precision = asked["settings"]["precision"]
    return {
        "per_device_eval_batch_size": asked["evaluation_batch"],
        "bf16": precision == "bfloat16",
        "fp16": precision == "float16",
        "tf32": precision == "tf32" or None,
    }


def initial_model(asked: dict[str, Any]) -> RobertaForSequenceClassification:
    """The classifier before training."""
    recipe = asked["settings"]
    if asked.get("recipe_weights"):
        from seedbed.training.initial_models import build_classifier

        run = {"task": "classification", "settings": recipe}
        run |= {"init": asked["init"], "init_seed": asked["seed"]}
        return build_classifier(Path(asked["weights"]), run, asked["classes"])
    config = RobertaConfig.from_pretrained(
        asked["weights"],
        num_labels=asked["classes"],
        hidden_dropout_prob=recipe["dropout"],
        attention_probs_dropout_prob=recipe["attention_dropout"],
        classifier_dropout=recipe["pooler_dropout"],
    )
    if asked["init"] == "pretrained":
        return RobertaForSequenceClassification.from_pretrained(asked["weights"], config=config)
    return RobertaForSequenceClassification(config)


def train(report: str, asked: dict[str, Any]) -> None:
    """Train, evaluate, predict test, and write what was observed."""
    observer = Observer()
    recipe, limit, tokens = asked["settings"], asked["limit"], Path(asked["tokens"])
    splits = {
        name: read(tokens / f"{name}.jsonl", limit, not asked["evaluation_batch"])
        for name in ("train", "validation", "test")
    }
    data = {name: split for name, (split, _) in splits.items()}
    set_seed(asked["seed"])
    model = initial_model(asked)
    updates = recipe["epochs"] * -(-len(data["train"]) // recipe["batch_size"])
    evaluated = ["validation", "test"] if asked.get("test_every_epoch") else ["validation"]
    collator = LongestOfBatch(observer) if asked["evaluation_batch"] else default_data_collator
    trainer = Trainer(
        model=model,
        args=training_arguments(asked, updates),
        train_dataset=data["train"],
        eval_dataset={name: data[name] for name in evaluated},
        compute_metrics=accuracy,
        data_collator=collator,
        callbacks=[Phases(observer)],
    )
    trainer.train()
    observer.clock.switch("evaluate")
    if not asked.get("test_every_epoch"):
        trainer.predict(data["test"])
        evaluated.append("test")
    epochs = recipe["epochs"]
    observer.updates, observer.seen = trainer.state.global_step, epochs * len(data["train"])
    if not asked["evaluation_batch"]:
        observer.real, observer.padded = epochs * splits["train"][1], observer.seen * limit
    times = {"validation": epochs, "test": epochs if asked.get("test_every_epoch") else 1}
    observer.evaluated = sum(times[name] * len(data[name]) for name in evaluated)
    observer.epochs = epochs_of(trainer.state.log_history, evaluated)
    observer.write(report, {"arguments": trainer.args.to_dict()})


def epochs_of(history: list[dict[str, float]], splits: list[str]) -> list[dict[str, dict[str, float]]]:
    """Accuracy and loss of every epoch, from the Trainer's log."""
    found: dict[float, dict[str, dict[str, float]]] = {}
    for row in history:
        for name in splits:
            if f"eval_{name}_accuracy" in row:
                values = {key: row[f"eval_{name}_{key}"] for key in ("accuracy", "loss")}
                found.setdefault(row["epoch"], {})[name] = values
    return [found[epoch] for epoch in sorted(found)]


if __name__ == "__main__":
    train(sys.argv[1], json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
