"""Encode questions and answers as token ids, with a causal model's own tokenizer.

Prompt, prefix and answer are encoded as one text, since the model would write these tokens itself. The
answer's tokens are all tokens after the prompt's, and the end token.
"""

import logging
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from seedbed.core.errors import UNKNOWN_HINT, SeedbedError
from seedbed.core.files import fingerprint, read_json, read_jsonl, write_json, write_jsonl
from seedbed.core.splits import LEAST_EXAMPLES
from seedbed.data.readers.files import BOM, and_more
from seedbed.data.texts import fill_template
from seedbed.models import tokenizer_probe
from seedbed.models.limits import check_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

log = logging.getLogger(__name__)

Example = Mapping[str, Any]


class Limit(NamedTuple):
    """The maximum number of tokens of prompt, answer and end token, and the treatment of longer examples.

    `origin` and `remedy` (a way to allow longer examples) are for messages.
    """

    tokens: int | None
    origin: str
    overlong: str
    remedy: str


class Encoded(NamedTuple):
    """Token ids of an example; the answer ends with the end token."""

    prompt: list[int]
    answer: list[int]

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.answer)


class Outcome(NamedTuple):
    """The encoded example (None: left out), its length before any cut, and whether its context was cut.

    `lost`: the cut removed the answer from the context.
    """

    encoded: Encoded | None
    length: int
    cut: bool = False
    lost: bool = False


class Encoder:
    """A model's tokenizer, with the template and the answer prefix of a dataset.

    Names of special tokens in a text are encoded as plain text. If the template or the prefix contains one,
    special tokens are special in all texts.
    """

    def __init__(self, tokenizer: str | Path, definition: Mapping[str, Any], end: int):
        """`definition` is the dataset's block of the config, `end` the id of the end token."""
        self.tokenizer = load_tokenizer(tokenizer)
        self.template, self.prefix = definition["template"], definition["answer_prefix"]
        self.end = end
        added = self.tokenizer.get_added_tokens_decoder().values()
        own = self.template + self.prefix
        named = [token.content for token in added if token.special and token.content in own]
        self.tokenizer.encode_special_tokens = not named
        if named:
            log.info(
                "the template names special tokens, which are special in all texts: %s", ", ".join(named)
            )

    def encode(self, example: Example, text: str | None = None) -> Encoded:
        """The ids of an example; `text` replaces its prompt.

        Raises:
            SeedbedError: the prompt's end and the answer's beginning merge into one token.
        """
        text = example["text"] if text is None else text
        prompt = self._ids(text)
        whole = self._ids(f"{text}{self.prefix}{example['answer']}")
        if whole[: len(prompt)] != prompt or len(whole) == len(prompt):
            raise self._merged(example, text, prompt, whole)
        return Encoded(prompt, [*whole[len(prompt) :], self.end])

    def shorten(self, example: Example, limit: int) -> tuple[Encoded, str] | None:
        """The ids with the context cut at its end to fit, and the cut context; None if nothing fits."""
        context = example["context"]
        ends = [end for _, end in self.tokenizer.encode(context, add_special_tokens=False).offsets]
        kept, short = len(ends), context
        encoded = self.encode(example)
        while encoded.length > limit and kept:
            # tokens beside the cut may change, so count the tokens of the new text
            kept = max(0, kept - (encoded.length - limit))
            short = context[: ends[kept - 1]].rstrip() if kept else ""
            encoded = self.encode(example, fill_template(self.template, example["question"], short))
        return (encoded, short) if encoded.length <= limit else None

    def _ids(self, text: str) -> list[int]:
        """Ids with special tokens before a text, and without those after it: the answer follows there."""
        encoding = self.tokenizer.encode(text)
        count = len(encoding.ids)
        while count and encoding.special_tokens_mask[count - 1]:
            count -= 1
        return encoding.ids[:count]

    def _merged(self, example: Example, text: str, prompt: list[int], whole: list[int]) -> SeedbedError:
        same = next((n for n, pair in enumerate(zip(prompt, whole, strict=False)) if pair[0] != pair[1]), 0)
        token = self.tokenizer.id_to_token(whole[min(same, len(whole) - 1)])
        return SeedbedError(
            "the prompt's end and the answer's beginning merge into one token",
            where=f"example {example['id']}; template and answer_prefix of the dataset in the config",
            found=f"prompt ends with {text[-12:]!r}, then {self.prefix + example['answer'][:12]!r}; "
            f"the merged token is {token!r}",
            hint="end the template without a space, and begin answer_prefix with the space or line end: "
            'template "... :", answer_prefix " "',
        )


def load_tokenizer(path: str | Path) -> "Tokenizer":
    """The tokenizer of a tokenizer.json, without truncation and padding.

    Raises:
        SeedbedError: the file is not a tokenizer.json.
    """
    from tokenizers import Tokenizer

    try:
        with tokenizer_probe.explaining_panics(path):
            tokenizer = Tokenizer.from_file(str(path))
    except SeedbedError:
        raise
    except Exception as error:  # the library raises nothing more specific
        has_mark = Path(path).is_file() and Path(path).read_bytes().startswith(BOM)
        raise SeedbedError(
            "this is not a tokenizer.json that the library tokenizers can read",
            where=str(path),
            found="a byte order mark before the JSON" if has_mark else str(error)[:200],
            hint="take the file that save_pretrained wrote",
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def tokenize(
    name: str,
    definition: Mapping[str, Any],
    texts: Mapping[str, str | Path],
    model: Mapping[str, str | Path],
    folder: str | Path,
    max_unknown_share: float = 1.0,
) -> dict[str, dict[str, Any]]:
    """Write {split}.jsonl and statistics.json to `folder`, and return the statistics.

    A row is {"id", "prompt": ids, "answer": ids with the end token last, "reference": the answer's text,
    "group": shared by the examples of one context, "length": tokens of both before cutting, "unknown": number
    of unknown tokens}. Rows are in the order of the examples.

    Statistics of a split: `examples` (written), `limit` (tokens, or None), `prompt_tokens` and
    `answer_tokens` ({"median", "longest", "total"}, with the end token), `longest` (tokens of an example,
    before cutting and dropping), `cut` (examples with a shortened context), `answers_cut` (cut examples whose
    context lost the answer), `dropped` (omitted examples), `unknown` and `unknown_share`.

    Args:
        name: the dataset's name in the config, for messages.
        definition: the dataset's resolved block of the config.
        texts: the prepared JSON lines of each split.
        model: paths `tokenizer` (tokenizer.json) and `definition` (model.json).
        folder: the output folder, written to after all splits are encoded.
        max_unknown_share: largest allowed share of unknown tokens in a split.

    Raises:
        SeedbedError: an example exceeds the limit and may not be left out, the limit exceeds the model's, the
            template does not fit the tokenizer, or too many tokens are unknown.
    """
    described = read_json(model["definition"])
    limit = find_limit(name, definition, described)
    splits = {split: read_jsonl(path) for split, path in texts.items()}
    _try(model["tokenizer"], definition, splits)
    encoder = Encoder(model["tokenizer"], definition, described["eos"])
    unknown = unknown_id(model["tokenizer"])
    rows: dict[str, list[dict[str, Any]]] = {}
    found: dict[str, dict[str, Any]] = {}
    for split, path in texts.items():
        examples = splits[split]
        with tokenizer_probe.explaining_panics(model["tokenizer"]):
            outcomes = [fit(encoder, example, limit) for example in examples]
        _check_lengths(name, definition, split, examples, outcomes, limit)
        rows[split] = [
            _row(example, outcome.encoded, outcome.length, unknown)
            for example, outcome in zip(examples, outcomes, strict=True)
            if outcome.encoded is not None
        ]
        found[split] = _count(rows[split], outcomes, limit)
        _check_unknown(split, path, rows[split], found[split]["unknown_share"], max_unknown_share)
        if found[split]["unknown"]:
            _name_unknown(split, encoder, examples, unknown)
        _log_statistics(name, split, found[split], limit)
    for split, written in rows.items():
        write_jsonl(Path(folder) / f"{split}.jsonl", written)
    write_json(Path(folder) / "statistics.json", found)
    return found


def _try(
    tokenizer: str | Path, definition: Mapping[str, Any], splits: Mapping[str, Sequence[Example]]
) -> None:
    """Encode all texts in a fork with limits, before this process encodes them."""
    prefix = definition["answer_prefix"]
    examples = [example for split in splits.values() for example in split]
    tokenizer_probe.check(
        tokenizer, [f"{example['text']}{prefix}{example['answer']}" for example in examples]
    )


def _check_unknown(
    split: str, path: str | Path, rows: Sequence[Mapping[str, Any]], share: float, most: float
) -> None:
    if share <= most:
        return
    first = next(row for row in rows if row["unknown"])
    raise SeedbedError(
        f"{share:.1%} of the tokens in the split {split!r} are unknown to the model, more than {most:.1%}",
        where=f"{path}, first in the example {first['id']}",
        found=f"{sum(row['unknown'] for row in rows):,} unknown tokens",
        hint=UNKNOWN_HINT,
    )


def _name_unknown(split: str, encoder: Encoder, examples: Sequence[Example], unknown: int) -> None:
    """Log the strings that the tokenizer does not know, most frequent first."""
    counts: Counter[str] = Counter()
    for example in examples:
        text = f"{example['text']}{encoder.prefix}{example['answer']}"
        encoding = encoder.tokenizer.encode(text)
        pairs = zip(encoding.ids, encoding.offsets, strict=True)
        counts.update(text[start:end] for number, (start, end) in pairs if number == unknown)
    shown = ", ".join(f"{part!r} ({count} times)" for part, count in counts.most_common(10))
    log.warning("%s: the tokenizer does not know, most frequent first: %s", split, shown)


def find_limit(name: str, definition: Mapping[str, Any], described: Mapping[str, Any]) -> Limit:
    """The limit of a dataset (`max_tokens`) and a model (positions in model.json).

    Raises:
        SeedbedError: the dataset's limit exceeds the model's.
    """
    asked, positions = definition["max_tokens"], described["max_positions"]
    check_tokens(name, asked, positions)
    if asked is None or asked == positions:
        remedy = "take a shorter template or a model with more positions"
        return Limit(positions, "the model's positions", definition["overlong"], remedy)
    most = "" if positions is None else f" (to {positions} at most, the model's positions)"
    return Limit(asked, f"datasets.{name}.max_tokens", definition["overlong"], f"raise max_tokens{most}")


def fit(encoder: Encoder, example: Example, limit: Limit) -> Outcome:
    """Encode an example within the limit, cutting its context or leaving it out if it is too long."""
    encoded = encoder.encode(example)
    if limit.tokens is None or encoded.length <= limit.tokens:
        return Outcome(encoded, encoded.length)
    shortened = None
    if limit.overlong == "cut" and example["context"]:
        shortened = encoder.shorten(example, limit.tokens)
    if shortened is None:
        return Outcome(None, encoded.length)
    lost = example["answer"] in example["context"] and example["answer"] not in shortened[1]
    return Outcome(shortened[0], encoded.length, cut=True, lost=lost)


def _check_lengths(
    name: str,
    definition: Mapping[str, Any],
    split: str,
    examples: Sequence[Example],
    outcomes: Sequence[Outcome],
    limit: Limit,
) -> None:
    long = [
        (example["id"], outcome.length)
        for example, outcome in zip(examples, outcomes, strict=True)
        if outcome.encoded is None
    ]
    if not long or (limit.overlong == "drop" and len(examples) - len(long) >= LEAST_EXAMPLES):
        return
    identifier, length = long[0]
    where = f"{split}, example {identifier}; config, datasets.{name}.overlong: {limit.overlong}"
    found = (
        f"{length} tokens with the end token, at most {limit.tokens} ({limit.origin}); "
        f"the longest of the {split} split has {max(outcome.length for outcome in outcomes)}"
    )
    if limit.overlong == "drop":
        raise SeedbedError(
            f"nearly all {split} examples exceed the limit and would be left out",
            where=where,
            found=found,
            hint=limit.remedy,
        )
    if limit.overlong == "cut":
        raise SeedbedError(
            "an example is longer than the limit even without its context" + and_more(len(long)),
            where=where,
            found=found,
            hint=f"{limit.remedy}; overlong: drop leaves examples out",
        )
    cut = "overlong: cut (shortens contexts) or " if definition["columns"]["context"] is not None else ""
    raise SeedbedError(
        "an example is longer than the limit" + and_more(len(long)),
        where=where,
        found=found,
        hint=f"{limit.remedy}, or set {cut}overlong: drop (leaves examples out)",
    )


def _row(example: Example, encoded: Encoded, length: int, unknown: int | None) -> dict[str, Any]:
    return {
        "id": example["id"],
        "prompt": encoded.prompt,
        "answer": encoded.answer,
        "reference": example["answer"],
        "group": group_of(example),
        "length": length,
        "unknown": [*encoded.prompt, *encoded.answer].count(unknown),
    }


def group_of(example: Example) -> str:
    """A name shared by the examples of one context; an example without context has its id."""
    context = example["context"]
    return fingerprint(context) if context else example["id"]


def unknown_id(path: str | Path) -> int | None:
    """The id of the unknown token in a tokenizer.json; None if it has none, as with bytes."""
    model = read_json(path)["model"]
    if isinstance(model.get("unk_id"), int):
        return model["unk_id"]
    token = model.get("unk_token")
    return None if token is None else load_tokenizer(path).token_to_id(token)


def _count(rows: Sequence[Mapping[str, Any]], outcomes: Sequence[Outcome], limit: Limit) -> dict[str, Any]:
    prompts, answers = ([len(row[part]) for row in rows] for part in ("prompt", "answer"))
    unknown, total = sum(row["unknown"] for row in rows), sum(prompts) + sum(answers)
    return {
        "examples": len(rows),
        "limit": limit.tokens,
        "prompt_tokens": _spread(prompts),
        "answer_tokens": _spread(answers),
        "longest": max((outcome.length for outcome in outcomes), default=0),
        "cut": sum(outcome.cut for outcome in outcomes),
        "answers_cut": sum(outcome.lost for outcome in outcomes),
        "dropped": len(outcomes) - len(rows),
        "unknown": unknown,
        "unknown_share": unknown / max(1, total),
    }


def _spread(lengths: Sequence[int]) -> dict[str, Any]:
    return {
        "median": statistics.median(lengths or [0]),
        "longest": max(lengths, default=0),
        "total": sum(lengths),
    }


def _log_statistics(name: str, split: str, found: Mapping[str, Any], limit: Limit) -> None:
    log.info("%s, %s: %s", name, split, found)
    total = found["examples"] + found["dropped"]
    where = (limit.tokens, limit.origin)
    if found["dropped"]:
        log.warning(
            "%s, %s: left out %d of %d examples, longer than %s tokens (%s)",
            *(name, split, found["dropped"], total, *where),
        )
    if found["cut"]:
        log.warning(
            "%s, %s: shortened the context of %d of %d examples to fit into %s tokens (%s); %d contexts "
            "lost the answer",
            *(name, split, found["cut"], total, *where, found["answers_cut"]),
        )
