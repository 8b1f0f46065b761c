"""Check a causal language model in Hugging Face format and publish it, in a separate process.

Transformers builds the network of config.json on the meta device, and its weights are compared with those of
the files. No code of the model's authors is run: a pickle is read in a fork of this process (see
`conversion`), and a model with its own code is refused.
"""

import hashlib
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")  # before Transformers is imported

import torch
import transformers
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from transformers.models.auto import modeling_auto

from seedbed.core.errors import SeedbedError
from seedbed.core.files import follow_umask, write_json
from seedbed.models import isolation, tokenizer_probe
from seedbed.models.conversion import check_layout, copy_file, no_safetensors, read_weights, scratch
from seedbed.models.huggingface_format import read_mapping
from seedbed.models.prompts import load_tokenizer
from seedbed.models.roberta import check_finite, listed
from seedbed.sources.manifest import another_file

log = logging.getLogger(__name__)

WORKING = "BloomForCausalLM, LlamaForCausalLM, GPT2LMHeadModel, MistralForCausalLM, Qwen2ForCausalLM"
CAUSAL = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
MASKED = modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
ENCODER_DECODERS = modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
SPECIAL = ("bos", "eos", "pad", "unk")
# files that name the special tokens, in order of precedence
NAMING = ("tokenizer_config.json", "special_tokens_map.json")
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
# keys of config.json that are not published: its authors' code, kernels and paths
DROPPED = (
    *("auto_map", "_name_or_path", "task_specific_params", "transformers_weights"),
    *("attn_implementation", "_attn_implementation", "_attn_implementation_internal"),
    *("experts_implementation", "_experts_implementation", "_experts_implementation_internal"),
)
KEPT_DEFAULTS = {"bos_token_id", "eos_token_id", "pad_token_id", "use_cache", "transformers_version"}


def work(request: Mapping[str, Any], forked: bool = True) -> dict[str, Any]:
    """Answer a request of `intake.prepare` (with `folder` added), in the separate process."""
    files = {key: Path(path) for key, path in request["files"].items()}
    digests = request.get("shards") or {str(files["checkpoint"]): request["sha256"]}
    return convert(files, digests, request["sha256"], Path(request["folder"]), forked)


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
        network = build(inner, files)
        types = check_values(weights, network, files)
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
    if content.get("quantization_config"):
        raise SeedbedError(
            "the weights are stored quantized",
            where=f"{path}, quantization_config",
            found=str(content["quantization_config"])[:200],
            hint="take the model's full weights: method qlora quantizes them while loading",
        )
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


# --- weights ----------------------------------------------------------------------------------------------


def gather_weights(digests: Mapping[str, str], target: Path, folder: Path, forked: bool) -> None:
    """Write a model's weights to one safetensors file; a source of one such file is copied.

    The rule must declare its outputs before the names of shards are known, hence one file.

    Raises:
        SeedbedError: a file has changed since it was fetched, is harmful or damaged, or repeats a weight of
            another file.
    """
    paths = [Path(path) for path in digests]
    if len(paths) == 1 and paths[0].suffix == ".safetensors":
        _copy_verified(paths[0], target, digests[str(paths[0])])
        return
    gathered: dict[str, torch.Tensor] = {}
    for path in paths:
        tensors, content = read_weights(path, digests[str(path)], folder, forked)
        check_layout(content, "weights", str(path))
        twice = sorted(set(tensors) & set(gathered))
        if twice:
            raise SeedbedError("a weight is in two files of the model", where=str(path), found=listed(twice))
        gathered |= tensors
    save_file(_unshared(gathered), target, metadata={"format": "pt"})
    follow_umask(target)


def _copy_verified(source: Path, target: Path, digest: str) -> None:
    hashed = hashlib.sha256()
    with open(source, "rb") as original, open(target, "wb") as copy:
        while block := original.read(2**24):
            hashed.update(block)
            copy.write(block)
    if hashed.hexdigest() != digest:
        raise another_file(source, digest, hashed.hexdigest())


def _unshared(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors without shared memory: in a pickle, tied weights share one storage."""
    seen: set[int] = set()
    found = {}
    for name, tensor in tensors.items():
        place = tensor.data_ptr()
        found[name] = tensor.clone() if place in seen else tensor.contiguous()
        seen.add(place)
    return found


def build(folder: Path, files: Mapping[str, Path]) -> transformers.PreTrainedModel:
    """The network of config.json and model.safetensors in `folder`, without allocating its weights.

    Transformers matches the names: a tied output matrix may be missing, as may the prefix of all names
    (`transformer.` in bigscience/bloom-560m's file), and buffers of old versions are ignored.

    Raises:
        SeedbedError: config.json and the weights do not fit.
    """
    where = f"{files['checkpoint']} and {files['config']}"
    _check_layers(folder, files)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        network, found = transformers.AutoModelForCausalLM.from_pretrained(
            folder,
            output_loading_info=True,
            device_map="meta",
            dtype="auto",
            ignore_mismatched_sizes=True,  # reported below
            trust_remote_code=False,
            local_files_only=True,
            use_safetensors=True,
        )
    except Exception as error:  # a config from outside can cause any error in Transformers
        raise SeedbedError(
            "Transformers cannot build the network that config.json describes",
            where=where,
            found=f"{type(error).__name__}: {error}"[:300],
            hint="take all files from one model, written by save_pretrained",
        ) from None
    missing, unexpected = sorted(found["missing_keys"]), sorted(found["unexpected_keys"])
    if missing or unexpected:
        raise SeedbedError(
            "the weights do not fit the network of config.json",
            where=where,
            found=f"missing: {listed(missing)}; unexpected: {listed(unexpected)}",
            hint="take all files from one model",
        )
    if found["mismatched_keys"]:
        name, stored, expected = sorted(found["mismatched_keys"])[0]
        raise SeedbedError(
            "the shape of a weight differs from config.json",
            where=f"{where}, {name}",
            found=f"{tuple(stored)}, expected {tuple(expected)}",
            hint="take all files from one model",
        )
    return network


def _check_layers(folder: Path, files: Mapping[str, Path]) -> None:
    """Check the file's format, and that config.json has no more layers than the file has weights.

    Building the network of an absurd number of layers would fill the memory.
    """
    try:
        with safe_open(folder / "model.safetensors", "pt") as stream:
            count = len(stream.keys())
    except (SafetensorError, OSError) as error:
        raise no_safetensors(files["checkpoint"], error) from None
    content = read_mapping(folder / "config.json")
    for key in ("n_layer", "n_layers", "num_layers", "num_hidden_layers"):
        if isinstance(content.get(key), int) and content[key] > count:
            raise SeedbedError(
                "config.json has more layers than there are weights",
                where=f"{files['config']}, {key}",
                found=f"{content[key]:,} layers, {count:,} weights",
                hint="take all files from one model",
            )


def check_values(
    weights: Path, network: transformers.PreTrainedModel, files: Mapping[str, Path]
) -> list[str]:
    """Check the values of all weights, and return the types of the trained ones.

    Raises:
        SeedbedError: a weight is not finite, its type cannot be trained, or the output matrix differs from
            the embedding although config.json ties them.
    """
    where = str(files["checkpoint"])
    names = [name for name, _ in network.named_parameters()]
    types = set()
    with safe_open(weights, "pt") as stream:
        for name in stream.keys():  # noqa: SIM118 (a reader of safetensors is not a mapping)
            tensor = stream.get_tensor(name)
            trained = any(parameter.endswith(name) or name.endswith(parameter) for parameter in names)
            # untrained tensors are masks of old versions, or weights under old names
            if trained and tensor.dtype not in FLOATS:
                raise SeedbedError(
                    "a weight has a type that cannot be trained",
                    where=f"{where}, {name}",
                    found=str(tensor.dtype),
                    hint="take the model's full weights, in 16 or 32 bits",
                )
            if tensor.dtype in FLOATS:
                check_finite(name, tensor, where)
            types |= {str(tensor.dtype).removeprefix("torch.")} if trained else set()
        _check_tied(stream, network, where)
    return sorted(types)


def _check_tied(stream: Any, network: transformers.PreTrainedModel, where: str) -> None:
    output, embedding = network.get_output_embeddings(), network.get_input_embeddings()
    # ask the config: Transformers unties the modules' weights if they differ
    if output is None or not network.config.get_text_config().tie_word_embeddings:
        return
    held = sorted(stream.keys(), key=len, reverse=True)
    # search modules: named_parameters lists a tied weight only once
    (inner,) = (name for name, module in network.named_modules() if module is embedding)
    (outer,) = (name for name, module in network.named_modules() if module is output)
    matrix = f"{outer}.weight"
    row = next((name for name in held if f"{inner}.weight".endswith(name)), None)
    if matrix in held and row and not torch.equal(stream.get_tensor(matrix), stream.get_tensor(row)):
        raise SeedbedError(
            "the output matrix differs from the embeddings, though config.json ties them",
            where=f"{where}, {matrix}",
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
