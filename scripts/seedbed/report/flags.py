"""What each option of a recipe is called by `fairseq-train` and by Transformers' run_glue.py."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from seedbed.config.resolve import SCHEMA_PATH
from seedbed.core.files import read_json
from seedbed.report.documents.blocks import Cell, Table, code

TRAINING, SCRIPT, CONFIG = "TrainingArguments", "run_glue.py", "RobertaConfig"


@dataclass(frozen=True)
class Option:
    """An option of a recipe in both frameworks' terms; what it means stands in the schema of the config.

    Attributes:
        key: its name in a recipe.
        fairseq: flags of `fairseq-train`, with Seedbed's plugin.
        transformers: (where, name): a field of TrainingArguments, which run_glue.py takes as a flag; a flag
            of run_glue.py's own; or a key of the model's config.json, for which run_glue.py has no flag.
        note: what Seedbed does that the names do not say.
    """

    key: str
    fairseq: tuple[str, ...]
    transformers: tuple[tuple[str, str], ...]
    note: str


OPTIONS = (
    Option(
        "method",
        (),
        (),
        "No flag: both train all weights, and peft an adapter with Transformers alone. Transformers' token "
        "types stay zero, as fairseq has none.",
    ),
    Option(
        "epochs",
        ("--max-epoch", "--max-update"),
        ((TRAINING, "num_train_epochs"),),
        "Updates are epochs times batches an epoch, and the same in both; fairseq is told both numbers.",
    ),
    Option(
        "batch_size",
        ("--batch-size",),
        ((TRAINING, "per_device_train_batch_size"),),
        "One device and no accumulation. fairseq also gets `--required-batch-size-multiple` 1, so that it "
        "does not split the last batch.",
    ),
    Option(
        "learning_rate",
        ("--lr",),
        ((TRAINING, "learning_rate"),),
        "",
    ),
    Option(
        "adam_betas",
        ("--optimizer", "--adam-betas"),
        ((TRAINING, "optim"), (TRAINING, "adam_beta1"), (TRAINING, "adam_beta2")),
        "fairseq's `adam`, by PyTorch's fused kernel, and Transformers' `adamw_torch_fused`: both decay "
        "weights apart from the gradient.",
    ),
    Option(
        "adam_epsilon",
        ("--adam-eps",),
        ((TRAINING, "adam_epsilon"),),
        "fairseq adds it before the bias correction, Transformers after.",
    ),
    Option(
        "weight_decay",
        ("--weight-decay",),
        ((TRAINING, "weight_decay"),),
        "The Trainer leaves biases and layer norms out by itself; Seedbed leaves out what the recipe says.",
    ),
    Option(
        "weight_decay_skip",
        (),
        (),
        "No flag: Seedbed forms the Trainer's groups of parameters. fairseq skips nothing; the report lists "
        "that as a difference.",
    ),
    Option(
        "clip_norm",
        ("--clip-norm",),
        ((TRAINING, "max_grad_norm"),),
        "0 is no clipping in both; run_glue.py clips at 1 unless told otherwise.",
    ),
    Option(
        "warmup_ratio",
        ("--warmup-updates",),
        ((TRAINING, "warmup_steps"),),
        "The number of updates is rounded down, and handed to fairseq; the Trainer given a share rounds up, "
        "so that Seedbed hands it the schedule itself.",
    ),
    Option(
        "schedule",
        ("--lr-scheduler", "--total-num-update"),
        ((TRAINING, "lr_scheduler_type"),),
        "fairseq's `polynomial_decay`; constant is one that ends at its peak. Seedbed hands the Trainer the "
        "same arithmetic in place of its schedulers.",
    ),
    Option(
        "schedule_power",
        ("--power",),
        ((TRAINING, "lr_scheduler_kwargs"),),
        "See schedule; run_glue.py knows a power with `lr_scheduler_type polynomial`.",
    ),
    Option(
        "end_learning_rate",
        ("--end-learning-rate",),
        ((TRAINING, "lr_scheduler_kwargs"),),
        "See schedule; `lr_end` of `lr_scheduler_type polynomial`.",
    ),
    Option(
        "dropout",
        ("--dropout",),
        ((CONFIG, "hidden_dropout_prob"),),
        "",
    ),
    Option(
        "attention_dropout",
        ("--attention-dropout",),
        ((CONFIG, "attention_probs_dropout_prob"),),
        "",
    ),
    Option(
        "activation_dropout",
        ("--activation-dropout",),
        (),
        "Where it is not 0, the report lists that as a difference.",
    ),
    Option(
        "pooler_dropout",
        ("--pooler-dropout",),
        ((CONFIG, "classifier_dropout"),),
        "Left alone, run_glue.py takes `hidden_dropout_prob`, 0.1, and fairseq 0.",
    ),
    Option(
        "head_init",
        (),
        (),
        "No flag: Seedbed draws the head, the same tensors in both frameworks for an init seed. Left alone, "
        "fairseq draws as `torch` does and Transformers as `normal`.",
    ),
    Option(
        "random_init_sd",
        (),
        ((CONFIG, "initializer_range"),),
        "Seedbed draws the encoder of a random run itself, the same tensors in both; fairseq has 0.02 fixed.",
    ),
    Option(
        "max_positions",
        ("--longest-input",),
        ((SCRIPT, "max_seq_length"),),
        "Seedbed cuts the token ids and keeps the last `</s>`; the flag of fairseq is its plugin's, since "
        "`--max-positions` is the model's. run_glue.py also pads every text to that length, Seedbed to the "
        "longest of a batch.",
    ),
    Option(
        "precision",
        ("--fp16",),
        ((TRAINING, "fp16"), (TRAINING, "bf16"), (TRAINING, "tf32")),
        "float32 is no flag, and fairseq has none for tf32. float16: fairseq keeps a float32 master copy, "
        "Transformers casts per operation.",
    ),
    Option(
        "lora",
        (),
        (),
        "No flag: these are the names of peft's LoraConfig.",
    ),
    Option(
        "quantization",
        (),
        (),
        "No flag: these are the names of Transformers' BitsAndBytesConfig.",
    ),
    Option(
        "frozen_dtype",
        (),
        (),
        "No flag: the type that Seedbed casts the weights to before they are frozen.",
    ),
    Option(
        "gradient_checkpointing",
        (),
        ((TRAINING, "gradient_checkpointing"),),
        "Of causal models alone.",
    ),
    Option(
        "loss_on",
        (),
        (),
        "No flag: Seedbed's labels leave out the tokens that are not trained on.",
    ),
    Option(
        "sweep",
        (),
        (),
        "No flag: each combination of values is a recipe of its own.",
    ),
)


def table(recipe: Mapping[str, Any], *, named: bool = True) -> Table:
    """The options of a recipe with its values, and what both frameworks call them.

    Args:
        recipe: a resolved recipe, such as one of `Plan.reporting()["recipes"]`; what it lacks is left out.
        named: whether the names of both frameworks stand beside.
    """
    rows = [
        (
            code(option.key),
            _value(recipe[option.key]),
            _flags(option.fairseq),
            _flags(_name(where, name) for where, name in option.transformers),
        )
        for option in OPTIONS
        if option.key in recipe
    ]
    header = ("option", "value", "fairseq-train", "run_glue.py")
    if not named:
        return Table("flags", header[:2], [row[:2] for row in rows], "Each option of the recipe.")
    caption = (
        "Each option of the recipe, and what `fairseq-train` and Transformers' run_glue.py call it. For what "
        "begins with `config:`, a key of the model's config.json, run_glue.py has no flag."
    )
    return Table("flags", header, rows, caption)


def meanings(*, named: bool = True) -> Table:
    """What the options of a recipe mean, their defaults, and what Seedbed does that no flag says.

    Args:
        named: whether that last part, of both frameworks' flags, is told.
    """
    described = read_json(SCHEMA_PATH)["$defs"]["recipe"]["properties"]
    rows = [
        (
            code(option.key),
            _value(described[option.key]["default"]),
            _meaning(described[option.key], option, named),
        )
        for option in OPTIONS
    ]
    caption = "What the options mean. Their defaults, and what Seedbed does that no flag says."
    caption = caption if named else "What the options mean, and their defaults."
    return Table("options", ("option", "default", "meaning"), rows, caption)


def _meaning(described: Mapping[str, Any], option: Option, named: bool) -> str:
    return f"{described['description']} {option.note * named}".rstrip()


def _value(value: Any) -> Cell:
    """A value as the config may write it."""
    text = json.dumps(value)
    return Cell(code(text), value if isinstance(value, (int, float, str)) else text)


def _name(where: str, name: str) -> str:
    return f"config: {name}" if where == CONFIG else f"--{name}"


def _flags(names: Iterable[str]) -> str | None:
    return ", ".join(map(code, names)) or None
