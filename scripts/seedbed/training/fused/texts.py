"""Batches of several seeds: concatenated texts, and their places for attention."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from seedbed.core.naming import PAD


@dataclass(frozen=True)
class Batch:
    """Texts of several seeds, packed for each seed; seeds with fewer tokens are padded with <pad>.

    Attributes:
        ids: token ids, (seeds, tokens), int64.
        positions: place of each token in its text, from 0, (seeds, tokens), int64.
        in_text: whether a token belongs to a text, (seeds * tokens,).
        first: place of each text's first token among its seed's tokens, (seeds, texts), int64.
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
    in_text: torch.Tensor
    first: torch.Tensor
    grid: torch.Tensor
    inside: torch.Tensor
    places: torch.Tensor
    stretches: list[int]
    real: list[int]


class Texts:
    """The texts of a split, from which batches are gathered.

    Args:
        ids: token ids of each text.
        device: the device of batches.
    """

    def __init__(self, ids: Sequence[Sequence[int]], device: torch.device):
        self.lengths = np.array([len(text) for text in ids], dtype=np.int64)
        self.longest = int(self.lengths.max())
        self._starts = np.concatenate(([0], self.lengths[:-1].cumsum()))
        self._flat = np.concatenate([np.asarray(text, dtype=np.int64) for text in ids])
        self._device = device

    def batch(
        self,
        chosen: np.ndarray,
        sizes: np.ndarray | None = None,
        multiple: int = 1,
        longest: int | None = None,
    ) -> Batch:
        """Gather texts.

        Args:
            chosen: index of each text, (seeds, texts).
            sizes: for each seed, how many of its texts count; the others are padding. None: all.
            multiple: tokens of a seed, and the longest text, are padded to a multiple of it.
            longest: the longest text of any batch; None: the longest of these texts.
        """
        seeds, texts = chosen.shape
        lengths = self.lengths[chosen]
        total = lengths.sum(axis=1)
        counted = total if sizes is None else (lengths * (np.arange(texts) < sizes[:, None])).sum(axis=1)
        tokens, widest = (-(-int(size.max()) // multiple) * multiple for size in (total, lengths))
        longest = longest or widest
        first = lengths.cumsum(axis=1) - lengths
        within = np.arange(longest)
        inside = within < lengths[:, :, None]
        begins = np.arange(seeds)[:, None] * tokens  # of each seed's tokens
        grid = (begins + first)[:, :, None] + within
        # padding is spread, since the gradient of a place that is read a thousand times is slow on a GPU
        cells = texts * longest
        spread = (begins + np.arange(cells) % total[:, None]).reshape(inside.shape)
        where = grid[inside]

        ids = np.full(seeds * tokens, PAD, dtype=np.int64)
        ids[where] = self._flat[(self._starts[chosen][:, :, None] + within)[inside]]
        positions = np.zeros(seeds * tokens, dtype=np.int64)
        positions[where] = np.broadcast_to(within, inside.shape)[inside]
        places = (np.arange(seeds)[:, None] * cells + np.arange(tokens) % cells).ravel()
        places[where] = np.flatnonzero(inside)
        in_text = np.zeros(seeds * tokens, dtype=bool)
        in_text[where] = True
        stretches = np.column_stack((lengths, tokens - total)).ravel()
        return Batch(
            ids=self._put(ids.reshape(seeds, tokens)),
            positions=self._put(positions.reshape(seeds, tokens)),
            in_text=self._put(in_text),
            first=self._put(first),
            grid=self._put(np.where(inside, grid, spread).reshape(seeds * texts, longest)),
            inside=self._put(inside.reshape(seeds * texts, 1, 1, longest)),
            places=self._put(places),
            stretches=stretches[stretches > 0].tolist(),
            real=counted.tolist(),
        )

    def _put(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self._device, non_blocking=True)
