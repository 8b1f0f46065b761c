"""Token ids of a run's splits, and batches of them; prediction by length."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from seedbed.core import files, subsets
from seedbed.core.errors import SeedbedError
from seedbed.core.naming import EOS, PAD
from seedbed.core.recipes import declared
from seedbed.core.truncation import Pair, kept_of_pair, kept_of_text
from seedbed.running.jobs import PREDICTED, Job


class Text(NamedTuple):
    """Token ids of a text or pair, and their types if the model reads them."""

    ids: list[int]
    types: list[int] | None = None


@dataclass(frozen=True)
class Split:
    """Token ids and labels of a split.

    Attributes:
        examples: ids of the examples.
        ids: token ids of each text or pair, with special tokens such as <s> and </s>.
        labels: of each example the index of its class, 0 and 1 for each label of a set, or its number.
        types: types of the tokens, if the texts are pairs and the model reads them.
        pairs: numbers of tokens of the pairs before any truncation; None if the examples are single texts.
        rows: the place of each example in the file of the split, of training texts of a size; None if all are
            taken.
    """

    examples: list[str]
    ids: list[list[int]]
    labels: list[Any]
    types: list[list[int]] | None = None
    pairs: list[Pair] | None = None
    rows: list[int] | None = None

    @property
    def texts(self) -> list[Text]:
        """The tokens of each example."""
        return list(map(Text, self.ids, self.types or [None] * len(self.ids)))


def read_splits(job: Job) -> dict[str, Split]:
    """Token ids of the three splits of a run; see `read_tokens`.

    Of a recipe of a size, train has the first texts of the order that the data seed draws.
    """
    return read_tokens(job.tokens, job.model, job.settings, job.chosen)


def read_tokens(
    tokens: Path, definition: Path, settings: Mapping[str, Any], chosen: Collection[str] | None = None
) -> dict[str, Split]:
    """Token ids of the three splits, cut to the recipe's longest input; special tokens stay.

    A model without a limit needs the recipe's; the rule check_limits refuses a recipe without.

    Args:
        tokens: folder of the token ids.
        definition: model.json of the model.
        settings: `max_positions` and `family` of the recipe.
        chosen: ids of the training texts that are taken; None: all.

    Raises:
        SeedbedError: the recipe asks for longer inputs than the model has positions.
    """
    paths = {split: tokens / f"{split}.jsonl" for split in ("train", *PREDICTED)}
    return {
        split: split_of(files.read_jsonl(path), definition, settings, chosen if split == "train" else None)
        for split, path in paths.items()
    }


def longest(definition: Path, settings: Mapping[str, Any]) -> int:
    """The tokens of the longest input of a recipe, special ones included.

    Args:
        definition: model.json of the model.
        settings: `max_positions` and `family` of the recipe.

    Raises:
        SeedbedError: the recipe asks for longer inputs than the model has positions.
    """
    model_limit = files.read_json(definition)["max_positions"]
    limit = settings["max_positions"] or model_limit
    if model_limit is not None and limit > model_limit:
        raise SeedbedError(
            "the recipe's max_positions exceeds the model's positions",
            where=f"config, recipes.{declared(settings)}.max_positions",
            found=limit,
            hint=f"give at most {model_limit}, or null",
        )
    return limit


def split_of(
    rows: Sequence[dict[str, Any]],
    definition: Path,
    settings: Mapping[str, Any],
    chosen: Collection[str] | None = None,
) -> Split:
    """The split of the rows of a file of token ids; for arguments and errors see `read_tokens`."""
    limit, ending = longest(definition, settings), files.read_json(definition).get("ending", [EOS])
    rows, places = subsets.taken(rows, chosen)
    kept = [_kept(row, limit, len(ending)) for row in rows]
    return Split(
        examples=[row["id"] for row in rows],
        ids=_cut(rows, "ids", kept),
        labels=[row["label"] for row in rows],
        types=_cut(rows, "types", kept) if "types" in rows[0] else None,
        pairs=[Pair(*row["pair"]) for row in rows] if "pair" in rows[0] else None,
        rows=places,
    )


def _kept(row: Mapping[str, Any], limit: int, ending: int) -> list[int] | None:
    """The places of a row's tokens that stay; None if all do, as in most rows."""
    if len(row["ids"]) <= limit:
        return None
    if "pair" in row:
        return kept_of_pair(Pair(*row["pair"]), len(row["ids"]), limit)
    return kept_of_text(len(row["ids"]), limit, ending)


def _cut(
    rows: Sequence[Mapping[str, Any]], key: str, kept: Sequence[Sequence[int] | None]
) -> list[list[int]]:
    return [
        row[key] if places is None else [row[key][place] for place in places]
        for row, places in zip(rows, kept, strict=True)
    ]


def pad(
    batch: Sequence[Sequence[int]], token: int = PAD, left: bool = False, length: int = 0
) -> torch.Tensor:
    """Pad token ids to the longest of the batch, or to a `length` beyond; shape (batch, length), int64."""
    longest = max(length, *map(len, batch))
    gaps = [[token] * (longest - len(ids)) for ids in batch]
    rows = [[*gap, *ids] if left else [*ids, *gap] for ids, gap in zip(batch, gaps, strict=True)]
    return torch.tensor(rows, dtype=torch.int64)


def batches_by_length(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Indices of all examples in batches of similar length, so that little is padded."""
    order = sorted(range(len(lengths)), key=lambda index: lengths[index])
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


@torch.no_grad()
def predict_by_length(
    forward: Callable[[list[int]], torch.Tensor], lengths: Sequence[int], batch_size: int
) -> np.ndarray:
    """Outputs of each example, in the given order; examples of similar length share a batch.

    Args:
        forward: maps indices of examples to their outputs, shape (batch, outputs).
        lengths: length of each example in tokens.
        batch_size: examples per batch.

    Returns:
        Array of shape (examples, outputs).
    """
    order, parts = [], []
    for chosen in batches_by_length(lengths, batch_size):
        parts.append(forward(chosen))
        order += chosen
    stacked = torch.cat(parts).cpu().numpy()
    outputs = np.empty_like(stacked)
    outputs[order] = stacked
    return outputs


def predict_logits(
    forward: Callable[[torch.Tensor], torch.Tensor],
    ids: Sequence[Sequence[int]],
    batch_size: int,
    device: torch.device,
) -> np.ndarray:
    """Logits of each example, in the given order; texts of similar length share a batch.

    Args:
        forward: maps padded ids, shape (batch, length), to logits, shape (batch, classes).
        ids: token ids of each example.
        batch_size: examples per batch.
        device: the device of `forward`.

    Returns:
        float32 array of shape (examples, classes).
    """

    def logits(chosen: list[int]) -> torch.Tensor:
        return forward(pad([ids[index] for index in chosen]).to(device)).float()

    return predict_by_length(logits, [len(example) for example in ids], batch_size)
