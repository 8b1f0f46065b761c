"""Generate answers greedily with the selected weights, and score them against the references."""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig, PreTrainedModel

from seedbed.core.tasks import ANSWER_COLUMNS, GROUP_COLUMN
from seedbed.training.token_ids import batches_by_length, pad

# with what opens before it, which stays; a word follows
ARTICLE = re.compile(r"((?:^|\s)[\"'(\[«“]*)(?:(?:an|the)(?=\s+[\"'(\[«“]*\w)|a(?=\s+[\"'(\[«“]*\w\w))")
SIGNS = "%&#@/^"  # punctuation in Unicode, except the last, but with a meaning in an answer
APOSTROPHES = "\u2019\u2018\u201b\u02bc\u02b9\u2032\u00b4`"
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
SAME = str.maketrans({**dict.fromkeys(APOSTROPHES, "'"), **dict.fromkeys(DASHES, "-")})
JOINERS = "\u200c\u200d"  # the invisible characters that change the look of others
# kinds of compatibility characters (Unicode Standard Annex 44) that are another form of the same text
VARIANTS = (
    "<wide>", "<narrow>", "<noBreak>", "<font>", "<compat>", "<initial>", "<medial>", "<final>", "<isolated>",
)  # fmt: skip
NUMBER_START = re.compile(r"(?:^|[^.,-])(-?[.,]?)$")  # the end of punctuation that belongs to a digit


@dataclass(frozen=True)
class Questions:
    """A split: prompts and answers as token ids, each answer with its end token, and answers as text.

    Examples of one group are about one text.
    """

    examples: list[str]
    prompts: list[list[int]]
    answers: list[list[int]]
    references: list[str]
    groups: list[str]

    @property
    def labels(self) -> list[int]:
        """Number of answer tokens of each example."""
        return [len(answer) for answer in self.answers]

    @property
    def lengths(self) -> list[int]:
        """Number of tokens of each example, prompt and answer."""
        return [len(prompt) + len(answer) for prompt, answer in zip(self.prompts, self.answers, strict=True)]


@dataclass(frozen=True)
class Limits:
    """Limits of answers: end token ids, maximum number of tokens, the model's positions (None: unlimited)."""

    eos: int
    pad: int
    max_new_tokens: int
    positions: int | None = None

    def of(self, prompt: Sequence[int]) -> int:
        """The longest answer to a prompt, in tokens."""
        left = self.max_new_tokens if self.positions is None else self.positions - len(prompt)
        return min(self.max_new_tokens, left)


@torch.no_grad()
def generate_answers(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    limits: Limits,
    batch_size: int,
    before_batch: Callable[[], None] = lambda: None,
) -> list[list[int]]:
    """Generate answers greedily, without their end tokens.

    Prompts are padded on the left and masked; keys and values are cached. A batch has prompts of similar
    length and one limit, so that an answer does not depend on the other prompts.

    Args:
        model: a causal model on its device, perhaps with an adapter.
        prompts: token ids.
        limits: the ends of answers.
        batch_size: prompts per batch.
        before_batch: called before each batch.

    Returns:
        Token ids of each answer, in the order of the prompts.
    """
    model.eval()
    # settings missing here, such as sampling, would come from the model's own file
    own, model.generation_config = model.generation_config, GenerationConfig()
    answers: list[list[int]] = [[] for _ in prompts]
    try:
        for chosen, longest in _batches(prompts, limits, batch_size):
            before_batch()
            ids = pad([prompts[index] for index in chosen], limits.pad, left=True).to(model.device)
            # by position, as the token that pads may be one that ends
            mask = pad([[1] * len(prompts[index]) for index in chosen], 0, left=True).to(model.device)
            asked = GenerationConfig(
                do_sample=False,
                num_beams=1,
                max_new_tokens=longest,
                eos_token_id=limits.eos,
                pad_token_id=limits.pad,
                use_cache=True,
            )
            made = model.generate(input_ids=ids, attention_mask=mask, generation_config=asked)
            for index, row in zip(chosen, made[:, ids.shape[1] :].tolist(), strict=True):
                answers[index] = row[: row.index(limits.eos)] if limits.eos in row else row
    finally:
        model.generation_config = own
    return answers


def _batches(
    prompts: Sequence[Sequence[int]], limits: Limits, batch_size: int
) -> Iterator[tuple[list[int], int]]:
    """Batches of indices of prompts, with the batch's maximum length of an answer."""
    by_limit: dict[int, list[int]] = {}
    for index, prompt in enumerate(prompts):
        by_limit.setdefault(limits.of(prompt), []).append(index)
    for longest, members in by_limit.items():
        if longest > 0:
            for chosen in batches_by_length([len(prompts[index]) for index in members], batch_size):
                yield [members[position] for position in chosen], longest


def answer_scores(answers: Sequence[str], references: Sequence[str]) -> list[dict[str, float]]:
    """Exact match and F1 of each answer (Rajpurkar et al. 2016), as fractions, from `answer_words`.

    Exact match is 1 if the words are the same in the same order. F1 is the harmonic mean of precision and
    recall of words, counted with repetitions; without words it is 0 on one side, and 1 on both.

    Args:
        answers: generated texts.
        references: the dataset's answers, in the same order.
    """
    scores = []
    for answer, reference in zip(answers, references, strict=True):
        found, wanted = answer_words(answer), answer_words(reference)
        shared = (Counter(found) & Counter(wanted)).total()
        f1 = 2 * shared / (len(found) + len(wanted)) if found and wanted else float(found == wanted)
        scores.append({"exact_match": float(found == wanted), "f1": round(f1, 6)})
    return scores


def answer_words(text: str) -> list[str]:
    """The words of an answer for exact match and F1.

    As in SQuAD (Rajpurkar et al. 2016), case, punctuation and the articles a, an, the do not count; articles
    of other languages do. SQuAD's script, which torchmetrics follows, only knows ASCII's punctuation, and
    turns "A" into "", "3.14" into "314", "-5" into "5" and "C++" into "C". So here:

    - composed and decomposed letters, kinds of apostrophes, dashes and spaces, and the wide, narrow and
      joined forms of a character are the same; superscripts and fractions differ from their digits;
    - punctuation follows Unicode except % & # @ /. These and symbols (+ = < > ^ $ and others) are separate
      words;
    - punctuation between two digits stays, as do a minus and a decimal point at the start of a number;
    - a, an and the are articles only before another word, and "a" not before a single letter or digit, so
      that keys such as "A" and "A) yes" keep it;
    - a text of only punctuation keeps it.

    Only a blank text has no words.
    """
    plain = ARTICLE.sub(r"\1", _plain(text))
    runs = [(kind, "".join(run)) for kind, run in itertools.groupby(plain, _kind)]
    edges = [(" ", " "), *runs, (" ", " ")]
    parts = []
    for (_, before), (kind, run), (next_kind, after) in zip(edges, runs, edges[2:], strict=False):
        if kind == "symbol":
            parts.append(f" {' '.join(run)} ")
        elif kind == "punctuation":
            parts.append(_kept_punctuation(before[-1], run, after[0], next_kind == "symbol"))
        else:
            parts.append(run)
    return "".join(parts).split() or plain.split()


def _plain(text: str) -> str:
    """The text in lower case, with one form for characters that look the same."""
    visible = (
        character
        for character in unicodedata.normalize("NFC", text)
        if character in JOINERS or unicodedata.category(character) != "Cf"
    )
    folded = "".join(
        unicodedata.normalize("NFKC", character) if _is_variant(character) else character
        for character in "".join(visible).translate(SAME)
    )
    return unicodedata.normalize("NFC", folded.translate(SAME).lower())


def _is_variant(character: str) -> bool:
    """Whether a character is another one in another width, font or place, or a ligature."""
    kind, *parts = unicodedata.decomposition(character).split() or [""]
    # an accent that stands alone would become a space with an accent
    return kind in VARIANTS and (parts[0] != "0020" or character.isspace())


def _kind(character: str) -> str:
    category = unicodedata.category(character)
    if character in SIGNS or (category[0] == "S" and category != "Sk"):
        return "symbol"
    return "punctuation" if category[0] == "P" else "text"


def _kept_punctuation(before: str, run: str, after: str, before_symbol: bool) -> str:
    """The part of a run of punctuation between two characters that is kept."""
    if before.isdecimal() and after.isdecimal():
        return run
    start = None if before.isalnum() else NUMBER_START.search(run)
    if start and (after.isdecimal() or (before_symbol and start[1] == "-")):
        return start[1]
    return ""


class Answered:
    """Predictions of answers: the probability of the reference, and the generated answer.

    Args:
        predict: maps a split to outputs, (examples, 2), for `metrics.token_metrics`.
        generate: maps prompts to token ids of answers.
        tokenizer: tokenizer.json of the model.
    """

    columns = (*ANSWER_COLUMNS, GROUP_COLUMN)

    def __init__(
        self,
        predict: Callable[[Questions], np.ndarray],
        generate: Callable[[Sequence[Sequence[int]]], list[list[int]]],
        tokenizer: Path,
    ):
        from tokenizers import Tokenizer

        self.outputs, self._generate = predict, generate
        self._tokenizer = Tokenizer.from_file(str(tokenizer))

    def compared(self, outputs: np.ndarray) -> np.ndarray:
        """The sums of nats; the most probable token may change with the last bits."""
        return outputs[:, :1]

    def final(self, split: Questions) -> tuple[dict[str, float], list[dict[str, Any]]]:
        """Mean exact match and F1, and both for each example with its answer."""
        ids = self._generate(split.prompts)
        texts = [self._tokenizer.decode(answer, skip_special_tokens=True).strip() for answer in ids]
        scores = answer_scores(texts, split.references)
        means = {name: float(np.mean([score[name] for score in scores])) for name in scores[0]}
        return means, [score | {"answer": text} for score, text in zip(scores, texts, strict=True)]

    def rows(
        self, name: str, split: Questions, outputs: np.ndarray, details: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """One row per example; a loss that is not finite is an empty cell with a token accuracy of 0."""
        rows = []
        for index, (example, tokens) in enumerate(zip(split.examples, split.labels, strict=True)):
            nats, right = outputs[index]
            finite = np.isfinite(nats)
            rows.append(
                {
                    "split": name,
                    "example": example,
                    "tokens": tokens,
                    "loss": f"{nats / tokens:.9g}" if finite else None,
                    "token_accuracy": f"{right / tokens if finite else 0:.9g}",
                    "exact_match": f"{details[index]['exact_match']:.9g}",
                    "f1": f"{details[index]['f1']:.9g}",
                    "reference": split.references[index],
                    "answer": details[index]["answer"],
                    GROUP_COLUMN: split.groups[index],
                }
            )
        return rows

    def about(self, splits: Mapping[str, Questions]) -> dict[str, Any]:
        """There are no labels."""
        return {"majority_share": None, "label_names": []}
