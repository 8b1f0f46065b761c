"""Check an encoder in Transformers' format and publish it for classification, in a separate process.

Transformers' Auto classes decide what network and tokenizer the files describe; code of their authors is
refused. The published weights have the names of the classifier; those of its head that the source lacks are
left out, and each run draws them.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")  # before Transformers is imported

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoModelForSequenceClassification
from transformers.models.auto import configuration_auto, modeling_auto

from seedbed.core.errors import SeedbedError
from seedbed.core.files import follow_umask, write_json
from seedbed.models import isolation, tokenizer_probe
from seedbed.models.auto_classifiers import in_head
from seedbed.models.auto_tokenizers import Made, make_tokenizer
from seedbed.models.conversion import copy_file, scratch
from seedbed.models.huggingface_format import read_mapping
from seedbed.models.intake import refuse_code
from seedbed.models.prompts import load_tokenizer
from seedbed.models.roberta import listed
from seedbed.models.saved_models import (
    DROPPED,
    Fit,
    build,
    check_fit,
    check_values,
    gather_weights,
    load,
    refuse_quantized,
    requested,
    unshared,
)

log = logging.getLogger(__name__)

TYPES = configuration_auto.CONFIG_MAPPING_NAMES
CLASSIFIERS = modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES
MASKED = modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
CAUSAL = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
WORKING = "BERT, DistilBERT, ELECTRA, DeBERTa, ModernBERT, RoBERTa, XLM-R or CamemBERT"
# keys of config.json about the head of an earlier fine-tuning, and of the stored types
DROPPED_HEAD = ("id2label", "label2id", "num_labels", "problem_type", "finetuning_task", "torch_dtype")
PADDING_TOLERANCE = 1e-4  # of equal logits, as a share of their norm; float32 rounds to 1e-6


def work(request: Mapping[str, Any], forked: bool = True) -> dict[str, Any]:
    """Answer a request of `intake.prepare` (with `folder` added), in the separate process."""
    return convert(*requested(request), forked)


def convert(
    files: Mapping[str, Path], digests: Mapping[str, str], digest: str, folder: Path, forked: bool = False
) -> dict[str, Any]:
    """Make a model's files in `folder`: huggingface/ and model.json.

    huggingface/ gets config.json of the classifier, model.safetensors (float32), tokenizer.json and
    tokenizer_config.json.

    Args:
        files: paths `checkpoint` and `config`, and of the tokenizer's existing files by name.
        digests: SHA-256 of each file of weights, by path.
        digest: SHA-256 of `checkpoint`: of the weights, or of the index of their files.
        folder: results/models/MODEL.
        forked: read a pickle, and use the tokenizer, in a fork of this process.

    Returns the content of model.json: `format`, `architecture` (Transformers' model_type), `class`, `layers`,
    `embed_dim`, `vocabulary` (rows of the embedding), `max_positions` (the longest text in tokens; None:
    unlimited), `parameters` (published), `new_weights` (of the head, which runs draw), `ignored_keys`, token
    ids `pad`, `unk` (may be None), `beginning` and `ending` (around each text), `dtypes` of the source's
    weights, and `checkpoint_sha256`.

    Raises:
        SeedbedError: a file is harmful or damaged, the files do not belong together, or Transformers has no
            classifier for the model.
    """
    content = read_config(files)
    with scratch(folder) as inner:
        (inner / "tokenizer").mkdir()
        tokenizer = make_tokenizer(files, inner / "tokenizer", forked)
        weights = inner / "model.safetensors"
        gather_weights(digests, weights, inner, forked)
        config = {key: value for key, value in content.items() if key not in {*DROPPED, *DROPPED_HEAD}}
        write_json(inner / "config.json", config)
        network, fit = build(AutoModelForSequenceClassification, inner, files)
        new, ignored = compare(network, fit, inner, files)
        types = check_values(weights, network, files)
        model, _ = load(AutoModelForSequenceClassification, inner, files, dtype=torch.float32)
        described = _describe(model, new, tokenizer, files)
        described |= {"ignored_keys": ignored, "dtypes": types, "checkpoint_sha256": digest}
        _check_padding(model, described, inner / "tokenizer" / "tokenizer.json", files)
        published = folder / "huggingface"
        published.mkdir(parents=True, exist_ok=True)
        kept = {name: weight for name, weight in model.state_dict().items() if name not in new}
        described["parameters"] = sum(map(torch.numel, kept.values()))
        save_file(unshared(kept), published / "model.safetensors", metadata={"format": "pt"})
        follow_umask(published / "model.safetensors")
        copy_file(inner / "tokenizer" / "tokenizer.json", published / "tokenizer.json")
    limit = {"model_max_length": described["max_positions"]} if described["max_positions"] else {}
    write_json(published / "tokenizer_config.json", tokenizer.config | limit)
    own = {"architectures": [described["class"]], "dtype": "float32", "pad_token_id": described["pad"]}
    write_json(published / "config.json", config | own)
    write_json(folder / "model.json", described)
    log.info("converted %s: %s", files["checkpoint"], described)
    return described


# --- config.json ------------------------------------------------------------------------------------------


def read_config(files: Mapping[str, Path]) -> dict[str, Any]:
    """Read config.json of an encoder that Transformers can classify with.

    Raises:
        SeedbedError: the model is of another kind, is quantized, or needs code of its authors.
    """
    path = files["config"]
    content = read_mapping(path)
    refuse_code(content, path)
    if "tokenizer_config.json" in files:
        refuse_code(read_mapping(files["tokenizer_config.json"]), files["tokenizer_config.json"])
    kind = str(content.get("model_type"))
    if reason := _refused(content, kind):
        raise SeedbedError(
            f"this model cannot be fine-tuned to classify texts: {reason}",
            where=f"{path}, model_type",
            found=f"model_type {kind!r}, architectures {content.get('architectures')!r}",
            hint=f"take an encoder, such as {WORKING}",
        )
    refuse_quantized(content, path, "take the model's full weights, in 16 or 32 bits")
    return content


def _refused(content: Mapping[str, Any], kind: str) -> str:
    """The reason to refuse a model; empty if it is accepted."""
    if kind not in TYPES:
        return f"Transformers {transformers.__version__} does not know its type"
    if content.get("is_encoder_decoder"):
        return "it is an encoder-decoder"
    if kind not in CLASSIFIERS:
        return "Transformers has no class of its type for the classification of sequences"
    if content.get("is_decoder") or (kind in CAUSAL and kind not in MASKED):
        return "it predicts the next token (format: causal, with task: generation)"
    return ""


# --- weights ----------------------------------------------------------------------------------------------


def compare(
    network: transformers.PreTrainedModel, fit: Fit, folder: Path, files: Mapping[str, Path]
) -> tuple[list[str], list[str]]:
    """Compare weights and network; a head may be missing or another one, the encoder may not.

    If the source has the output layer of a classifier, its whole head is of an earlier fine-tuning, and each
    run draws a new one.

    Args:
        network: the classifier without values.
        fit: the differences.
        folder: the folder of config.json.
        files: the paths of the originals, for messages.

    Returns the names of the head's weights that are new, and of the source's weights that are not used.

    Raises:
        SeedbedError: the encoder lacks a weight, has one too many, or one of another shape.
    """
    encoder = getattr(network, network.base_model_prefix)
    outside = [name for name in fit.unexpected if not _in_encoder(name, network, encoder)]
    check_fit(
        Fit(
            [name for name in fit.missing if not in_head(name, network)],
            [name for name in fit.unexpected if name not in outside],
            [each for each in fit.mismatched if not in_head(each[0], network)],
        ),
        files,
    )
    new = {*fit.missing}
    if not _output_layer(network, folder) <= new:
        log.warning("%s has the head of an earlier fine-tuning, which is not used", files["checkpoint"])
        prefix = f"{network.base_model_prefix}."
        new |= {name for name, _ in network.named_parameters() if not name.startswith(prefix)}
    if outside:
        log.info("%s: not used: %s", files["checkpoint"], listed(outside))
    return sorted(new), outside


def _in_encoder(name: str, network: transformers.PreTrainedModel, encoder: torch.nn.Module) -> bool:
    """Whether an unexpected weight would be the encoder's, as of a layer that config.json does not have."""
    prefix = f"{network.base_model_prefix}."
    first = name.removeprefix(prefix).partition(".")[0]
    if first == "pooler":
        return False
    return name.startswith(prefix) or first in dict(encoder.named_children())


def _output_layer(network: transformers.PreTrainedModel, folder: Path) -> set[str]:
    """Names of the weights whose shapes depend on the number of classes."""
    classes = network.config.num_labels + 1
    config = transformers.AutoConfig.from_pretrained(folder, num_labels=classes, local_files_only=True)
    with torch.device("meta"):
        other = AutoModelForSequenceClassification.from_config(config)
    shapes = {name: weight.shape for name, weight in other.named_parameters()}
    return {name for name, weight in network.named_parameters() if weight.shape != shapes[name]}


# --- description ------------------------------------------------------------------------------------------


def _describe(
    model: transformers.PreTrainedModel, new: list[str], tokenizer: Made, files: Mapping[str, Path]
) -> dict[str, Any]:
    rows = model.get_input_embeddings().weight.shape[0]
    number, token = tokenizer.highest
    if number >= rows:
        raise SeedbedError(
            "the tokenizer has more tokens than the embedding has rows",
            where=f"{files['config'].parent} and {files['checkpoint']}",
            found=f"token {token!r} has id {number}; {rows} rows",
            hint="take both from one model; added tokens need rows in the embedding",
        )
    return {
        "format": "auto",
        "architecture": model.config.model_type,
        "class": type(model).__name__,
        "layers": model.config.num_hidden_layers,
        "embed_dim": model.config.hidden_size,
        "vocabulary": rows,
        "max_positions": _longest(model, tokenizer.limit),
        "new_weights": new,
        "pad": _padding(model, tokenizer.pad, files),
        "unk": tokenizer.unk,
        "beginning": tokenizer.beginning,
        "ending": tokenizer.ending,
    }


def _padding(model: transformers.PreTrainedModel, pad: int, files: Mapping[str, Path]) -> int:
    """The id of padding: config.json's, from which RoBERTa counts positions, else the tokenizer's."""
    own = model.config.pad_token_id
    if own is None or own == pad or not 0 <= own < model.get_input_embeddings().weight.shape[0]:
        return pad
    log.warning(
        "%s says pad_token_id = %d; the tokenizer's padding token has id %d. Padding is masked, and has the "
        "first",
        *(files["config"], own, pad),
    )
    return own


def _longest(model: transformers.PreTrainedModel, limit: int | None) -> int | None:
    """The longest text in tokens: the rows of the positions, or config.json's number, or the tokenizer's.

    RoBERTa's positions begin after the id of padding.
    """
    tables = [
        module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
        for name, module in model.named_modules()
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding)
    ]
    stated = [] if tables else [getattr(model.config, "max_position_embeddings", None)]
    known = [number for number in (*tables, *stated, limit) if number and number > 0]
    return min(known, default=None)


@torch.no_grad()
def _check_padding(
    model: transformers.PreTrainedModel, described: Mapping[str, Any], path: Path, files: Mapping[str, Path]
) -> None:
    """Compute a sentence with and without padding.

    Raises:
        SeedbedError: Transformers cannot compute it, or padding changes the logits.
    """
    model.eval()
    ids = load_tokenizer(path).encode(tokenizer_probe.SENTENCE).ids
    ids = ids[: min(12, (described["max_positions"] or 15) - 3)]
    short = torch.tensor([ids])
    padded = torch.tensor([[*ids, *[described["pad"]] * 3]])
    mask = (torch.arange(padded.shape[1]) < len(ids)).long()[None]
    try:
        alone = model(input_ids=short, attention_mask=torch.ones_like(short)).logits
        beside = model(input_ids=padded, attention_mask=mask).logits
        found = f"logits {alone.tolist()} and, with padding, {beside.tolist()}"
        fits = bool((alone - beside).norm() <= PADDING_TOLERANCE * alone.norm().clamp(min=1))
    except Exception as error:  # a config from outside can cause any error in Transformers
        found, fits = f"{type(error).__name__}: {error}"[:300], False
    if not fits:
        raise SeedbedError(
            f"a model of the type {model.config.model_type} cannot classify padded texts",
            where=f"{files['checkpoint']} and {files['config']}",
            found=found,
            hint=f"take an encoder that masks padding, such as {WORKING}",
        )


if __name__ == "__main__":
    isolation.answer(work)
