"""Export a finished run as a folder that Transformers loads without Seedbed: pipeline("text-classification").

The folder has config.json with the names of the labels, model.safetensors, and the tokenizer with the longest
input of the run. Runs of fairseq are converted, adapters merged, numbers in the unit of the labels. What is
written is loaded again, and must predict the test set as the run did.
"""

import os
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from seedbed.core import files
from seedbed.core.errors import SeedbedError
from seedbed.core.interruption import unwinding
from seedbed.core.tasks import VALUES
from seedbed.data.texts import parts
from seedbed.models.auto_classifiers import in_head
from seedbed.prediction import classifiers
from seedbed.prediction.finished_runs import FinishedRun
from seedbed.prediction.weights import Weights
from seedbed.training import token_ids
from seedbed.training.targets import Scale
from seedbed.training.token_ids import Text
from seedbed.training.transformers import be_quiet
from seedbed.training.transformers.evaluation import Evaluation

# Share of test texts that AutoTokenizer may split in another way than the run's tokenizer: both know pieces
# with the same score, and take another one of several equal splits.
MOST_TIES = 0.01


@dataclass(frozen=True)
class Exported:
    """What an export was checked by.

    Attributes:
        texts: number of test texts.
        difference: the largest difference of their predictions from those of the run.
        split_differently: number of texts that AutoTokenizer splits into other pieces.
        longest: tokens of the longest input, special ones included; None: unlimited.
    """

    texts: int
    difference: float
    split_differently: int
    longest: int | None


def export(run: FinishedRun, weights: Weights, output: Path, card: Callable[[Exported], str]) -> Exported:
    """Write a run's folder, and check it on all test texts.

    Args:
        run: the run.
        weights: of the run.
        output: the folder, which must not exist; it appears whole.
        card: maps what the export was checked by to the text of README.md.

    Raises:
        SeedbedError: the folder does not predict the test set as the run did.
    """
    be_quiet()
    part = output.with_name(f".{output.name}.{uuid.uuid4().hex}.part")
    with unwinding():
        try:
            part.mkdir(parents=True)
            _write_tokenizer(run, part)
            _write_model(run, weights, part)
            exported = check(run, weights, part)
            files.write_text(part / "README.md", card(exported))
            os.rename(part, output)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
    return exported


def _write_tokenizer(run: FinishedRun, folder: Path) -> None:
    """The model's tokenizer, which cuts texts as the run does where it is asked to truncate."""
    published, longest = run.model / "huggingface", token_ids.longest(run.job.model, run.job.settings)
    shutil.copyfile(published / "tokenizer.json", folder / "tokenizer.json")
    config = files.read_json(published / "tokenizer_config.json")
    files.write_json(
        folder / "tokenizer_config.json", config | ({"model_max_length": longest} if longest else {})
    )


def _write_model(run: FinishedRun, weights: Weights, folder: Path) -> None:
    model = _whole_model(run, weights)
    if run.task.outputs == VALUES:
        _rescale(model, Scale(**run.record["targets"]))
    else:
        model.config.id2label = dict(enumerate(run.labels))
        model.config.label2id = {name: number for number, name in enumerate(run.labels)}
    _extend_vocabulary(model, folder)
    model.save_pretrained(folder, max_shard_size="1000GB")  # one file
    files.follow_umask(folder / "model.safetensors")


def _whole_model(run: FinishedRun, weights: Weights) -> Any:
    """The model in float32 without an adapter."""
    if run.job.method.has_adapter:
        from seedbed.training import merging

        record = {**run.record, "settings": run.job.settings}
        return merging.merged(run.job.weights, weights.file.parent, record)
    model, _ = classifiers.load(run, weights)
    return model


def _rescale(model: Any, scale: Scale) -> None:
    """Let the last layer give numbers in the unit of the labels: mean + sd * (Wx + b)."""
    heads = [
        module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and module.out_features == 1 and in_head(f"{name}.weight", model)
    ]
    last = heads[-1]
    with torch.no_grad():
        last.weight.mul_(scale.sd)
        last.bias.mul_(scale.sd).add_(scale.mean)


def _extend_vocabulary(model: Any, folder: Path) -> None:
    """Give each piece of the tokenizer a row: those that dict.txt lacks get that of <unk>, as in the run."""
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    rows = model.get_input_embeddings().weight
    known, needed = len(rows), len(tokenizer)
    if needed <= known:
        return
    unknown = rows[tokenizer.unk_token_id].detach().clone()
    model.resize_token_embeddings(needed, mean_resizing=False)
    with torch.no_grad():
        model.get_input_embeddings().weight[known:] = unknown


# --- check --------------------------------------------------------------------------------------------------


def check(run: FinishedRun, weights: Weights, folder: Path) -> Exported:
    """Predict the test set with what Transformers loads from a folder, and compare it with the run's.

    Raises:
        SeedbedError: predictions differ, or AutoTokenizer splits many texts in another way.
    """
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True)
    columns = [list(column) for column in zip(*map(parts, run.test), strict=True)]
    found = tokenizer(*columns, truncation=True)
    own, _ = classifiers.encoded(run, run.test)
    known, unknown = files.read_json(run.job.model)["vocabulary"], tokenizer.unk_token_id
    ids = [[number if number < known else unknown for number in row] for row in found["input_ids"]]
    same = [index for index, row in enumerate(ids) if row == own.ids[index]]
    others = len(ids) - len(same)
    if others > MOST_TIES * len(ids):
        raise SeedbedError(
            "the exported tokenizer splits texts in another way than the run's",
            where=str(run.folder),
            found=f"{others} of {len(ids)} test texts",
            hint="report this as a bug",
        )
    types = found["token_type_ids"] if own.types else None
    texts = [Text(found["input_ids"][index], types[index] if types else None) for index in same]
    outputs = Evaluation(model, model, torch.device("cpu"), "float32").logits(
        texts, run.job.run["evaluation"]["batch_size"], lambda _: None
    )
    values = outputs if run.task.outputs == VALUES else classifiers.values_of(run, outputs)
    difference = classifiers.check_predictions(
        run, weights, [run.test[index]["id"] for index in same], values
    )
    return Exported(len(ids), difference, others, token_ids.longest(run.job.model, run.job.settings))
