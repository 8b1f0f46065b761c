"""The fast tokenizer of a model: its own tokenizer.json, else what Transformers makes of its other files."""

import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")  # before Transformers is imported

import transformers

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, write_json, write_text
from seedbed.models import isolation, tokenizer_probe
from seedbed.models.prompts import load_tokenizer, unknown_id

log = logging.getLogger(__name__)

FILE = "tokenizer.json"
UNLIMITED = 10**6  # Transformers writes 10^30 if a tokenizer has no limit
ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
MEMORY = 3 * isolation.GIB  # 1.6 measured for AutoTokenizer's and the own one, each of 250,000 pieces
CONVERTED = "converted.json"  # what Transformers makes of the files


COMPLETE = (
    "the source must hold tokenizer.json, or the vocabulary that the model's tokenizer class reads, and its "
    "include must match them"
)


class Made(NamedTuple):
    """A tokenizer for publication.

    Attributes:
        pad, unk: ids; `unk` is None for a tokenizer without an unknown token.
        beginning, ending: ids of the special tokens before and after a text.
        limit: the longest text in tokens, special tokens included, according to the tokenizer; None: unknown.
        highest: the largest id, and its token.
        config: the content of tokenizer_config.json.
    """

    pad: int
    unk: int | None
    beginning: list[int]
    ending: list[int]
    limit: int | None
    highest: tuple[int, str]
    config: dict[str, Any]


def make_tokenizer(files: Mapping[str, Path], folder: Path, forked: bool) -> Made:
    """Write the tokenizer.json of a model to `folder`.

    AutoTokenizer rebuilds the tokenizers of many classes from their vocabulary, with the class's own rules
    for spaces and letters. A tokenizer.json beside the weights is the one of pretraining, so it is published
    as it is; a warning tells of a difference.

    Args:
        files: paths of config.json (`config`) and, by name, of the tokenizer's existing files.
        folder: an empty folder.
        forked: use the files in a fork of this process.

    Raises:
        SeedbedError: there is no tokenizer, no fast one, no padding token, or no special token.
    """
    path = files.get(FILE, files["config"].parent)
    own = [each for key, each in files.items() if key != "checkpoint"]
    size = sum(each.stat().st_size for each in own)
    if FILE in files:
        tokenizer_probe.check(files[FILE])
    work = partial(_convert, own, files, folder)
    tokenizer_probe.run(work, path, size, memory=MEMORY) if forked else work()
    about = read_json(folder / "about.json")
    if FILE in files and (about["own_adds"] or not about["adds"]):
        shutil.copyfile(files[FILE], folder / FILE)
        if about["differs"]:
            log.warning(
                "%s: AutoTokenizer makes other tokens, such as %s of %r; tokenizer.json itself is used",
                *(files[FILE], about["differs"]["tokens"], about["differs"]["text"]),
            )
    else:
        os.replace(folder / CONVERTED, folder / FILE)
        tokenizer_probe.check(folder / FILE)
        log.info("%s: AutoTokenizer's tokenizer is used", path)
    return _describe(folder / FILE, about, path)


def _convert(copied: Sequence[Path], files: Mapping[str, Path], folder: Path) -> None:
    """Write what AutoTokenizer makes of the files: converted.json, and about.json on its special tokens."""
    source = folder / "source"
    source.mkdir()
    for path in copied:
        shutil.copyfile(path, source / path.name)
    transformers.logging.set_verbosity_error()
    where = str(files["config"].parent)
    try:
        made = transformers.AutoTokenizer.from_pretrained(
            source, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # files from outside can cause any error in Transformers
        raise SeedbedError(
            "Transformers cannot load the model's tokenizer",
            where=where,
            found=f"{type(error).__name__}: {error}"[:300],
            hint=COMPLETE,
        ) from None
    backend = getattr(made, "backend_tokenizer", None)
    if backend is None:
        raise SeedbedError(
            "only fast tokenizers can be used, and Transformers has none for this model",
            where=where,
            found=type(made).__name__,
            hint="take a model with tokenizer.json",
        )
    write_text(folder / CONVERTED, backend.to_str())
    about: dict[str, Any] = {
        "names": {role: getattr(made, f"{role}_token", None) for role in ROLES},
        "limit": made.model_max_length if made.model_max_length < UNLIMITED else None,
        "inputs": list(made.model_input_names),
    }
    converted = load_tokenizer(folder / CONVERTED)
    own = load_tokenizer(files[FILE]) if FILE in files else converted
    found, other = own.encode(tokenizer_probe.SENTENCE), converted.encode(tokenizer_probe.SENTENCE)
    about |= {"own_adds": 1 in found.special_tokens_mask, "adds": 1 in other.special_tokens_mask}
    about["differs"] = _first_difference(found.tokens, other.tokens)
    write_json(folder / "about.json", about)


def _first_difference(own: list[str], other: list[str]) -> dict[str, Any] | None:
    if own == other:
        return None
    shown = [token for token in other if token not in own] or other
    return {"text": tokenizer_probe.SENTENCE, "tokens": shown[:5]}


def _describe(path: Path, about: Mapping[str, Any], where: Path) -> Made:
    tokenizer = load_tokenizer(path)
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    if set(vocabulary) <= special:  # some classes make such a tokenizer if they find no file
        raise SeedbedError(
            "the tokenizer has no vocabulary",
            where=str(where),
            found=f"only special tokens: {', '.join(sorted(special))}",
            hint=COMPLETE,
        )
    names = {
        role: name
        for role, name in about["names"].items()
        if name is not None and tokenizer.token_to_id(name) is not None
    }
    if "pad" not in names:
        named = about["names"]["pad"]
        raise SeedbedError(
            "the tokenizer has no padding token",
            where=str(where),
            found=f"pad_token {named!r}, which is not in the vocabulary" if named else "no pad_token",
            hint="name one of its tokens, which no text has, in tokenizer_config.json, as in "
            '"pad_token": "<pad>"',
        )
    encoding = tokenizer.encode("a")
    around = encoding.special_tokens_mask
    if 1 not in around:
        raise SeedbedError(
            "the tokenizer puts no special token around a text, which a classifier could read",
            where=str(where),
            found=f"{encoding.tokens} for the text 'a'",
            hint="take the model's complete tokenizer.json, with its post_processor",
        )
    first = around.index(0) if 0 in around else len(around)
    last = len(around) - around[::-1].index(0) if 0 in around else len(around)
    highest = max(vocabulary, key=lambda token: vocabulary[token])
    return Made(
        pad=tokenizer.token_to_id(names["pad"]),
        unk=unknown_id(path),
        beginning=encoding.ids[:first],
        ending=encoding.ids[last:],
        limit=about["limit"],
        highest=(vocabulary[highest], highest),
        config={
            "tokenizer_class": "PreTrainedTokenizerFast",
            **{f"{role}_token": name for role, name in names.items()},
            "model_input_names": about["inputs"],
            "clean_up_tokenization_spaces": False,
        },
    )
