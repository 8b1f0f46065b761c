"""Check that both frameworks start from the same model.

Token ids are compared on every text, hidden states and logits on a sample. Both frameworks could agree on
wrong ids, so the checkpoint's masked-language-model loss is also compared with guessing by token frequency.
"""

import logging
import math
import os
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from seedbed.core import imports, naming
from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl, write_json
from seedbed.core.printable import Lines
from seedbed.data.texts import BORDER, parts
from seedbed.models import subwords
from seedbed.models.dictionaries import MASK, read_dictionary
from seedbed.models.fairseq_launcher import prepare_import
from seedbed.models.fast_tokenizers import dictionary_ids
from seedbed.models.sentencepiece_models import read_sentencepiece
from seedbed.models.tokenization import BETWEEN

log = logging.getLogger(__name__)

BATCH_TEXTS = 32
BATCH_TOKENS = 8192  # padded; bounds the memory of a batch
LOGIT_POSITIONS = 2000  # a sample, since the logits of a position are 32,000 numbers
MASKED_TEXTS = 64
MASKED_SHARE = 0.15  # as in pretraining (Devlin et al. 2019); here each chosen token becomes <mask>
MASKED_CHUNK = 256  # positions whose logits are held at once
# Relative rounding error of a sum of scores in single precision: a few units of 2^-23
SCORE_ROUNDING = 1e-6


@dataclass(frozen=True)
class Example:
    """A text or both texts of a pair, its token ids from the rule tokenize_texts, its place in the split."""

    split: str
    line: int
    name: str
    texts: tuple[str, ...]
    ids: list[int]


@dataclass
class Difference:
    """The largest absolute difference so far, its place, and the largest absolute value (`scale`)."""

    value: float = 0.0
    scale: float = 0.0
    where: dict[str, Any] | None = None
    compared: int = 0


def check_parity(
    texts: Mapping[str, str | Path],
    tokens: Mapping[str, str | Path],
    model: str | Path,
    reviews: int,
    tolerance: float,
    output: str | Path,
) -> dict[str, Any]:
    """Compare token ids on every text, and hidden states on `reviews` of them; write `output` (JSON).

    A masked-language-model loss no better than guessing by frequency gives a warning and no error: a user may
    choose a checkpoint of another language on purpose.

    Args:
        texts: prepared JSON lines of each split.
        tokens: token ids of each split, written by tokenize_texts.
        model: results/models/MODEL.
        reviews: number of texts whose states are compared, the longest of each split included.
        tolerance: largest allowed absolute difference of hidden states; for logits of the language-model
            head, relative to the largest logit if that exceeds 1.
        output: path of the result.

    Returns the content of `output`.

    Raises:
        SeedbedError: token ids differ, or states or logits differ by more than `tolerance`.
    """
    # all files are local; asking the hub would wait for a network that may be missing
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    started = time.monotonic()
    model = Path(model)
    examples = read_examples(texts, tokens)
    ties = check_token_ids(examples, model)
    token_seconds = time.monotonic() - started
    chosen = choose(examples, reviews)
    models = load_fairseq(model), load_huggingface(model)
    hidden, logits = compare_states(chosen, *models, with_logits=_have_same_head(model))
    _gate("hidden states", hidden, tolerance, model)
    if logits.compared:
        _gate("logits of the language-model head", logits, tolerance * max(1.0, logits.scale), model)
    masked = compare_with_frequencies(examples, chosen, models[1], model)
    seconds = {"token_ids": token_seconds, "total": time.monotonic() - started}
    result = {"texts": len(examples), "token_ids_equal": True, "rounding_ties": ties, "compared": len(chosen)}
    result |= {**_describe(hidden, logits), "tolerance": tolerance}
    result |= {"masked_lm": masked, "seconds": seconds}
    write_json(output, result)
    log.info("parity: %s", result)
    return result


def _describe(hidden: Difference, logits: Difference) -> dict[str, Any]:
    return {
        "positions": hidden.compared,
        "largest_difference": hidden.value,
        "where": hidden.where,
        "logits": {
            "positions": logits.compared,
            "largest_difference": logits.value if logits.compared else None,
            "largest_logit": logits.scale if logits.compared else None,
            "where": logits.where,
        },
    }


def read_examples(texts: Mapping[str, str | Path], tokens: Mapping[str, str | Path]) -> list[Example]:
    """Texts and their token ids, split by split.

    Raises:
        SeedbedError: the files do not list the same examples.
    """
    examples = []
    for split, path in texts.items():
        rows, ids = read_jsonl(path), read_jsonl(tokens[split])
        if [row["id"] for row in rows] != [row["id"] for row in ids]:
            raise SeedbedError(
                f"texts and token ids of the split {split!r} are of different examples",
                where=f"{path} and {tokens[split]}",
                found=f"{len(rows)} texts, {len(ids)} rows of ids",
                hint=f"remove {tokens[split]} to make it again",
            )
        pairs = enumerate(zip(rows, ids, strict=True), 1)
        examples += [
            Example(split, line, row["id"], tuple(parts(row)), found["ids"]) for line, (row, found) in pairs
        ]
    return examples


# --- token ids ---


def check_token_ids(examples: Sequence[Example], model: Path) -> int:
    """Compare the fast tokenizer in huggingface/ with the token ids of tokenize_texts, on every text.

    SentencePiece adds scores in single precision, the fast tokenizer in double precision, so they may choose
    differently between two splits of a text with the same score. Only unigram models have such ties.

    Returns the number of texts with a tie.

    Raises:
        SeedbedError: the ids of a text differ without a tie.
    """
    with imports.uncollected():
        from transformers import AutoTokenizer

    folder = model / "huggingface"
    definition = read_json(model / "model.json")
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    columns = map(list, zip(*(e.texts for e in examples), strict=True))
    encoded = tokenizer(*columns, truncation="longest_first", max_length=definition["max_positions"])
    ids = [dictionary_ids(row, definition["vocabulary"]) for row in encoded["input_ids"]]
    differing = [(e, row) for e, row in zip(examples, ids, strict=True) if e.ids != row]
    ties = _Ties(model, tokenizer) if definition.get("sentencepiece_type") == "unigram" else None
    errors = [(e, row) for e, row in differing if ties is None or not ties.is_tie(e)]
    if errors:
        raise _differing_ids(errors, len(examples), subwords.published(model / "subwords").title)
    if differing:
        log.warning("%d texts have two equally good splits, first %s", len(differing), differing[0][0].name)
    return len(differing)


def _differing_ids(errors: list[tuple[Example, list[int]]], texts: int, title: str) -> SeedbedError:
    first, ids = errors[0]
    return SeedbedError(
        f"the fast tokenizer gives {len(errors)} of {texts} texts other ids than {title} does",
        where=f"split {first.split}, line {first.line} ({first.name}): {BORDER.join(first.texts)[:200]!r}",
        found=Lines(f"\n    its own pieces: {first.ids}\n    fast tokenizer: {ids}"),
        hint="if few texts differ, they have rare sequences of characters (such as an accent on a symbol): "
        "simplify them; if many do, the tokenizer was built from other files: remove the model's folder",
    )


def _inner_ids(example: Example) -> list[list[int]]:
    """The ids of each text of an example, without special tokens."""
    if len(example.texts) == 1:
        return [example.ids[1:-1]]
    # no text has this id, since names of special tokens in a text are plain text
    border = example.ids.index(naming.EOS)
    return [example.ids[1:border], example.ids[border + len(BETWEEN) : -1]]


class _Ties:
    """Recognises texts that SentencePiece and the fast tokenizer split differently but with equal scores."""

    def __init__(self, model: Path, tokenizer: Any):
        self.tokenizer = tokenizer
        self.splitter = subwords.published(model / "subwords")
        self.vocabulary = subwords.match_vocabulary(self.splitter, model / "fairseq" / "dict.txt")
        path = self.splitter.files["sentencepiece"]
        self.scores = {piece.piece: piece.score for piece in read_sentencepiece(path).pieces}

    def is_tie(self, example: Example) -> bool:
        found = zip(example.texts, self.splitter.encode(example.texts), _inner_ids(example), strict=True)
        return all(self._is_tie_of_text(*each) for each in found)

    def _is_tie_of_text(self, text: str, pieces: list[str], inner: list[int]) -> bool:
        if self.vocabulary.ids(pieces)[: len(inner)] != inner:
            return False
        exact = self._score(pieces)
        return abs(self._score(self._split(text)) - exact) <= SCORE_ROUNDING * abs(exact)

    def _split(self, text: str) -> list[str]:
        encoded = self.tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)
        return self.tokenizer.convert_ids_to_tokens(encoded["input_ids"])

    def _score(self, pieces: list[str]) -> float:
        # both splits have the same unknown characters
        return math.fsum(self.scores.get(piece, 0.0) for piece in pieces)


# --- hidden states ---


def choose(examples: Sequence[Example], count: int) -> list[Example]:
    """At most `count` examples, shortest first: the longest of each split, and others evenly spread."""
    splits = dict.fromkeys(example.split for example in examples)
    longest = {
        max((i for i, e in enumerate(examples) if e.split == s), key=lambda i: len(examples[i].ids))
        for s in splits
    }
    chosen = sorted(longest)[:count]
    others = [index for index in range(len(examples)) if index not in longest]
    wanted = min(count, len(examples)) - len(chosen)
    chosen += [others[index * len(others) // wanted] for index in range(wanted)]
    return sorted((examples[index] for index in chosen), key=lambda example: len(example.ids))


def _have_same_head(model: Path) -> bool:
    definition = read_json(model / "model.json")
    # RobertaLMHead always uses gelu; fairseq's head uses the model's activation
    return definition["activation"] == "gelu" and definition.get("lm_head", "given") == "given"


def compare_states(
    examples: Sequence[Example], ours: Any, theirs: Any, with_logits: bool = True
) -> tuple[Difference, Difference]:
    """Largest differences of the final hidden states and of the language-model head's logits.

    Args:
        examples: sorted by length.
        ours: fairseq's model; it and `theirs` are in evaluation mode, in fp32, on the CPU.
        theirs: transformers' model.
        with_logits: compare logits, too, at evenly spread positions.

    Padding is not compared.
    """
    step = max(1, sum(len(example.ids) for example in examples) // LOGIT_POSITIONS)
    hidden, logits = Difference(), Difference()
    with torch.inference_mode():
        for batch in _batches(examples):
            ids = torch.nn.utils.rnn.pad_sequence(
                [torch.tensor(example.ids) for example in batch],
                batch_first=True,
                padding_value=naming.PAD,
            )
            real = ids.ne(naming.PAD)
            a = ours(ids, features_only=True)[0][real]
            b = theirs.roberta(ids, attention_mask=real.long()).last_hidden_state[real]
            places = [(example, position) for example in batch for position in range(len(example.ids))]
            _record(hidden, a, b, places)
            if with_logits:
                heads = ours.encoder.lm_head(a[::step]), theirs.lm_head(b[::step])
                _record(logits, *heads, places[::step])
    return hidden, logits


def _batches(examples: Sequence[Example]) -> list[list[Example]]:
    batches: list[list[Example]] = []
    for example in examples:  # sorted by length, so each is the longest of its batch so far
        size = len(batches[-1]) + 1 if batches else 0
        if not batches or size > BATCH_TEXTS or size * len(example.ids) > BATCH_TOKENS:
            batches.append([])
        batches[-1].append(example)
    return batches


def _record(found: Difference, a: torch.Tensor, b: torch.Tensor, places: list[tuple[Example, int]]) -> None:
    found.compared += len(a)
    found.scale = max(found.scale, b.abs().max().item())
    differences = (a - b).abs().nan_to_num(nan=math.inf).amax(dim=1)
    largest = differences.max().item()
    if largest > found.value:
        example, position = places[int(differences.argmax())]
        found.value = largest
        found.where = {
            "split": example.split,
            "id": example.name,
            "position": position,
            "token": example.ids[position],
        }


# --- does the checkpoint know these ids? ---


def compare_with_frequencies(
    examples: Sequence[Example], sample: Sequence[Example], network: Any, model: Path
) -> dict[str, float | int] | None:
    """Mean loss at masked tokens: of the language-model head, and of guessing by token frequency.

    In at most MASKED_TEXTS texts of the sample, evenly spread, 15% of the tokens (special tokens excepted)
    become `<mask>`, drawn with a fixed seed. Frequencies are counts over all texts, plus one for each word.

    Args:
        examples: all texts with their ids.
        sample: the examples to mask tokens in.
        network: transformers' RobertaForMaskedLM.
        model: results/models/MODEL.

    Returns `loss` and `frequency_loss` (nats per token) and `tokens` (number of masked tokens). Returns None
    and warns if the checkpoint has no head or no `<mask>`, or transformers computes the head differently.
    """
    definition = read_json(model / "model.json")
    if not _have_same_head(model) or definition.get("mask_row", "given") != "given":
        log.warning(
            "no masked-language-model loss can show whether the checkpoint knows these token ids: head %s, "
            "activation %s, row of <mask> %s",
            *(definition.get(key, "given") for key in ("lm_head", "activation", "mask_row")),
        )
        return None
    chosen = sample[:: max(1, math.ceil(len(sample) / MASKED_TEXTS))]
    drawn = _draw(chosen)
    if not drawn:
        log.warning("the sample has no known tokens, so none can be masked")
        return None
    words = read_dictionary(model / "fairseq" / "dict.txt")
    targets = [chosen[row].ids[position] for row, position in drawn]
    found = {
        "loss": _masked_loss(chosen, drawn, words.index(MASK), network) / len(drawn),
        "frequency_loss": _frequency_loss(examples, targets, len(words)) / len(drawn),
        "tokens": len(drawn),
    }
    if not found["loss"] < found["frequency_loss"]:
        log.warning(
            "these token ids mean nothing to this checkpoint: its loss at %d masked tokens is %.2f nats per "
            "token, no better than guessing by frequency (%.2f); are dict.txt and the SentencePiece model "
            "or BPE its own, and are the texts in its language?",
            *(found["tokens"], found["loss"], found["frequency_loss"]),
        )
    return found


def _draw(examples: Sequence[Example]) -> list[tuple[int, int]]:
    """Places (example, position) of the tokens to mask, drawn with a fixed seed."""
    places = [
        (row, position)
        for row, example in enumerate(examples)
        for position, number in enumerate(example.ids)
        if number > naming.UNK
    ]
    return random.Random(0).sample(places, math.ceil(MASKED_SHARE * len(places)))


def _frequency_loss(examples: Sequence[Example], targets: Sequence[int], words: int) -> float:
    """Summed loss of predicting `targets` from the token frequencies of all texts, smoothed by one."""
    counts = Counter(number for example in examples for number in example.ids if number > naming.UNK)
    total = counts.total() + words
    return math.fsum(math.log(total / (counts[number] + 1)) for number in targets)


def _masked_loss(
    examples: Sequence[Example], drawn: Sequence[tuple[int, int]], mask: int, network: Any
) -> float:
    """Summed loss at the drawn (example, position); all drawn positions of a text are masked at once."""
    masked: dict[int, list[int]] = {}
    for row, position in drawn:
        masked.setdefault(row, []).append(position)
    total = 0.0
    with torch.inference_mode():
        for row, positions in masked.items():
            ids = torch.tensor([examples[row].ids])
            targets = ids[0, positions]
            ids[0, positions] = mask
            states = network.roberta(ids).last_hidden_state[0, positions]
            for start in range(0, len(positions), MASKED_CHUNK):
                chunk = slice(start, start + MASKED_CHUNK)
                logits = network.lm_head(states[chunk])
                losses = torch.nn.functional.cross_entropy(logits, targets[chunk], reduction="sum")
                total += losses.item()
    return total


# --- the models ---


def load_fairseq(model: Path) -> Any:
    """fairseq's RobertaModel from fairseq/model.pt, loaded by fairseq itself, in evaluation mode."""
    prepare_import()
    with imports.uncollected():
        from fairseq import checkpoint_utils

    folder = model / "fairseq"
    state = checkpoint_utils.load_checkpoint_to_cpu(str(folder / "model.pt"))
    state["cfg"]["task"]["data"] = str(folder)
    models, _, _ = checkpoint_utils.load_model_ensemble_and_task([str(folder / "model.pt")], state=state)
    return models[0].float().eval()


def load_huggingface(model: Path) -> Any:
    """transformers' RobertaForMaskedLM from huggingface/, in evaluation mode.

    Raises:
        SeedbedError: a weight is unknown or missing; transformers would draw a missing one at random.
    """
    with imports.uncollected():
        from transformers import RobertaForMaskedLM
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    folder = model / "huggingface"
    loaded, report = RobertaForMaskedLM.from_pretrained(
        folder, local_files_only=True, output_loading_info=True
    )
    wrong = {key: sorted(map(str, names)) for key, names in report.items() if names}
    if wrong:
        raise SeedbedError(
            "transformers does not find the expected weights",
            where=str(folder / "model.safetensors"),
            found=wrong,
            hint="remove the model's folder to convert it again",
        )
    return loaded.float().eval()


def _gate(what: str, found: Difference, tolerance: float, model: Path) -> None:
    if not found.value <= tolerance:
        raise SeedbedError(
            f"the {what} of fairseq and transformers differ by {found.value:.3g}, more than {tolerance:.3g}",
            where=f"{model / 'fairseq'} and {model / 'huggingface'}, at {found.where}",
            found=f"{found.value:.3g} where the largest value is {found.scale:.3g}",
            hint=f"the frameworks would not start from the same model: remove {model} to convert it again; "
            "if a small difference remains, it is rounding in a deep model: raise checks.parity_tolerance",
        )
