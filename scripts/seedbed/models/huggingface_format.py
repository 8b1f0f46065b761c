"""RoBERTa in Transformers' format: reads RobertaForMaskedLM, XLM-R and CamemBERT, writes RobertaForMaskedLM.

The embedding's rows are permuted into fairseq's numbering of tokens: `<s>` 0, `<pad>` 1, `</s>` 2, `<unk>` 3,
the other rows in their order, `<mask>` last.
"""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from seedbed.core import naming
from seedbed.core.errors import SeedbedError
from seedbed.core.files import atomic_open, parse_json, write_json
from seedbed.core.naming import HEAD
from seedbed.data.readers.files import SourceFile, decoded
from seedbed.models.dictionaries import MASK, SPECIALS
from seedbed.models.intake import ENCODERS, SUPPORTED
from seedbed.models.roberta import (
    ACTIVATIONS,
    EMBEDDINGS,
    HEAD_BIAS,
    HEAD_MATRIX,
    LAYER_NORM_EPSILON,
    POSITION_OFFSET,
    POSITIONS,
    Network,
    dtypes,
    finite_fp32,
)
from seedbed.models.sentencepiece_models import read_sentencepiece

log = logging.getLogger(__name__)

DEEPEST = 40  # nesting of a JSON file; models' files have ten levels
# transformers' activation -> fairseq's
FAIRSEQ_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "relu": "relu",
    "gelu_new": "gelu_accurate",
    "gelu_pytorch_tanh": "gelu_accurate",
}
COUNTS = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads")
TOKEN_TYPES = "embeddings.token_type_embeddings.weight"
# weights of a saved model that are not needed
IGNORED = (
    re.compile(r"(roberta\.)?pooler\..*"),  # of a sentence objective; each run makes a new head
    re.compile(r"(roberta\.)?embeddings\.(position_ids|token_type_ids)"),  # buffers of old versions
    re.compile(r"classifier\..*"),  # of an earlier fine-tuning
    re.compile(r"lm_head\.decoder\.bias"),  # lm_head.bias under its second name
)


# --- reading ---


def read_network(
    weights: Mapping[str, torch.Tensor], files: Mapping[str, Path], sentencepiece: str | Path
) -> Network:
    """The network of a saved model, with rows in fairseq's numbering.

    Args:
        weights: the model's weights, under transformers' names.
        files: paths `checkpoint` (for errors) and `config`, and of `tokenizer.json`, `tokenizer_config.json`
            and `added_tokens.json` if they exist.
        sentencepiece: the model's SentencePiece file.

    Raises:
        SeedbedError: fairseq's RoBERTa does not support the configuration, or the tokenizer does not fit the
            embedding.
    """
    where = str(files["checkpoint"])
    config = read_config(files["config"])
    normal, notes = normalize_state(weights, config["num_hidden_layers"], where)
    network = Network(
        weights=normal,
        layers=config["num_hidden_layers"],
        embed_dim=config["hidden_size"],
        ffn_dim=config["intermediate_size"],
        attention_heads=config["num_attention_heads"],
        activation=FAIRSEQ_ACTIVATIONS[config.get("hidden_act", "gelu")],
        notes={**notes, "checkpoint_dtypes": dtypes(weights), "model_type": config["model_type"]},
    )
    if EMBEDDINGS in normal:  # else check_weights reports it as missing
        tokens = read_tokens(config, files, sentencepiece, network.rows)
        _renumber(network, tokens, files["config"], config)
    return network


def read_config(path: str | Path) -> dict[str, Any]:
    """Read config.json of a model that fairseq's RoBERTa supports.

    Raises:
        SeedbedError: fairseq does not support a value; the error names its key.
    """
    config = read_mapping(path)
    kind = config.get("model_type")
    if kind not in ENCODERS:
        raise SeedbedError(
            f"models of type {kind!r} are not supported",
            where=f"{path}, model_type",
            found=kind,
            hint=f"the type must be one of {', '.join(ENCODERS)}. {SUPPORTED}",
        )
    for key in COUNTS:
        value = config.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise _unsupported(path, key, value, "it must be a positive integer")
    allowed = {
        "hidden_act": (tuple(FAIRSEQ_ACTIVATIONS), "gelu"),
        "position_embedding_type": (("absolute",), "absolute"),
        "pad_token_id": ((naming.PAD,), naming.PAD),
        "is_decoder": ((False,), False),
        "add_cross_attention": ((False,), False),
    }
    for key, (values, default) in allowed.items():
        if config.get(key, default) not in values:
            hint = f"fairseq's RoBERTa only has {' or '.join(map(repr, values))}"
            raise _unsupported(path, key, config[key], hint)
    if config.get("layer_norm_eps", 1e-12) != LAYER_NORM_EPSILON:
        raise _unsupported(
            path,
            "layer_norm_eps",
            config.get("layer_norm_eps", "nothing, so 1e-12"),
            f"fairseq always uses {LAYER_NORM_EPSILON}, so the networks would differ; take a model with that "
            "value, such as camembert-base or XLM-R",
        )
    return config


def read_mapping(path: str | Path) -> dict[str, Any]:
    """Read a JSON object from a file; a byte order mark is skipped.

    Raises:
        SeedbedError: the file is not UTF-8, or its content is not a JSON object.
    """
    try:
        content = parse_json(decoded(SourceFile(Path(path))))
        _check_writable(content)
    except ValueError as error:
        content = error
    if not isinstance(content, dict):
        raise SeedbedError(
            "this file is not a JSON object",
            where=str(path),
            found=str(content)[:200],
            hint="take the file that save_pretrained wrote",
        )
    return content


def _check_writable(content: Any) -> None:
    """Refuse JSON that can be read but not written.

    Raises:
        ValueError: `content` has half a surrogate pair, or is nested too deeply.
    """
    level = [content]
    for _ in range(DEEPEST):
        level = [item for value in level for item in _items(value)]
    if level:
        raise ValueError(f"it is nested more than {DEEPEST} levels deep")
    json.dumps(content, ensure_ascii=False).encode()


def _items(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _unsupported(path: str | Path, key: str, value: Any, hint: str) -> SeedbedError:
    return SeedbedError(
        f"the model has {key} = {value!r}, which fairseq's RoBERTa does not support",
        where=f"{path}, {key}",
        found=value,
        hint=hint,
    )


def normalize_state(
    state: Mapping[str, torch.Tensor], layers: int, where: str
) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Weights under fairseq's names, in fp32, with rows in their order, and notes for model.json.

    Transformers adds row 0 of the token types to every token, so that row is added to the positions. A tied
    output matrix may be missing. A missing language-model head becomes an identity matrix with biases 0.

    Raises:
        SeedbedError: an unknown key, or a weight that is not a finite number.
    """
    # check_weights refuses more layers than weights later; here, so many names would fill the memory
    known = {theirs: ours for ours, theirs in naming.huggingface_names(min(layers, len(state))).items()}
    if "lm_head.bias" not in state and "lm_head.decoder.bias" in state:
        state = {"lm_head.bias": state["lm_head.decoder.bias"], **state}
    weights, ignored, types = {}, [], None
    for old, tensor in state.items():
        if any(pattern.fullmatch(old) for pattern in IGNORED):
            ignored.append(old)
            continue
        name = re.sub(r"\.LayerNorm\.gamma\Z", ".LayerNorm.weight", old)
        name = re.sub(r"\.LayerNorm\.beta\Z", ".LayerNorm.bias", name)
        name = name if name.startswith(("roberta.", "lm_head.")) else f"roberta.{name}"
        if name == f"roberta.{TOKEN_TYPES}":
            types = finite_fp32(old, tensor, where)
        else:  # check_weights reports an unknown name
            weights[known.get(name, old)] = finite_fp32(old, tensor, where)
    notes = {"ignored_keys": ignored, "token_types": _fold(weights, types, where)}
    if HEAD_MATRIX not in weights and EMBEDDINGS in weights:
        weights[HEAD_MATRIX] = weights[EMBEDDINGS]
    if not any(name.startswith(HEAD) and name != HEAD_MATRIX for name in weights) and EMBEDDINGS in weights:
        _fill_head(weights)
        notes["lm_head"] = "filled"
        log.warning(
            "%s has no language-model head: an identity matrix replaces it, which fine-tuning does not use",
            where,
        )
    return weights, notes


def _fold(weights: dict[str, torch.Tensor], types: torch.Tensor | None, where: str) -> str:
    if types is None or POSITIONS not in weights or not types[:1].any():
        return "zero"
    if types.shape[1:] != weights[POSITIONS].shape[1:]:
        raise SeedbedError(
            "a weight's shape does not fit the others",
            where=f"{where}, {TOKEN_TYPES}",
            found=tuple(types.shape),
            hint="the file is damaged, or a mixture of models: take another checkpoint",
        )
    weights[POSITIONS][POSITION_OFFSET:] += types[0]  # the rows before are for padding
    log.info("fairseq has no token types: their row 0, which is not zero, was added to the positions")
    return "folded"


def _fill_head(weights: dict[str, torch.Tensor]) -> None:
    rows, d = weights[EMBEDDINGS].shape
    weights |= {f"{HEAD}.dense.weight": torch.eye(d), f"{HEAD}.dense.bias": torch.zeros(d)}
    weights |= {f"{HEAD}.layer_norm.weight": torch.ones(d), f"{HEAD}.layer_norm.bias": torch.zeros(d)}
    weights[HEAD_BIAS] = torch.zeros(rows)


# --- the numbering of tokens ---


def read_tokens(
    config: Mapping[str, Any], files: Mapping[str, Path], sentencepiece: str | Path, rows: int
) -> list[str]:
    """The token of each row of the embedding, in transformers' numbering.

    tokenizer.json lists them. Without it, the tokenizer's class defines them: piece i is row i + 1 in XLM-R
    and row i + 4 in CamemBERT, with `<mask>` after the last piece.

    Raises:
        SeedbedError: the tokenizer does not fit the embedding.
    """
    if "tokenizer.json" in files:
        found = _listed_tokens(files["tokenizer.json"])
    else:
        found = _conventional_tokens(config, files, sentencepiece, rows)
    beyond = [token for number, token in found.items() if number >= rows]
    if beyond:
        log.warning("%d tokens have no row in the embedding and become <unk>: %s", len(beyond), beyond[:10])
    used = set(found.values())
    fillers = (f"madeupword{n:04d}" for n in range(rows + len(used)))
    free = (word for word in fillers if word not in used)
    return [found[number] if number in found else next(free) for number in range(rows)]


def _listed_tokens(path: Path) -> dict[int, str]:
    content = read_mapping(path)
    try:
        vocabulary = content["model"]["vocab"]
        if isinstance(vocabulary, list):  # unigram: [piece, score]
            found = {number: piece for number, (piece, _) in enumerate(vocabulary)}
        else:
            found = {number: piece for piece, number in vocabulary.items()}
        return found | {int(token["id"]): token["content"] for token in content.get("added_tokens") or []}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SeedbedError(
            "this file does not list a vocabulary as tokenizer.json does",
            where=str(path),
            found=f"{type(error).__name__}: {error}",
            hint="take the file that save_pretrained wrote, or leave it out",
        ) from None


def _conventional_tokens(
    config: Mapping[str, Any], files: Mapping[str, Path], sentencepiece: str | Path, rows: int
) -> dict[int, str]:
    pieces = [piece.piece for piece in read_sentencepiece(sentencepiece).pieces]
    named = _tokenizer_class(files)
    camembert = "Camembert" in named if named else config["model_type"] == "camembert"
    if camembert:
        first = ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"]
        tokens = [*first, *pieces[1:], MASK]
    else:
        tokens = [*SPECIALS, *pieces[3:], MASK]
    if len(tokens) != rows:
        raise SeedbedError(
            "the SentencePiece model does not fit the embedding",
            where=f"{sentencepiece} and {files['checkpoint']}",
            found=f"{rows} rows; {len(pieces)} pieces make {len(tokens)} tokens by the convention of "
            f"{'CamemBERT' if camembert else 'XLM-R'}",
            hint="take both from one model; if you did, add its tokenizer.json, which lists the ids",
        )
    added = read_mapping(files["added_tokens.json"]) if "added_tokens.json" in files else {}
    return dict(enumerate(tokens)) | {number: token for token, number in added.items()}


def _tokenizer_class(files: Mapping[str, Path]) -> str:
    if "tokenizer_config.json" not in files:
        return ""
    return str(read_mapping(files["tokenizer_config.json"]).get("tokenizer_class") or "")


def _renumber(network: Network, tokens: Sequence[str], path: Path, config: Mapping[str, Any]) -> None:
    """Permute a network's rows into fairseq's numbering, and set its words."""
    index: dict[str, int] = {}
    for number, token in enumerate(tokens):
        index.setdefault(token, number)
    missing = [token for token in SPECIALS if token not in index]
    if missing or index["<pad>"] != naming.PAD:
        raise SeedbedError(
            "the tokenizer lacks special tokens of RoBERTa",
            where=str(path.parent),
            found=f"missing: {', '.join(missing) or 'none'}; <pad> is {index.get('<pad>')}",
            hint=f"it must have {', '.join(SPECIALS)}, with <pad> at {naming.PAD}",
        )
    for key, token in (("bos_token_id", "<s>"), ("eos_token_id", "</s>")):
        if config.get(key) not in (None, index[token]):
            log.warning(
                "%s says %s = %s; the tokenizer's id of %s, %d, is used instead",
                *(path, key, config[key], token, index[token]),
            )
    order = canonical_order(tokens)
    network.words = [tokens[number] for number in order]
    weights = network.weights
    renumbered = [weights.get(name) for name in (EMBEDDINGS, HEAD_MATRIX, HEAD_BIAS)]
    if all(tensor is not None and len(tensor) == len(order) for tensor in renumbered):
        weights |= {name: weights[name][order] for name in (EMBEDDINGS, HEAD_MATRIX, HEAD_BIAS)}
    network.notes["renumbered_tokens"] = sum(number != place for place, number in enumerate(order))
    log.info("renumbered %d of %d tokens", network.notes["renumbered_tokens"], len(order))


def canonical_order(tokens: Sequence[str]) -> list[int]:
    """The row in transformers' numbering for each row in fairseq's.

    Special tokens come first, `<mask>` (if any) last; the others keep their order.
    """
    first = [tokens.index(token) for token in SPECIALS]
    last = [tokens.index(MASK)] if MASK in tokens else []
    taken = {*first, *last}
    return [*first, *(number for number in range(len(tokens)) if number not in taken), *last]


# --- writing ---


def write_model(folder: Path, network: Network) -> None:
    """Write config.json and model.safetensors of a RobertaForMaskedLM with a tied head.

    It avoids importing transformers, which takes seconds; the rule check_parity loads the result with it.
    """
    names = naming.huggingface_names(network.layers)
    state = {
        names[name]: tensor.contiguous() for name, tensor in network.weights.items() if name != HEAD_MATRIX
    }
    # fairseq has no token types; transformers adds type 0 to every position
    state[f"roberta.{TOKEN_TYPES}"] = torch.zeros(1, network.embed_dim)
    with atomic_open(folder / "model.safetensors", "wb") as stream:
        stream.write(safetensors.torch.save(state, metadata={"format": "pt"}))
    write_json(folder / "config.json", _config(network))


def _config(network: Network) -> dict[str, Any]:
    return {
        "architectures": ["RobertaForMaskedLM"],
        "model_type": "roberta",
        "dtype": "float32",
        "vocab_size": network.rows,
        "hidden_size": network.embed_dim,
        "num_hidden_layers": network.layers,
        "num_attention_heads": network.attention_heads,
        "intermediate_size": network.ffn_dim,
        "hidden_act": ACTIVATIONS[network.activation],
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": network.max_positions + POSITION_OFFSET,
        "type_vocab_size": 1,
        "layer_norm_eps": LAYER_NORM_EPSILON,
        "initializer_range": 0.02,
        "bos_token_id": naming.BOS,
        "pad_token_id": naming.PAD,
        "eos_token_id": naming.EOS,
        "tie_word_embeddings": True,
    }
