"""Batches of several seeds, and attention within each text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from seedbed.training import packing

# --- batches ---


@dataclass(frozen=True)
class Batch:
    """Texts of several seeds, packed for each seed; seeds with fewer tokens are padded with <pad>.

    Attributes:
        ids: token ids, (seeds, tokens), int64.
        positions: place of each token in its text, from 0, (seeds, tokens), int64.
        first: place of each text's first token among the tokens of all seeds, (seeds, texts), int64.
        in_text: whether a token belongs to a text, (seeds * tokens,).
        grid: place of each text's tokens among the tokens of all seeds, (seeds * texts, longest), int64;
            behind a text's end any tokens of the same seed, since another's numbers may be NaN.
        inside: whether `grid` is within the text, (seeds * texts, 1, 1, longest).
        places: place of each token in the flattened grid, (seeds * tokens,), int64; for padding, any place of
            the same seed.
        stretches: lengths of the texts and of each seed's padding, in order.
        real: number of tokens of each seed's texts, without padding.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    first: torch.Tensor
    in_text: torch.Tensor
    grid: torch.Tensor
    inside: torch.Tensor
    places: torch.Tensor
    stretches: Sequence[int] = ()
    real: Sequence[int] = ()

    def of_texts(self, rows: torch.Tensor) -> torch.Tensor:
        """Those of `rows`, (seeds, texts, width), that belong to texts: all."""
        return rows

    def within(self, joined: torch.Tensor, dropout: float) -> torch.Tensor:
        """Attention of all tokens of each text to each other.

        Args:
            joined: query, key and value of all tokens, (seeds * tokens, 3, heads, head size).
            dropout: probability of dropping an attention weight.

        Returns:
            (seeds * tokens, heads, head size).
        """
        if packing.is_used_on(joined.device):
            parts = (part.transpose(0, 1)[None] for part in joined.unbind(1))
            return packing.attention(*parts, self.stretches, dropout)[0].transpose(0, 1)
        query, key, value = to_grid(joined, self).unbind(2)
        return from_grid(self._attend(query, key, value, dropout).flatten(0, 1), self)

    def from_first(self, query: torch.Tensor, joined: torch.Tensor, dropout: float) -> torch.Tensor:
        """Attention of the first token of each text to all of the text.

        Args:
            query: (seeds * texts, heads, head size).
            joined: key and value of all tokens, (seeds * tokens, 2, heads, head size).
            dropout: as in `within`.

        Returns:
            Tensor of the shape of `query`.
        """
        key, value = to_grid(joined, self).unbind(2)
        return self._attend(query[:, None], key, value, dropout).flatten(0, 1)

    def _attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout: float
    ) -> torch.Tensor:
        """On tensors (seeds * texts, tokens, heads, head size)."""
        parts = (part.transpose(1, 2) for part in (query, key, value))
        out = F.scaled_dot_product_attention(*parts, attn_mask=self.inside, dropout_p=dropout)
        return out.transpose(1, 2)


@dataclass(frozen=True)
class Filled:
    """Like `Batch`, for a GPU in half precision: a seed's padding is a text of its own, its last.

    Attributes:
        ids, positions, real: as of `Batch`.
        first: place of each text's first token among the tokens of all seeds, (seeds, texts + 1), int64.
        starts: the same in one row, and the number of all tokens, (seeds * (texts + 1) + 1,), int32.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    first: torch.Tensor
    starts: torch.Tensor
    real: Sequence[int] = ()

    def of_texts(self, rows: torch.Tensor) -> torch.Tensor:
        """Those of `rows`, (seeds, texts + 1, width), that belong to texts: all but the last."""
        return rows[:, :-1]

    def within(self, joined: torch.Tensor, dropout: float) -> torch.Tensor:
        """As of `Batch`."""
        longest = self.ids.shape[1]  # a seed's padding may be longer than any text
        return packing.flash(*joined.unbind(1), self.starts, self.starts, longest, longest, dropout)

    def from_first(self, query: torch.Tensor, joined: torch.Tensor, dropout: float) -> torch.Tensor:
        """As of `Batch`."""
        asked = torch.arange(len(self.starts), dtype=torch.int32, device=query.device)
        return packing.flash(query, *joined.unbind(1), asked, self.starts, 1, self.ids.shape[1], dropout)


# --- conversion between rows of tokens and the grid of texts for attention ---


def to_grid(tokens: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Rows of tokens, (seeds * tokens, ...), in the grid of texts, (seeds * texts, longest, ...)."""
    return _Moved.apply(tokens, batch.grid, batch.places, batch.in_text)


def from_grid(cells: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Cells of the grid, (seeds * texts * longest, ...), as rows of tokens, (seeds * tokens, ...)."""
    return _Moved.apply(cells, batch.places, batch.grid, batch.inside)


class _Moved(torch.autograd.Function):
    """`rows[there]`, where each counted row occurs once, at `back`.

    So its gradient can be read from there, while PyTorch would sort all places and add.
    """

    @staticmethod
    def forward(
        ctx: Any, rows: torch.Tensor, there: torch.Tensor, back: torch.Tensor, counts: torch.Tensor
    ) -> torch.Tensor:
        """Move.

        Args:
            ctx: PyTorch's.
            rows: (rows, ...).
            there: the row of each place, of any shape.
            back: for each row, its place, of any shape.
            counts: for each row, whether it counts; places with other rows are not used.
        """
        ctx.save_for_backward(back, counts)
        ctx.dimensions = there.dim()
        return rows[there]

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Move the gradient back."""
        back, counts = (part.flatten() for part in ctx.saved_tensors)
        rest = gradient.shape[ctx.dimensions :]
        moved = gradient.reshape(-1, *rest)[back]
        return moved.masked_fill(~counts.view(-1, *[1] * len(rest)), 0), None, None, None
