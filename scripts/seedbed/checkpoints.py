"""A model's checkpoint from outside: found, verified, and converted in a process of its own.

Neither a pickle nor PyTorch is loaded here. The converted files are those of both frameworks, in fairseq's
numbering of tokens, whatever the checkpoint's format.
"""

import difflib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seedbed import isolation
from seedbed.errors import SeedbedError
from seedbed.files import read_json, sha256

log = logging.getLogger(__name__)

FILES = {
    "fairseq": ("checkpoint", "dictionary", "sentencepiece"),
    "huggingface": ("checkpoint", "config", "sentencepiece"),
}
# read where they lie beside config.json
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "added_tokens.json")
# vocabularies of GPT-2's byte-level BPE, as fairseq and Transformers keep them
GPT2_FILES = (("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt"))


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
    request = prepare(manifest, definition)
    return isolation.run("seedbed.conversion", {**request, "folder": str(Path(folder).resolve())})


def prepare(manifest: str | Path, definition: Mapping[str, Any]) -> dict[str, Any]:
    """Find and verify a model's files: what `conversion` needs to know, but the folder.

    Raises:
        SeedbedError: a file is missing, or is not the one that was fetched, or the model has GPT-2's BPE.
    """
    listed = read_json(manifest)["files"]
    files = find_files(manifest, definition)
    root = Path(manifest).parent / "files"
    digests = {key: listed[path.relative_to(root).as_posix()]["sha256"] for key, path in files.items()}
    for key, path in files.items():
        # a pickle is verified by its reader, on the bytes that it reads
        if key != "checkpoint" or path.suffix == ".safetensors":
            verify(path, digests[key])
    return {
        "format": definition.get("format", "fairseq"),
        "files": {key: str(path.resolve()) for key, path in files.items()},
        "sha256": digests["checkpoint"],
    }


def find_files(manifest: str | Path, definition: Mapping[str, Any]) -> dict[str, Path]:
    """Paths of a model's files inside its downloaded source, by the keys of its definition.

    For a model in Hugging Face format, also those of the tokenizer's files that there are, by their names.

    Raises:
        SeedbedError: one is missing; the error lists what the source holds, and the nearest name.
    """
    held = sorted(read_json(manifest)["files"])
    kind = definition.get("format", "fairseq")
    root = Path(manifest).parent / "files"
    _refuse_gpt2(root, held, definition)
    paths = {}
    for key in FILES[kind]:
        name = definition[key]
        if name not in held:
            raise SeedbedError(
                f"the source {definition['source']!r} holds no file {name!r}",
                where=f"config, {key} of the model whose source is {definition['source']!r}; {manifest}",
                found=", ".join(held[:20]) + (f" and {len(held) - 20} more" if len(held) > 20 else ""),
                hint=_nearest(name, held, key),
            )
        paths[key] = root / name
    if kind == "huggingface":
        beside = {name: (Path(definition["config"]).parent / name).as_posix() for name in TOKENIZER_FILES}
        paths |= {name: root / path for name, path in beside.items() if path in held}
    return paths


def _nearest(name: str, held: list[str], key: str) -> str:
    same = [path for path in held if Path(path).name == Path(name).name]
    close = same or difflib.get_close_matches(name, held, n=1, cutoff=0.4)
    if not close and key == "checkpoint":
        close = [path for path in held if path.endswith((".safetensors", ".bin", ".pt"))]
    if any(path.endswith(".index.json") for path in held) and key == "checkpoint":
        return "the model's weights are in several files (shards), which is not supported: save it in one"
    asked = f"did you mean {close[0]!r}? " if close else ""
    return f"{asked}set {key} to the file's path inside the source"


def _refuse_gpt2(root: Path, held: list[str], definition: Mapping[str, Any]) -> None:
    dictionary = definition.get("dictionary")
    sign = None
    if dictionary in held and _is_numbers(root / dictionary):
        sign = f"{dictionary} lists numbers, which are ids of GPT-2's vocabulary"
    elif definition["sentencepiece"] not in held:
        folder = Path(definition["checkpoint"]).parent
        for names in GPT2_FILES:
            if all((folder / name).as_posix() in held for name in names):
                sign = f"{' and '.join(names)}, and no file {definition['sentencepiece']!r}"
    if sign is not None:
        raise SeedbedError(
            "this model has GPT-2's byte-level BPE, as roberta.base has, which is not supported",
            where=f"{root}, source {definition['source']!r}",
            found=sign,
            hint="take a model with a SentencePiece model, such as camembert-base or XLM-R",
        )


def _is_numbers(dictionary: Path) -> bool:
    with open(dictionary, "rb") as stream:
        words = [line.split()[0] for line in stream.readlines(1 << 16) if line.strip()]
    return len(words) > 0 and sum(word.isdigit() for word in words) > 0.9 * len(words)


def verify(path: str | Path, digest: str) -> None:
    """Check that a file has the SHA-256 `digest`.

    Raises:
        SeedbedError: it has another.
    """
    found = sha256(path)
    if found != digest:
        raise another_file(path, digest, found)


def another_file(path: str | Path, expected: str, found: str) -> SeedbedError:
    """The error of a file that is not the one that its manifest lists."""
    return SeedbedError(
        "this file is not the one that was fetched",
        where=str(path),
        found=f"SHA-256 {found}, but manifest.json says {expected}",
        hint="remove the source's folder, so that it is fetched again",
    )
