"""Check a causal language model in Hugging Face format and publish it, in a separate process.

A model with code of its authors is refused; for its weights see `saved_models`.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")  # before Transformers is imported

import torch
import transformers
from safetensors import safe_open
from transformers.models.auto import modeling_auto

from seedbed.core.errors import SeedbedError
from seedbed.core.files import write_json
from seedbed.models import isolation, tokenizer_probe
from seedbed.models.conversion import copy_file, scratch
from seedbed.models.huggingface_format import read_mapping
from seedbed.models.prompts import load_tokenizer
from seedbed.models.saved_models import (
    DROPPED,
    build,
    check_fit,
    check_values,
    gather_weights,
    refuse_quantized,
    requested,
)

log = logging.getLogger(__name__)

WORKING = "BloomForCausalLM, LlamaForCausalLM, GPT2LMHeadModel, MistralForCausalLM, Qwen2ForCausalLM"
CAUSAL = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
MASKED = modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
ENCODER_DECODERS = modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
SPECIAL = ("bos", "eos", "pad", "unk")
# files that name the special tokens, in order of precedence
NAMING = ("tokenizer_config.json", "special_tokens_map.json")
KEPT_DEFAULTS = {"bos_token_id", "eos_token_id", "pad_token_id", "use_cache", "transformers_version"}


def work(request: Mapping[str, Any], forked: bool = True) -> dict[str, Any]:
    """Answer a request of `intake.prepare` (with `folder` added), in the separate process."""
    return convert(*requested(request), forked)


def convert(
    files: Mapping[str, Path], digests: Mapping[str, str], digest: str, folder: Path, forked: bool = False
) -> dict[str, Any]:
    """Make a model's files in `folder`: huggingface/ and model.json.

    huggingface/ gets model.safetensors (all weights, types unchanged; a copy if the source has one such
    file), tokenizer.json, and config.json and tokenizer_config.json without settings of generation.

    Args:
        files: paths `checkpoint` (for errors), `config` and `tokenizer`, and `tokenizer_config.json` and
            `special_tokens_map.json` if they exist.
        digests: SHA-256 of each file of weights, by path.
        digest: SHA-256 of `checkpoint`: of the weights, or of the index of their files.
        folder: results/models/MODEL.
        forked: read a pickle in a fork of this process.

    Returns the content of model.json: `architecture` (Transformers' model_type), `layers`, `embed_dim`,
    `vocabulary` (rows of the embedding), `max_positions` (None: unlimited), `parameters`, token ids `bos`
    (may be None), `eos` and `pad`, `pad_is` (pad, or eos if the tokenizer has no padding token), `dtypes` of
    the weights and `checkpoint_sha256`.

    Raises:
        SeedbedError: a file is harmful or damaged, the files do not belong together, or the model does not
            predict the next token.
    """
    content = read_config(files["config"])
    tokenizer_probe.check(files["tokenizer"])
    with scratch(folder) as inner:
        weights = inner / "model.safetensors"
        gather_weights(digests, weights, inner, forked)
        tokens = read_special_tokens(files, content)
        config = published_config(content, tokens)
        write_json(inner / "config.json", config)
        network, fit = build(transformers.AutoModelForCausalLM, inner, files)
        check_fit(fit, files)
        types = check_values(weights, network, files)
        check_tied(weights, network, files)
        described = _describe(network, tokens, files)
        described |= {"dtypes": types, "checkpoint_sha256": digest}
        published = folder / "huggingface"
        published.mkdir(parents=True, exist_ok=True)
        os.replace(weights, published / "model.safetensors")
    write_json(published / "config.json", config)
    copy_file(files["tokenizer"], published / "tokenizer.json")
    write_json(published / "tokenizer_config.json", _tokenizer_config(files, tokens, described))
    write_json(folder / "model.json", described)
    log.info("converted %s: %s", files["checkpoint"], described)
    return described


# --- config.json ------------------------------------------------------------------------------------------


def read_config(path: Path) -> dict[str, Any]:
    """Read config.json of a causal language model that Transformers knows.

    Raises:
        SeedbedError: the model is of another kind, which the error names, or is quantized.
    """
    content = read_mapping(path)
    kind, architectures = content.get("model_type"), content.get("architectures") or []
    kind = kind if kind is None else str(kind)
    reason = _refused(content, kind, architectures)
    if reason:
        raise SeedbedError(
            f"this model cannot be fine-tuned as a causal language model: {reason}",
            where=f"{path}, architectures and model_type",
            found=f"architectures {architectures!r}, model_type {kind!r}",
            hint=f"take a model that predicts the next token, such as {WORKING}",
        )
    full = "take the model's full weights: method qlora quantizes them while loading"
    refuse_quantized(content, path, full)
    return content


def _refused(content: Mapping[str, Any], kind: Any, architectures: Any) -> str:
    """The reason to refuse a model; empty if it is accepted."""
    names = [str(name) for name in architectures] if isinstance(architectures, list) else []
    if content.get("is_encoder_decoder") or (set(names) & set(ENCODER_DECODERS.values())):
        return "it is an encoder-decoder"
    if any(name.endswith("ForMaskedLM") for name in names):
        return "it is a masked language model"
    if kind in MASKED and not content.get("is_decoder"):
        return "it is an encoder, which also sees later tokens"
    if kind not in CAUSAL:
        needs = "it needs its authors' code (auto_map), which is never run" if content.get("auto_map") else ""
        return needs or "Transformers has no causal language model of its type"
    if CAUSAL[kind] not in names:
        return f"its type requires the class {CAUSAL[kind]}"
    return ""


def published_config(content: Mapping[str, Any], tokens: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json to publish: with the ids of special tokens, without settings of generation."""
    defaults = set(transformers.GenerationConfig().to_dict()) - KEPT_DEFAULTS
    kept = {key: value for key, value in content.items() if key not in {*DROPPED, *defaults}}
    return kept | {f"{name}_token_id": tokens[name] for name in ("bos", "eos", "pad")}


def check_tied(weights: Path, network: transformers.PreTrainedModel, files: Mapping[str, Path]) -> None:
    """Check that the output matrix equals the embedding if config.json ties them.

    Raises:
        SeedbedError: they differ.
    """
    output, embedding = network.get_output_embeddings(), network.get_input_embeddings()
    # ask the config: Transformers unties the modules' weights if they differ
    if output is None or not network.config.get_text_config().tie_word_embeddings:
        return
    # search modules: named_parameters lists a tied weight only once
    (inner,) = (name for name, module in network.named_modules() if module is embedding)
    (outer,) = (name for name, module in network.named_modules() if module is output)
    matrix = f"{outer}.weight"
    with safe_open(weights, "pt") as stream:
        held = sorted(stream.keys(), key=len, reverse=True)
        row = next((name for name in held if f"{inner}.weight".endswith(name)), None)
        both = matrix in held and row is not None
        differ = both and not torch.equal(stream.get_tensor(matrix), stream.get_tensor(row))
    if differ:
        raise SeedbedError(
            "the output matrix differs from the embeddings, though config.json ties them",
            where=f"{files['checkpoint']}, {matrix}",
            found="tie_word_embeddings: true",
            hint="if the model has its own output matrix, set tie_word_embeddings to false in config.json",
        )


# --- tokenizer --------------------------------------------------------------------------------------------


def read_special_tokens(files: Mapping[str, Path], config: Mapping[str, Any]) -> dict[str, Any]:
    """Ids of the special tokens (None if missing), and `pad_is`: pad, or eos if it serves as padding.

    Names are read from tokenizer_config.json, else special_tokens_map.json, else ids from config.json.

    Raises:
        SeedbedError: there is no end token, or a token is not in the vocabulary.
    """
    tokenizer = load_tokenizer(files["tokenizer"])
    named = [read_mapping(files[name]) for name in NAMING if name in files]
    ids: dict[str, Any] = {}
    for name in SPECIAL:
        ids[name] = _special_id(tokenizer, name, named, files)
        stored = config.get(f"{name}_token_id")
        stored = stored[0] if isinstance(stored, list) and stored else stored
        stored = stored if isinstance(stored, int) and 0 <= stored < 2**32 else None  # as ids are
        if ids[name] is None and stored is not None and tokenizer.id_to_token(stored) is not None:
            ids[name] = stored
        elif name == "eos" and stored is not None and stored != ids[name]:
            log.warning(
                "%s says eos_token_id = %s; the tokenizer's end token %r, id %d, is used instead",
                *(files["config"], config[f"{name}_token_id"], tokenizer.id_to_token(ids[name]), ids[name]),
            )
    if ids["eos"] is None:
        raise SeedbedError(
            "the tokenizer has no end token, which marks the end of an answer",
            where=str(files["tokenizer"]),
            found=f"padding token: {None if ids['pad'] is None else tokenizer.id_to_token(ids['pad'])}",
            hint='name it in tokenizer_config.json, as in "eos_token": "</s>", or give config.json its id',
        )
    ids["pad_is"] = "pad" if ids["pad"] not in (None, ids["eos"]) else "eos"
    if ids["pad_is"] == "eos":
        ids["pad"] = ids["eos"]
        log.warning(
            "%s: the tokenizer has no padding token; the end token %r is used instead, with padding excluded "
            "by the attention mask",
            *(files["tokenizer"], tokenizer.id_to_token(ids["eos"])),
        )
    return ids | {
        "named": {name: tokenizer.id_to_token(ids[name]) for name in SPECIAL if ids[name] is not None}
    }


def _special_id(
    tokenizer: Any, name: str, named: Iterable[Mapping[str, Any]], files: Mapping[str, Path]
) -> int | None:
    found = next((content[f"{name}_token"] for content in named if content.get(f"{name}_token")), None)
    token = found.get("content") if isinstance(found, dict) else found
    if token is None:
        return None
    number = tokenizer.token_to_id(str(token))
    if number is None:
        raise SeedbedError(
            f"the tokenizer's {name}_token is not in its vocabulary",
            where=str(files["tokenizer"]),
            found=repr(token),
            hint="take tokenizer.json and tokenizer_config.json from one model",
        )
    return number


def _describe(
    network: transformers.PreTrainedModel, tokens: Mapping[str, Any], files: Mapping[str, Path]
) -> dict[str, Any]:
    config = network.config.get_text_config()
    rows = network.get_input_embeddings().weight.shape[0]
    tokenizer = load_tokenizer(files["tokenizer"])
    highest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    if highest >= rows:
        raise SeedbedError(
            "the tokenizer has more tokens than the embedding has rows",
            where=f"{files['tokenizer']} and {files['checkpoint']}",
            found=f"token {tokenizer.id_to_token(highest)!r} has id {highest}; {rows} rows",
            hint="take both from one model; added tokens need rows in the embedding",
        )
    return {
        "architecture": network.config.model_type,
        "layers": config.num_hidden_layers,
        "embed_dim": config.hidden_size,
        "vocabulary": rows,
        "max_positions": getattr(config, "max_position_embeddings", None),
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        **{name: tokens[name] for name in ("bos", "eos", "pad", "pad_is")},
    }


def _tokenizer_config(
    files: Mapping[str, Path], tokens: Mapping[str, Any], described: Mapping[str, Any]
) -> dict[str, Any]:
    """The tokenizer_config.json with which AutoTokenizer loads tokenizer.json of any class unchanged."""
    named = {f"{name}_token": token for name, token in tokens["named"].items()}
    limit = {} if described["max_positions"] is None else {"model_max_length": described["max_positions"]}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **named,
        **limit,
        "padding_side": "left",  # the answer follows the end of the prompt
        "clean_up_tokenization_spaces": False,
    }


if __name__ == "__main__":
    isolation.answer(work)
