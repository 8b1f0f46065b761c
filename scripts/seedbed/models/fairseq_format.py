"""Read and write RoBERTa in fairseq's format: names, settings and layout of a checkpoint.

Each key of a checkpoint is converted, or listed as ignored, or causes an error.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from seedbed.core.errors import SeedbedError
from seedbed.core.files import atomic_open
from seedbed.core.naming import ENCODER
from seedbed.models.roberta import ACTIVATIONS, EMBEDDINGS, HEAD_MATRIX, Network, dtypes, finite_fp32

# keys of a checkpoint that are not needed
IGNORED = (
    re.compile(r"encoder\.sentence_encoder\.version"),  # marks the layout of old checkpoints; written anew
    re.compile(r"encoder\.sentence_encoder\.embed_positions\._float_tensor"),  # a buffer without content
    re.compile(r"classification_heads\..*"),  # of an earlier fine-tuning; each run makes a new head
)
# settings of fairseq that change the network, with the only values that transformers' RoBERTa supports
REQUIRED = {
    "encoder_normalize_before": False,
    "layernorm_embedding": True,
    "encoder_learned_pos": True,
    "no_token_positional_embeddings": False,
    "adaptive_input": False,
    "untie_weights_roberta": False,
    "encoder_layers_to_keep": None,
}


def read_network(weights: Mapping[str, torch.Tensor], content: Mapping[str, Any], where: str) -> Network:
    """The network of a checkpoint.

    Args:
        weights: the checkpoint's weights, under names of any version of fairseq.
        content: `args` and `cfg` of the checkpoint as plain data.
        where: the checkpoint's path, for errors.

    Raises:
        SeedbedError: settings are missing, transformers' RoBERTa does not support them, or a weight is not
            finite.
    """
    settings = read_settings(content, where)
    normal, ignored = normalize_state(weights, where)
    return Network(
        weights=normal,
        layers=settings["encoder_layers"],
        embed_dim=settings["encoder_embed_dim"],
        ffn_dim=settings["encoder_ffn_embed_dim"],
        attention_heads=settings["encoder_attention_heads"],
        activation=settings.get("activation_fn", "gelu"),
        notes={
            "ignored_keys": ignored,
            "checkpoint_dtypes": dtypes({key: t for key, t in weights.items() if key not in ignored}),
        },
    )


def read_settings(content: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The model's settings, from `args` (fairseq < 0.10) or `cfg.model`.

    Raises:
        SeedbedError: settings are missing, or transformers' RoBERTa does not support them.
    """
    settings = _as_dict(content.get("args"))
    if not settings:
        config = _as_dict(content.get("cfg"))
        settings = {**_as_dict(config.get("task")), **_as_dict(config.get("model"))}
    needed = ["encoder_layers", "encoder_embed_dim", "encoder_ffn_embed_dim", "encoder_attention_heads"]
    missing = [key for key in needed if not _is_count(settings.get(key))]
    if missing:
        raise SeedbedError(
            "the checkpoint does not describe its network",
            where=f"{where}, keys args and cfg",
            found=f"no {', '.join(missing)}; only {', '.join(sorted(settings)[:20]) or 'an empty block'}",
            hint="the model must be a RoBERTa of fairseq, saved with its settings",
        )
    _check_settings(settings, where)
    return settings


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _check_settings(settings: Mapping[str, Any], where: str) -> None:
    for key, value in REQUIRED.items():
        if settings.get(key, value) != value:
            raise SeedbedError(
                f"the network has {key} = {settings[key]!r}, which transformers' RoBERTa does not support",
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


def normalize_state(
    state: Mapping[str, torch.Tensor], where: str
) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Weights under fairseq 0.12's names, in fp32, and the ignored keys.

    Older versions have `decoder.` for `encoder.`, `emb_layer_norm` for `layernorm_embedding`, and one
    `in_proj_weight` (3d, d) for query, key and value.

    Raises:
        SeedbedError: a weight is not finite.
    """
    weights: dict[str, torch.Tensor] = {}
    ignored = []
    for old, tensor in state.items():
        name = re.sub(r"^decoder\.", "encoder.", old).replace(".emb_layer_norm.", ".layernorm_embedding.")
        if any(pattern.fullmatch(name) for pattern in IGNORED):
            ignored.append(old)
        else:
            weights |= _split_projection(name, finite_fp32(old, tensor, where))
    return weights, ignored


def _split_projection(name: str, tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    match = re.fullmatch(r"(.*\.self_attn)\.in_proj_(weight|bias)", name)
    if match is None or len(tensor) % 3:
        return {name: tensor}
    parts = zip(("q_proj", "k_proj", "v_proj"), tensor.chunk(3), strict=True)
    return {f"{match.group(1)}.{part}.{match.group(2)}": piece.clone() for part, piece in parts}


def write_checkpoint(path: Path, network: Network) -> None:
    """Write a checkpoint that fairseq 0.12.2 loads with weights_only, for instance by --restore-file.

    Its settings are plain data in `cfg`. With a Namespace in `args`, fairseq would compose its whole
    configuration at each load, which takes seconds.
    """
    positions = network.max_positions
    settings = {
        "_name": "roberta",
        "arch": "roberta",
        "encoder_layers": network.layers,
        "encoder_embed_dim": network.embed_dim,
        "encoder_ffn_embed_dim": network.ffn_dim,
        "encoder_attention_heads": network.attention_heads,
        "activation_fn": network.activation,
        "max_positions": positions,
    }
    task = {"_name": "masked_lm", "data": "", "tokens_per_sample": positions, "seed": 1}
    history = {"criterion_name": "MaskedLmLoss", "optimizer_name": "FairseqAdam", "lr_scheduler_state": {}}
    tied = {HEAD_MATRIX: network.weights[EMBEDDINGS]}  # one tensor, saved once
    checkpoint = {
        "args": None,
        "cfg": {"model": settings, "task": task},
        "model": {**network.weights, **tied, f"{ENCODER}.version": torch.tensor([3.0])},
        # fairseq reads these even if it resets them
        "optimizer_history": [{**history, "num_updates": 0}],
        "extra_state": {"epoch": 0, "val_loss": None, "train_iterator": {"epoch": 1}},
        "last_optimizer_state": None,
    }
    with atomic_open(path, "wb") as stream:
        torch.save(checkpoint, stream)
