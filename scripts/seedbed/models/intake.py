"""Find and verify a model's files, and have a separate process convert them.

This module loads neither a pickle nor PyTorch. A RoBERTa is converted for both frameworks, in fairseq's
numbering of tokens; models of the formats auto and causal are converted for Transformers.
"""

import difflib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core import spelling
from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.core.model_formats import GPT2_BPE, MODEL_FORMATS
from seedbed.core.tasks import TASKS
from seedbed.core.words import join
from seedbed.models import gpt2_bpe, isolation
from seedbed.sources.archives import AS_ARCHIVE, holds_archive
from seedbed.sources.manifest import verify

log = logging.getLogger(__name__)

ENCODERS = ("roberta", "xlm-roberta", "camembert")  # values of model_type that the format huggingface reads
SUPPORTED = (
    "format: huggingface reads RoBERTa's architecture with a SentencePiece model (CamemBERT, XLM-R), such "
    "as hf://almanach/camembert-base; format: fairseq the same from fairseq, and roberta.base with GPT-2's "
    "encoder.json and vocab.bpe; format: auto, with Transformers alone, any encoder that it knows (BERT, "
    "DeBERTa, ModernBERT); format: causal, with task: generation, models that predict the next token "
    "(BLOOM, Llama, GPT-2), from config.json, model.safetensors and tokenizer.json. Encoder-decoders such "
    "as T5 are not supported"
)
INDEX = ".index.json"  # of weights in several files (shards)
SHARDED = ("causal", "auto")  # formats that read them
# where the format auto looks for weights if the config names none, safetensors first
WEIGHTS = ("model.safetensors", "model.safetensors" + INDEX, "pytorch_model.bin", "pytorch_model.bin" + INDEX)
# of config.json's architectures, and their format
CAUSAL_CLASSES = ("ForCausalLM", "GPT2LMHeadModel")
ENCODER_CLASSES = ("ForMaskedLM", "ForPreTraining", "Classification", "ForQuestionAnswering")
TRANSFORMERS_BPE = ("vocab.json", "merges.txt")  # GPT-2's byte-level BPE as Transformers names its files


def convert_checkpoint(
    manifest: str | Path, definition: Mapping[str, Any], folder: str | Path
) -> dict[str, Any]:
    """Make a model's files in `folder`: huggingface/ and model.json; for an encoder also fairseq/.

    Args:
        manifest: manifest.json of the model's source, with the files beside it in files/.
        definition: the model's block of the config.
        folder: results/models/MODEL.

    Returns the content of model.json.

    Raises:
        SeedbedError: a file is missing, harmful or damaged, or the files do not belong together.
    """
    request = prepare(manifest, definition)
    return isolation.run(
        MODEL_FORMATS[request["format"]].converter, {**request, "folder": str(Path(folder).resolve())}
    )


def prepare(manifest: str | Path, definition: Mapping[str, Any]) -> dict[str, Any]:
    """Find and verify a model's files; returns the request to its converter, without the folder.

    Raises:
        SeedbedError: a file is missing or has changed since it was fetched, or the format does not read this
            kind of model.
    """
    listed = read_json(manifest)["files"]
    files = find_files(manifest, definition)
    root = Path(manifest).parent / "files"
    digests = {key: listed[path.relative_to(root).as_posix()]["sha256"] for key, path in files.items()}
    for key, path in files.items():
        # the reader of a pickle verifies its bytes itself
        if key != "checkpoint" or path.suffix in (".safetensors", ".json"):
            verify(path, digests[key])
    request = {
        "format": definition.get("format", "fairseq"),
        "files": {key: str(path.resolve()) for key, path in files.items()},
        "sha256": digests["checkpoint"],
    }
    if files["checkpoint"].name.endswith(INDEX):
        request["shards"] = _find_shards(files["checkpoint"], root, listed)
    return request


def _find_shards(index: Path, root: Path, listed: Mapping[str, Any]) -> dict[str, str]:
    """SHA-256 of each file in an index of weights, by path; the files are beside the index."""
    try:
        names = sorted(set(read_json(index)["weight_map"].values()))
        paths = {(index.parent / name).relative_to(root).as_posix() for name in names}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SeedbedError(
            "this is not an index of sharded weights",
            where=str(index),
            found=f"{type(error).__name__}: {error}"[:200],
            hint="take the file that save_pretrained wrote",
        ) from None
    missing = sorted(paths - set(listed))
    if missing or not paths:
        raise SeedbedError(
            "the source lacks files of the model's weights",
            where=str(index),
            found=", ".join(missing[:5]) or "an index without files",
            hint="fetch them all; the source's include must match them",
        )
    return {str((root / path).resolve()): listed[path]["sha256"] for path in sorted(paths)}


def find_files(manifest: str | Path, definition: Mapping[str, Any]) -> dict[str, Path]:
    """Paths of a model's files inside its downloaded source, by the keys of its definition.

    A model in Hugging Face format also has the tokenizer's existing files, by name. The checkpoint of a
    sharded causal model is its index.

    Raises:
        SeedbedError: a file is missing (the error lists the source's files and the nearest name), or the
            model is of another kind than its format says, or of an unsupported kind.
    """
    root = Path(manifest).parent / "files"
    names = find_names(sorted(read_json(manifest)["files"]), definition, root, str(manifest))
    return {key: root / name for key, name in names.items()}


def find_names(
    held: Sequence[str], definition: Mapping[str, Any], root: Path | None, where: str
) -> dict[str, str]:
    """The same as `find_files`, with names of files instead of paths.

    Args:
        held: the names of the source's files, sorted.
        definition: the model's block of the config.
        root: the folder of the files; None if they are in an archive and cannot be read.
        where: the place of the files, for messages.

    Raises:
        SeedbedError: as `find_files`.
    """
    kind = definition.get("format", "fairseq")
    if root is not None:
        _refuse_other_kinds(root, held, definition)
    subwords = _find_subwords(root, held, definition)
    names = {}
    for key, name in {**{key: definition[key] for key in MODEL_FORMATS[kind].files}, **subwords}.items():
        if key == "checkpoint":
            name = _find_weights(name, held, kind)
        there = spelling.find(name, held)
        if there is None:
            raise SeedbedError(
                f"the source {definition['source']!r} has no file {name!r}",
                where=f"config, {key} of the model whose source is {definition['source']!r}; {where}",
                found=_listed(held),
                hint=_remedy(name, held, key, definition, root),
            )
        names[key] = there
    folder = Path(definition.get("config") or "").parent
    beside = {name: (folder / name).as_posix() for name in MODEL_FORMATS[kind].beside}
    return names | {name: path for name, path in beside.items() if path in held}


def _find_weights(name: str, held: Sequence[str], kind: str) -> str:
    """The file of weights, or the index of its shards; for auto's default, the first that there is."""
    others = [name + INDEX] if kind in SHARDED else []
    if kind == "auto" and Path(name).name == WEIGHTS[0]:
        others = [(Path(name).parent / other).as_posix() for other in WEIGHTS[1:]]
    return next((each for each in (name, *others) if each in held), name)


def _remedy(
    name: str, held: Sequence[str], key: str, definition: Mapping[str, Any], root: Path | None
) -> str:
    kind = definition.get("format", "fairseq")
    if root is not None and len(held) == 1 and holds_archive(root / held[0]):
        remedy = AS_ARCHIVE.format(definition["source"])
        return f"{held[0]} is an archive without the suffix of one: {remedy}"
    if key == "tokenizer" and not any(path.endswith(Path(name).name) for path in held):
        return (
            "only fast tokenizers can be read: load the tokenizer with AutoTokenizer and save it with "
            "save_pretrained, which writes tokenizer.json"
        )
    same = [path for path in held if Path(path).name == Path(name).name]
    pieces = [path for path in held if path.endswith((".model", ".spm"))]
    if key == "sentencepiece" and not same and not pieces:
        return (
            "fetch this file, too: look for it beside the weights, and let the source's include match it. A "
            f"model without one is not supported. {SUPPORTED}"
        )
    close = same or pieces if key == "sentencepiece" else same
    close = close or difflib.get_close_matches(name, held, n=1, cutoff=0.4)
    weights = [path for path in held if path.endswith((".safetensors", ".bin", ".pt", INDEX))]
    if key == "checkpoint" and not same and weights:
        close = difflib.get_close_matches(name, weights, n=1, cutoff=0)
    if any(path.endswith(INDEX) for path in held) and key == "checkpoint" and kind not in SHARDED:
        return "sharded weights are not supported: save the model in one file"
    asked = f"did you mean {close[0]!r}? " if close else ""
    return f"{asked}set {key} to the file's path inside the source"


# --- the kind of a model ----------------------------------------------------------------------------------


def _refuse_other_kinds(root: Path, held: Sequence[str], definition: Mapping[str, Any]) -> None:
    """Refuse a model that is not of its definition's format, or not supported."""
    kind = definition.get("format", "fairseq")
    config = _find_config(held, definition)
    if config is None and kind != "fairseq" and _is_fairseq(held):
        raise _other_kind(definition, root, "this is a checkpoint of fairseq", _listed(held), "fairseq")
    if config is None or (kind == "fairseq" and definition["checkpoint"] in held):
        return
    content = _read_config(root / config)
    type_, classes = content.get("model_type"), content.get("architectures") or []
    if not isinstance(type_, str) or not isinstance(classes, list):
        return  # the reader of the whole file explains the error
    if kind == "auto":
        refuse_code(content, root / config)
    what = f"this is a model of the type {type_!r} in Transformers' format"
    found = f"{root / config} says model_type {type_!r}, architectures {classes!r}"
    if type_ in ENCODERS:
        fits: tuple[str, ...] = ("huggingface", "auto")
    elif any(str(name).endswith(CAUSAL_CLASSES) for name in classes):
        fits = ("causal",)
    elif kind != "causal" and any(str(name).endswith(ENCODER_CLASSES) for name in classes):
        fits = ("auto",)
    else:
        fits = ()
    # the converters of causal and auto ask Transformers
    if not fits and kind not in ("causal", "auto"):
        raise _other_kind(definition, root, f"{what}, which is not supported", found, None)
    if fits and kind not in fits:
        raise _other_kind(definition, root, f"{what}, and its format is not {kind}", found, fits[0])


def refuse_code(content: Mapping[str, Any], path: Path) -> None:
    """Refuse a config.json or tokenizer_config.json that names code of its authors.

    Raises:
        SeedbedError: it does.
    """
    if content.get("auto_map"):
        raise SeedbedError(
            "the model needs code of its authors, which is never run",
            where=f"{path}, auto_map",
            found=str(content["auto_map"])[:200],
            hint="take a model that Transformers has itself; if it has this type, remove auto_map from a "
            "copy of the file",
        )


def _other_kind(
    definition: Mapping[str, Any], root: Path, what: str, found: str, fits: str | None
) -> SeedbedError:
    tasks = join([task.name for task in TASKS.values() if fits in task.formats])
    remedy = f"set format: {fits} for the model, which serves {tasks}. " if fits else ""
    return SeedbedError(
        what,
        where=f"config, format of the model whose source is {definition['source']!r}; {root}",
        found=found,
        hint=f"{remedy}{SUPPORTED}",
    )


def _find_config(held: Sequence[str], definition: Mapping[str, Any]) -> str | None:
    """The model's config.json: from its definition, else beside its weights, else the only one."""
    beside = (Path(definition["checkpoint"]).parent / "config.json").as_posix()
    named = [definition.get("config"), beside]
    there = [name for name in held if Path(name).name == "config.json"]
    return next((name for name in named if name in held), there[0] if len(there) == 1 else None)


def _read_config(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path)
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _listed(held: Sequence[str]) -> str:
    return ", ".join(held[:20]) + (f" and {len(held) - 20} more" if len(held) > 20 else "")


def _is_fairseq(held: Sequence[str]) -> bool:
    """Whether all weights are in files as fairseq writes them."""
    theirs = any(path.endswith((".safetensors", ".bin", INDEX)) for path in held)
    return not theirs and any(path.endswith(".pt") for path in held)


# --- what splits texts into pieces ------------------------------------------------------------------------


def _find_subwords(root: Path | None, held: Sequence[str], definition: Mapping[str, Any]) -> dict[str, str]:
    """The names of the files that split a model's texts, by the keys of the config.

    Where the SentencePiece model is missing, GPT-2's BPE beside the weights is taken.
    """
    kinds = MODEL_FORMATS[definition.get("format", "fairseq")].subwords
    named = next(
        ({key: definition[key] for key in kind} for kind in kinds if set(kind) <= set(definition)), {}
    )
    if "sentencepiece" not in named:
        return named
    if named["sentencepiece"] not in held and GPT2_BPE in kinds:
        folder = Path(definition["checkpoint"]).parent
        beside = {key: (folder / name).as_posix() for key, name in GPT2_BPE.items()}
        if set(beside.values()) <= set(held):
            return beside
    if GPT2_BPE in kinds:
        _refuse_numbers(root, held, definition)
    else:
        _refuse_byte_level(root, held, definition)
    return named


def _refuse_numbers(root: Path | None, held: Sequence[str], definition: Mapping[str, Any]) -> None:
    """Refuse a dict.txt of numbers, as roberta.base has, without GPT-2's BPE."""
    dictionary = definition["dictionary"]
    if root is None or dictionary not in held or not _is_numbers(root / dictionary):
        return
    there = [name for name in held if Path(name).name in GPT2_BPE.values()]
    named = definition["sentencepiece"]
    raise SeedbedError(
        "the words of the dictionary are numbers of GPT-2's tokens, as in roberta.base, and the model lacks "
        "GPT-2's encoder.json or vocab.bpe",
        where=f"{root / dictionary}, source {definition['source']!r}",
        found=f"{named}, a SentencePiece model" if named in held else _listed(there or held),
        hint="put encoder.json and vocab.bpe beside the weights, or name their paths inside the source as "
        f"encoder and bpe; {gpt2_bpe.ORIGIN}",
    )


def _refuse_byte_level(root: Path | None, held: Sequence[str], definition: Mapping[str, Any]) -> None:
    """Refuse a model in Transformers' format with GPT-2's BPE instead of a SentencePiece model."""
    folder, named = Path(definition["checkpoint"]).parent, definition["sentencepiece"]
    if named in held:
        return
    tokenizer = (folder / "tokenizer.json").as_posix()
    if all((folder / name).as_posix() in held for name in TRANSFORMERS_BPE):
        sign = f"{' and '.join(TRANSFORMERS_BPE)}, and no file {named!r}"
    elif root is not None and tokenizer in held and _is_byte_level(root / tokenizer):
        sign = f"{tokenizer} is a byte-level BPE, and there is no file {named!r}"
    else:
        return
    raise SeedbedError(
        "GPT-2's byte-level BPE, as in roberta-base, is not supported by format: huggingface",
        where=f"{root or 'an archive'}, source {definition['source']!r}",
        found=sign,
        hint="set format: auto (Transformers alone); or take the model from fairseq (roberta.base), which "
        "both frameworks can train; or one with a SentencePiece model, such as camembert-base or XLM-R",
    )


def _is_byte_level(tokenizer: Path) -> bool:
    content = _read_config(tokenizer)
    is_bpe = isinstance(content.get("model"), dict) and content["model"].get("type") == "BPE"
    return is_bpe and "ByteLevel" in str(content.get("decoder"))


def _is_numbers(dictionary: Path) -> bool:
    with open(dictionary, "rb") as stream:
        words = [line.split()[0] for line in stream.readlines(1 << 16) if line.strip()]
    return len(words) > 0 and sum(word.isdigit() for word in words) > 0.9 * len(words)
