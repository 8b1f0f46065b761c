"""Convert a checkpoint's files to a model for both frameworks, in a separate process (see isolation).

One process does everything, since importing PyTorch takes longer than the rest. A pickle is read in a fork,
which writes safetensors and JSON.
"""

import contextlib
import logging
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from seedbed.core.errors import SeedbedError
from seedbed.core.files import atomic_open, read_json, write_json, write_text
from seedbed.models import (
    fairseq_format,
    fast_tokenizers,
    huggingface_format,
    isolation,
    subwords,
    tokenizer_probe,
    unpickling,
)
from seedbed.models.dictionaries import MASK, dictionary_text, write_dictionary
from seedbed.models.prompts import load_tokenizer
from seedbed.models.roberta import Network, add_mask, check_weights, listed
from seedbed.models.subwords import Subwords, Vocabulary, match_vocabulary

log = logging.getLogger(__name__)


def work(request: Mapping[str, Any], forked: bool = True) -> dict[str, Any]:
    """Answer a request of `intake.prepare` (with `folder` added), in the separate process."""
    files = {key: Path(path) for key, path in request["files"].items()}
    return convert(request["format"], files, request["sha256"], Path(request["folder"]), forked)


def convert(
    kind: str, files: Mapping[str, Path], digest: str, folder: Path, forked: bool = False
) -> dict[str, Any]:
    """Make a model's files in `folder`: fairseq/, subwords/, huggingface/ and model.json.

    Args:
        kind: fairseq or huggingface.
        files: paths `checkpoint`, `sentencepiece` and `dictionary` (fairseq) or `config` (huggingface), and
            the tokenizer's files if they exist.
        digest: SHA-256 of `checkpoint`.
        folder: results/models/MODEL.
        forked: read a pickle in a fork of this process.

    Returns the content of model.json.

    Raises:
        SeedbedError: a file is harmful or damaged, or the files do not belong together.
    """
    with scratch(folder) as inner:
        weights, content = read_weights(files["checkpoint"], digest, inner, forked)
        where = str(files["checkpoint"])
        if kind == "huggingface":
            check_layout(content, "weights", where)
            network = huggingface_format.read_network(weights, files, files["sentencepiece"])
        else:
            check_layout(content, "fairseq", where)
            network = fairseq_format.read_network(weights, content, where)
        check_weights(network, where)
        splitter = subwords.of(files)
        dictionary = _make_dictionary(network, files, splitter, inner)
        described = _complete(network, kind, dictionary, files, splitter, digest)
        make = partial(_make_tokenizer, inner, splitter, dictionary, max_tokens=network.max_positions)
        size = sum(path.stat().st_size for path in splitter.files.values())
        tokenizer_probe.run(make, splitter.where, size) if forked else make()
        fairseq_format.write_checkpoint(folder / "fairseq" / "model.pt", network)
        copy_file(dictionary, folder / "fairseq" / "dict.txt")
        huggingface_format.write_model(folder / "huggingface", network)
        for name in fast_tokenizers.WRITTEN:
            copy_file(inner / name, folder / "huggingface" / name)
    for key, path in splitter.files.items():
        copy_file(path, folder / "subwords" / subwords.PUBLISHED[key])
    write_json(folder / "model.json", described)
    log.info("converted %s: %s", files["checkpoint"], described)
    return described


@contextlib.contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """A temporary folder beside the model's files."""
    folder.mkdir(parents=True, exist_ok=True)
    inner = Path(tempfile.mkdtemp(dir=folder, prefix=".reading."))
    try:
        yield inner
    finally:
        shutil.rmtree(inner, ignore_errors=True)


def read_weights(
    path: Path, digest: str, folder: Path, forked: bool
) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Weights and settings of a file; a pickle is first converted to safetensors in `folder`.

    Raises:
        SeedbedError: the file is harmful or damaged.
    """
    if path.suffix == ".safetensors":
        return _read_safetensors(path, digest), {"layout": "weights"}
    extract = partial(unpickling.extract, path, digest, folder)
    if forked:
        isolation.run_forked(extract, folder / "error.json", path.stat().st_size)
    else:
        extract()
    return unpickling.read_extracted(folder)


def _read_safetensors(path: Path, digest: str) -> dict[str, torch.Tensor]:
    data = unpickling.read_verified(path, digest)
    try:
        return safetensors.torch.load(data)
    except Exception as error:  # a damaged file can cause any error in the reader
        raise no_safetensors(path, error) from None


def no_safetensors(path: Path, error: Exception) -> SeedbedError:
    """The error for a file that safetensors cannot read."""
    return SeedbedError(
        "this is not a safetensors file, or it is damaged",
        where=str(path),
        found=f"{path.stat().st_size} bytes; {error}",
        hint="the file may be truncated, or a pointer of Git LFS: download it again",
    )


def check_layout(content: Mapping[str, Any], layout: str, where: str) -> None:
    """Check that a checkpoint has the layout of its format: fairseq's dictionary, or weights alone.

    Raises:
        SeedbedError: it has the other layout.
    """
    if content["layout"] != layout:
        names = {"fairseq": "a checkpoint of fairseq", "weights": "a file of weights, as of Transformers"}
        wanted = "fairseq" if content["layout"] == "fairseq" else "huggingface"
        raise SeedbedError(
            f"this is {names[content['layout']]}, not {names[layout]}",
            where=where,
            hint=f"set format: {wanted} for the model in the config",
        )


def _make_dictionary(network: Network, files: Mapping[str, Path], splitter: Subwords, folder: Path) -> Path:
    """The model's dict.txt: the source's, or a new one in `folder`.

    A new one lists each word once, since fairseq-preprocess cannot read its own copy of a dict.txt with
    #fairseq:overwrite. It has no byte order mark, which fairseq would read as a part of the first word. It
    lists `<mask>` only if the source's does, since fairseq's tasks add `<mask>`.
    """
    path = folder / "dict.txt"
    if network.words is not None:
        last = network.words[-1] == MASK
        write_dictionary(path, network.words[:-1] if last else network.words)
        return path
    vocabulary = match_vocabulary(splitter, files["dictionary"])
    words, names = vocabulary.words, vocabulary.names()
    renamed = [number for number, word in enumerate(words) if names[number] != word]
    if not renamed:
        text = dictionary_text(files["dictionary"])
        if text.encode() == files["dictionary"].read_bytes():
            return files["dictionary"]
        write_text(path, text)
        return path
    log.warning(
        "%s lists words twice, as camembert-base's does: %s, whose rows %s are not used; <s> and </s> around "
        "texts are rows 0 and 2, as in fairseq's own training",
        *(files["dictionary"], listed([words[n] for n in renamed]), listed([str(n) for n in renamed])),
    )
    write_dictionary(path, names if vocabulary.holds_mask else names[:-1])
    return path


def _make_tokenizer(folder: Path, splitter: Subwords, dictionary: Path, max_tokens: int) -> None:
    """Write the fast tokenizer to `folder`, and test it and what it is made from."""
    fast_tokenizers.write_tokenizer(folder, splitter, dictionary, max_tokens)
    content = read_json(folder / "tokenizer.json")
    splitter.try_out(tokenizer_probe.probes(content))
    tokenizer_probe.exercise(load_tokenizer(folder / "tokenizer.json"), content, splitter.where)


def _complete(
    network: Network,
    kind: str,
    dictionary: Path,
    files: Mapping[str, Path],
    splitter: Subwords,
    digest: str,
) -> dict[str, Any]:
    """Check the vocabulary, add a missing `<mask>`, and describe the model."""
    # the user's file that lists the words; `dictionary` may be a copy
    source = files.get("dictionary") or files.get("tokenizer.json") or files["sentencepiece"]
    vocabulary = match_vocabulary(splitter, dictionary, str(source))
    lacks_mask = network.rows == len(vocabulary.words) - 1 and not vocabulary.holds_mask
    # each word is a piece, so dict.txt belongs to the checkpoint, and the missing row is <mask>'s
    if lacks_mask and not vocabulary.foreign:
        add_mask(network)
        log.warning(
            "%s has no row for <mask>: the mean of the words' rows was added; no text uses it",
            files["checkpoint"],
        )
    check_dictionary(network.rows, len(vocabulary.words), source, files["checkpoint"])
    _log_oddities(vocabulary)
    described = {
        "format": kind,
        "layers": network.layers,
        "embed_dim": network.embed_dim,
        "ffn_dim": network.ffn_dim,
        "attention_heads": network.attention_heads,
        "vocabulary": network.rows,
        "max_positions": network.max_positions,
        "activation": network.activation,
        **splitter.described(),
        "words_without_piece": len(vocabulary.foreign),
        "pieces_without_word": len(vocabulary.outside),
        "mask_row": "given",
        "lm_head": "given",
        "checkpoint_sha256": digest,
    }
    return described | network.notes


def check_dictionary(rows: int, words: int, dictionary: str | Path, checkpoint: str | Path) -> None:
    """Check that the embedding has one row for each word, special tokens and `<mask>` included.

    Raises:
        SeedbedError: the counts differ; the error names both counts and both files.
    """
    if rows != words:
        raise SeedbedError(
            "this dict.txt belongs to another checkpoint",
            where=f"{dictionary} and {checkpoint}",
            found=f"{words} words (lines, 4 special tokens and <mask>), but {rows} rows in the embedding",
            hint="take dict.txt from the checkpoint's own archive",
        )


def _log_oddities(vocabulary: Vocabulary) -> None:
    if vocabulary.foreign:
        log.warning("%d words are not pieces: %s", len(vocabulary.foreign), listed(vocabulary.foreign))
    if vocabulary.outside:
        log.warning(
            "%d pieces have no word and become <unk>: %s", len(vocabulary.outside), listed(vocabulary.outside)
        )


def copy_file(source: Path, target: Path) -> None:
    """Copy a file, atomically."""
    with open(source, "rb") as original, atomic_open(target, "wb") as stream:
        shutil.copyfileobj(original, stream)


if __name__ == "__main__":
    isolation.answer(work)
