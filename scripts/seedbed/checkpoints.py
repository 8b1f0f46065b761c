"""From a fairseq RoBERTa checkpoint to the files of a model, for fairseq and for transformers.

The conversion is key by key: each key of the checkpoint is converted, or listed as ignored, or an error.
"""

import argparse
import contextlib
import difflib
import logging
import pickle
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from seedbed import naming, tokenization
from seedbed.errors import SeedbedError
from seedbed.files import atomic_open, read_json, sha256, write_json

log = logging.getLogger(__name__)

ENCODER = "encoder.sentence_encoder"
HEAD = "encoder.lm_head"
# fairseq's activation -> transformers'; fairseq's gelu is the exact one (erf), as is transformers' "gelu"
ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "gelu_accurate": "gelu_new", "gelu_fast": "gelu_new"}
LAYER_NORM_EPSILON = 1e-5  # of torch.nn.LayerNorm, which fairseq leaves alone; transformers' default is 1e-12
POSITION_OFFSET = 2  # fairseq numbers positions from padding_idx + 1
# what the checkpoint may hold that no model of ours has
IGNORED = (
    re.compile(r"encoder\.sentence_encoder\.version"),  # marks the layout of old checkpoints; written anew
    re.compile(r"encoder\.sentence_encoder\.embed_positions\._float_tensor"),  # a buffer without content
    re.compile(r"classification_heads\..*"),  # of an earlier fine-tuning; each run has a head of its own
)
# settings of fairseq that change the network, and the only values that transformers' RoBERTa can follow
REQUIRED = {
    "encoder_normalize_before": False,
    "layernorm_embedding": True,
    "encoder_learned_pos": True,
    "no_token_positional_embeddings": False,
    "adaptive_input": False,
    "untie_weights_roberta": False,
    "encoder_layers_to_keep": None,
}


# --- the source's files ---


def find_files(manifest: str | Path, definition: Mapping[str, Any]) -> dict[str, Path]:
    """Paths of `checkpoint`, `dictionary` and `sentencepiece` of a model inside its downloaded source.

    Raises:
        SeedbedError: one is missing; the error lists what the source holds, and the nearest name.
    """
    held = sorted(read_json(manifest)["files"])
    paths = {}
    for key in ("checkpoint", "dictionary", "sentencepiece"):
        name = definition[key]
        if name not in held:
            raise SeedbedError(
                f"the source {definition['source']!r} holds no file {name!r}",
                where=f"config, {key} of the model whose source is {definition['source']!r}; {manifest}",
                found=", ".join(held[:20]) + (f" and {len(held) - 20} more" if len(held) > 20 else ""),
                hint=_nearest(name, held, key),
            )
        paths[key] = Path(manifest).parent / "files" / name
    return paths


def _nearest(name: str, held: list[str], key: str) -> str:
    same = [path for path in held if Path(path).name == Path(name).name]
    close = same or difflib.get_close_matches(name, held, n=1, cutoff=0.4)
    asked = f"did you mean {close[0]!r}? " if close else ""
    return f"{asked}set {key} to the file's path inside the source"


# --- loading ---


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Load a fairseq checkpoint without running any code of it: tensors, plain values, and its settings.

    Raises:
        SeedbedError: the pickle asks for anything else (the error names it), or the file is no checkpoint.
    """
    try:
        with torch.serialization.safe_globals([argparse.Namespace, *_settings_classes(path)]):
            checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever damage a file from outside can do to the reader
        raise _refused(path, error) from None
    if not isinstance(checkpoint, dict) or not isinstance(checkpoint.get("model"), dict):
        raise SeedbedError(
            "this is no checkpoint of fairseq: it has no weights under the key 'model'",
            where=str(path),
            found=sorted(map(str, checkpoint)) if isinstance(checkpoint, dict) else type(checkpoint).__name__,
            hint="give the model.pt that fairseq-train wrote",
        )
    return checkpoint


def _settings_classes(path: str | Path) -> list[Any]:
    """omegaconf's containers, where the settings stand in them: they hold data and run nothing."""
    if b"omegaconf" not in _pickle_bytes(path):
        return []
    import collections
    import typing

    from omegaconf import DictConfig, ListConfig, base, nodes

    values = [
        getattr(nodes, name) for name in ("AnyNode", "IntegerNode", "FloatNode", "StringNode", "BooleanNode")
    ]
    plain = [typing.Any, dict, list, int, float, str, bool, collections.defaultdict]
    return [DictConfig, ListConfig, base.ContainerMetadata, base.Metadata, *values, *plain]


def _pickle_bytes(path: str | Path) -> bytes:
    import zipfile

    with contextlib.suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith("data.pkl")]
        return archive.read(names[0]) if names else b""
    return b""


def _refused(path: str | Path, error: Exception) -> SeedbedError:
    named = re.search(r"GLOBAL:? (\S+)", str(error)) if isinstance(error, pickle.UnpicklingError) else None
    if named is None and isinstance(error, pickle.UnpicklingError):
        return SeedbedError(
            "the checkpoint holds more than weights and plain settings; it was refused",
            where=str(path),
            found=f"{Path(path).stat().st_size} bytes that PyTorch's reader of weights does not accept",
            hint="nothing was run, but the file may be harmful, or damaged: take it from its authors again",
        )
    if named is None:
        lines = str(error).splitlines() or [""]
        return SeedbedError(
            "the checkpoint cannot be read",
            where=str(path),
            found=f"{Path(path).stat().st_size} bytes; {type(error).__name__}: {lines[0]}",
            hint="the file may be cut off or no PyTorch checkpoint: download it again",
        )
    what = named.group(1)
    return SeedbedError(
        f"the checkpoint asks Python for {what}, which no weights need; it was refused",
        where=str(path),
        found=what,
        hint="nothing was run, but the file may be harmful: take it from its authors, with plain settings",
    )


# --- settings ---


def read_settings(checkpoint: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The model's settings, from `args` (fairseq < 0.10) or from `cfg.model`, as a dictionary.

    Raises:
        SeedbedError: there are none, or they describe a network that transformers' RoBERTa cannot be.
    """
    settings = _as_dict(checkpoint.get("args"))
    if not settings:
        config = _as_dict(checkpoint.get("cfg"))
        settings = {**_as_dict(config.get("task")), **_as_dict(config.get("model"))}
    needed = ["encoder_layers", "encoder_embed_dim", "encoder_ffn_embed_dim", "encoder_attention_heads"]
    missing = [key for key in needed if not isinstance(settings.get(key), int)]
    if missing:
        raise SeedbedError(
            "the checkpoint does not say what its network looks like",
            where=f"{where}, keys args and cfg",
            found=f"no {', '.join(missing)}; there is {', '.join(sorted(settings)[:20]) or 'nothing'}",
            hint="the model must be a RoBERTa of fairseq, saved with its settings",
        )
    _check_settings(settings, where)
    return settings


def _as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, argparse.Namespace):
        return vars(value)
    if isinstance(value, Mapping):
        return dict(value)
    return {}


def _check_settings(settings: Mapping[str, Any], where: str) -> None:
    for key, value in REQUIRED.items():
        if settings.get(key, value) != value:
            raise SeedbedError(
                f"the network has {key} = {settings[key]!r}, which transformers' RoBERTa cannot follow",
                where=where,
                found=settings[key],
                hint=f"only checkpoints with {key} = {value!r} can be compared",
            )
    activation = settings.get("activation_fn", "gelu")
    if activation not in ACTIVATIONS:
        raise SeedbedError(
            f"unknown activation {activation!r}",
            where=where,
            found=activation,
            hint=f"known are {', '.join(ACTIVATIONS)}",
        )


# --- conversion ---


def normalize_state(
    state: Mapping[str, torch.Tensor], where: str
) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Weights under fairseq 0.12's names, in fp32, and the keys that were ignored.

    Older names are `decoder.` for `encoder.`, `emb_layer_norm` for `layernorm_embedding`, and one
    `in_proj_weight` (3d, d) for query, key and value.

    Raises:
        SeedbedError: an unknown key, or a weight that is no finite number.
    """
    weights: dict[str, torch.Tensor] = {}
    ignored = []
    for old, tensor in state.items():
        name = re.sub(r"^decoder\.", "encoder.", old).replace(".emb_layer_norm.", ".layernorm_embedding.")
        if any(pattern.fullmatch(name) for pattern in IGNORED):
            ignored.append(old)
            continue
        if not torch.is_tensor(tensor):
            raise SeedbedError(
                "the checkpoint holds a weight that is no tensor",
                where=f"{where}, {old}",
                found=type(tensor).__name__,
                hint="give the model.pt that fairseq-train wrote",
            )
        tensor = tensor.detach().float().clone()
        if not torch.isfinite(tensor).all():
            raise SeedbedError(
                "the checkpoint holds weights that are no finite numbers",
                where=f"{where}, {old}",
                found=f"{int((~torch.isfinite(tensor)).sum())} of {tensor.numel()}",
                hint="the file is damaged, or the pretraining diverged: take another checkpoint",
            )
        weights |= _split_projection(name, tensor)
    return weights, ignored


def _split_projection(name: str, tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    match = re.fullmatch(r"(.*\.self_attn)\.in_proj_(weight|bias)", name)
    if match is None:
        return {name: tensor}
    parts = zip(("q_proj", "k_proj", "v_proj"), tensor.chunk(3), strict=True)
    return {f"{match.group(1)}.{part}.{match.group(2)}": piece.clone() for part, piece in parts}


def huggingface_names(layers: int) -> dict[str, str]:
    """fairseq's name -> transformers' name, for all weights of a RoBERTa with its language-model head."""
    modules = {
        f"{ENCODER}.layernorm_embedding": "roberta.embeddings.LayerNorm",
        f"{HEAD}.dense": "lm_head.dense",
        f"{HEAD}.layer_norm": "lm_head.layer_norm",
    }
    parts = {
        "self_attn.q_proj": "attention.self.query",
        "self_attn.k_proj": "attention.self.key",
        "self_attn.v_proj": "attention.self.value",
        "self_attn.out_proj": "attention.output.dense",
        "self_attn_layer_norm": "attention.output.LayerNorm",
        "fc1": "intermediate.dense",
        "fc2": "output.dense",
        "final_layer_norm": "output.LayerNorm",
    }
    for layer in range(layers):
        for ours, theirs in parts.items():
            modules[f"{ENCODER}.layers.{layer}.{ours}"] = f"roberta.encoder.layer.{layer}.{theirs}"
    names = {f"{a}.{kind}": f"{b}.{kind}" for a, b in modules.items() for kind in ("weight", "bias")}
    names[f"{ENCODER}.embed_tokens.weight"] = "roberta.embeddings.word_embeddings.weight"
    names[f"{ENCODER}.embed_positions.weight"] = "roberta.embeddings.position_embeddings.weight"
    names[f"{HEAD}.weight"] = "lm_head.decoder.weight"  # tied to the embeddings
    names[f"{HEAD}.bias"] = "lm_head.bias"
    return names


def check_weights(weights: Mapping[str, torch.Tensor], settings: Mapping[str, Any], where: str) -> None:
    """Check that the weights are those of the network that the settings describe.

    Raises:
        SeedbedError: a key too many or too few, a shape that differs, or an output matrix that is not tied.
    """
    expected = _shapes(weights, settings, where)
    missing, unexpected = sorted(set(expected) - set(weights)), sorted(set(weights) - set(expected))
    if missing or unexpected:
        raise SeedbedError(
            "the weights are not those of the network that the settings describe",
            where=f"{where}, {settings['encoder_layers']} layers",
            found=f"missing: {_listed(missing)}; unexpected: {_listed(unexpected)}",
            hint="the model must be a RoBERTa of fairseq with its language-model head",
        )
    for name, shape in expected.items():
        if tuple(weights[name].shape) != shape:
            raise SeedbedError(
                "a weight has another shape than the settings say",
                where=f"{where}, {name}",
                found=f"{tuple(weights[name].shape)}, expected {shape}",
                hint="settings and weights are of different models: take another checkpoint",
            )
    if not torch.equal(weights[f"{HEAD}.weight"], weights[f"{ENCODER}.embed_tokens.weight"]):
        raise SeedbedError(
            "the language-model head's matrix differs from the embeddings",
            where=f"{where}, {HEAD}.weight",
            hint="both must be tied, as in RoBERTa; an untied head would silently be lost",
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return (", ".join(names[:5]) or "none") + more


def _shapes(
    weights: Mapping[str, torch.Tensor], settings: Mapping[str, Any], where: str
) -> dict[str, tuple[int, ...]]:
    d, f = settings["encoder_embed_dim"], settings["encoder_ffn_embed_dim"]
    if d % settings["encoder_attention_heads"]:
        raise SeedbedError(
            "the width is no multiple of the number of heads",
            where=where,
            found=f"encoder_embed_dim {d}, encoder_attention_heads {settings['encoder_attention_heads']}",
            hint="the settings are not those of the weights: take another checkpoint",
        )
    rows = {
        part: len(weights.get(f"{ENCODER}.{part}.weight", ())) for part in ("embed_tokens", "embed_positions")
    }
    special = {
        f"{ENCODER}.embed_tokens.weight": (rows["embed_tokens"], d),
        f"{ENCODER}.embed_positions.weight": (rows["embed_positions"], d),
        f"{HEAD}.weight": (rows["embed_tokens"], d),
        f"{HEAD}.bias": (rows["embed_tokens"],),
    }
    shapes = {}
    for name in huggingface_names(settings["encoder_layers"]):
        norm = "norm" in name
        columns, size = (f if ".fc2." in name else d), (f if ".fc1." in name else d)
        shapes[name] = (size,) if norm or name.endswith(".bias") else (size, columns)
    return shapes | special


def check_dictionary(rows: int, words: int, dictionary: str | Path, checkpoint: str | Path) -> None:
    """Check that the embedding has one row for each word, the special tokens and `<mask>` included.

    Raises:
        SeedbedError: it has not; the error names both counts and both files.
    """
    if rows != words:
        raise SeedbedError(
            "this dict.txt belongs to another checkpoint",
            where=f"{dictionary} and {checkpoint}",
            found=f"{words} words (lines, 4 special tokens and <mask>), but {rows} rows in the embedding",
            hint="take dict.txt from the checkpoint's own archive",
        )


# --- writing ---


def convert_checkpoint(
    manifest: str | Path, definition: Mapping[str, Any], folder: str | Path
) -> dict[str, Any]:
    """Make a model's files in `folder`: fairseq/, sentencepiece.model, huggingface/ and model.json.

    Args:
        manifest: manifest.json of the model's source, with the files beside it in files/.
        definition: the model's block of the config.
        folder: results/models/MODEL.

    Returns the content of model.json.

    Raises:
        SeedbedError: a file is missing, harmful or damaged, or the files do not belong together.
    """
    paths, folder = find_files(manifest, definition), Path(folder)
    where = str(paths["checkpoint"])
    checkpoint = load_checkpoint(paths["checkpoint"])
    settings = read_settings(checkpoint, where)
    weights, ignored = normalize_state(checkpoint["model"], where)
    check_weights(weights, settings, where)
    vocabulary = tokenization.match_vocabulary(paths["sentencepiece"], paths["dictionary"])
    described = describe(weights, settings, paths, vocabulary)
    check_dictionary(described["vocabulary"], len(vocabulary.words), paths["dictionary"], paths["checkpoint"])
    kept = [tensor for key, tensor in checkpoint["model"].items() if key not in ignored]
    described |= {"ignored_keys": ignored, "checkpoint_dtypes": _dtypes(kept)}
    write_fairseq(folder / "fairseq" / "model.pt", weights, described)
    _copy(paths["dictionary"], folder / "fairseq" / "dict.txt")
    _copy(paths["sentencepiece"], folder / "sentencepiece.model")
    write_huggingface(folder / "huggingface", weights, described)
    tokenization.write_tokenizer(
        folder / "huggingface", paths["sentencepiece"], paths["dictionary"], described["max_positions"]
    )
    write_json(folder / "model.json", described)
    log.info("converted %s: %s", where, described)
    return described


def describe(
    weights: Mapping[str, torch.Tensor],
    settings: Mapping[str, Any],
    paths: Mapping[str, Path],
    vocabulary: tokenization.Vocabulary,
) -> dict[str, Any]:
    """The content of model.json; `max_positions` counts `<s>` and `</s>`, `vocabulary` all rows."""
    return {
        "layers": settings["encoder_layers"],
        "embed_dim": settings["encoder_embed_dim"],
        "ffn_dim": settings["encoder_ffn_embed_dim"],
        "attention_heads": settings["encoder_attention_heads"],
        "vocabulary": len(weights[f"{ENCODER}.embed_tokens.weight"]),
        "max_positions": len(weights[f"{ENCODER}.embed_positions.weight"]) - POSITION_OFFSET,
        "activation": settings.get("activation_fn", "gelu"),
        "sentencepiece_type": tokenization.model_type(
            tokenization.read_sentencepiece(paths["sentencepiece"])
        ),
        "words_without_piece": len(vocabulary.foreign),
        "pieces_without_word": len(vocabulary.outside),
        "checkpoint_sha256": sha256(paths["checkpoint"]),
    }


def _dtypes(tensors: list[torch.Tensor]) -> list[str]:
    return sorted({str(tensor.dtype).removeprefix("torch.") for tensor in tensors})


def write_fairseq(path: Path, weights: Mapping[str, torch.Tensor], described: Mapping[str, Any]) -> None:
    """Write a checkpoint that fairseq 0.12.2 loads under weights_only, for instance by --restore-file.

    Its settings stand in `cfg`, as plain data. From a Namespace in `args`, fairseq would compose its whole
    configuration anew at each load, which takes seconds.
    """
    network = {
        "_name": "roberta",
        "arch": "roberta",
        "encoder_layers": described["layers"],
        "encoder_embed_dim": described["embed_dim"],
        "encoder_ffn_embed_dim": described["ffn_dim"],
        "encoder_attention_heads": described["attention_heads"],
        "activation_fn": described["activation"],
        "max_positions": described["max_positions"],
    }
    task = {"_name": "masked_lm", "data": "", "tokens_per_sample": described["max_positions"], "seed": 1}
    history = {"criterion_name": "MaskedLmLoss", "optimizer_name": "FairseqAdam", "lr_scheduler_state": {}}
    tied = {f"{HEAD}.weight": weights[f"{ENCODER}.embed_tokens.weight"]}  # one tensor, saved once
    checkpoint = {
        "args": None,
        "cfg": {"model": network, "task": task},
        "model": {**weights, **tied, f"{ENCODER}.version": torch.tensor([3.0])},
        # fairseq reads these even where it is told to reset them
        "optimizer_history": [{**history, "num_updates": 0}],
        "extra_state": {"epoch": 0, "val_loss": None, "train_iterator": {"epoch": 1}},
        "last_optimizer_state": None,
    }
    with atomic_open(path, "wb") as stream:
        torch.save(checkpoint, stream)


def write_huggingface(
    folder: Path, weights: Mapping[str, torch.Tensor], described: Mapping[str, Any]
) -> None:
    """Write config.json and model.safetensors of a RobertaForMaskedLM, whose head is tied to the embeddings.

    transformers itself is not needed for this, and takes seconds to import; the rule check_parity loads the
    folder through it.
    """
    names = huggingface_names(described["layers"])
    state = {names[name]: tensor.contiguous() for name, tensor in weights.items() if name != f"{HEAD}.weight"}
    # fairseq has no token types; transformers adds one to every position
    state["roberta.embeddings.token_type_embeddings.weight"] = torch.zeros(1, described["embed_dim"])
    with atomic_open(folder / "model.safetensors", "wb") as stream:
        stream.write(safetensors.torch.save(state, metadata={"format": "pt"}))
    write_json(folder / "config.json", _huggingface_config(described))


def _huggingface_config(described: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "architectures": ["RobertaForMaskedLM"],
        "model_type": "roberta",
        "dtype": "float32",
        "vocab_size": described["vocabulary"],
        "hidden_size": described["embed_dim"],
        "num_hidden_layers": described["layers"],
        "num_attention_heads": described["attention_heads"],
        "intermediate_size": described["ffn_dim"],
        "hidden_act": ACTIVATIONS[described["activation"]],
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": described["max_positions"] + POSITION_OFFSET,
        "type_vocab_size": 1,
        "layer_norm_eps": LAYER_NORM_EPSILON,
        "initializer_range": 0.02,
        "bos_token_id": naming.BOS,
        "pad_token_id": naming.PAD,
        "eos_token_id": naming.EOS,
        "tie_word_embeddings": True,
    }


def _copy(source: Path, target: Path) -> None:
    with open(source, "rb") as original, atomic_open(target, "wb") as stream:
        shutil.copyfileobj(original, stream)
