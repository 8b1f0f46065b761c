"""The texts of a split, from which batches of several seeds are gathered."""

from collections.abc import Sequence

import numpy as np
import torch

from seedbed.core.naming import PAD
from seedbed.training.fused.batches import Batch, Filled


class Texts:
    """The texts of a split.

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
        tokens, widest = (-(-int(size.max()) // multiple) * multiple for size in (total, lengths))
        longest = longest or widest
        ids, positions, first, where = self._packed(chosen, tokens)
        within = np.arange(longest)
        inside = within < lengths[:, :, None]
        grid = first[:, :, None] + within
        # padding is spread, since the gradient of a place that is read a thousand times is slow on a GPU
        cells = texts * longest
        begins = np.arange(seeds)[:, None] * tokens  # of each seed's tokens
        spread = (begins + np.arange(cells) % total[:, None]).reshape(inside.shape)
        places = (np.arange(seeds)[:, None] * cells + np.arange(tokens) % cells).ravel()
        places[where] = np.flatnonzero(inside)
        in_text = np.zeros(seeds * tokens, dtype=bool)
        in_text[where] = True
        stretches = np.column_stack((lengths, tokens - total)).ravel()
        return Batch(
            ids=self._put(ids),
            positions=self._put(positions),
            first=self._put(first),
            in_text=self._put(in_text),
            grid=self._put(np.where(inside, grid, spread).reshape(seeds * texts, longest)),
            inside=self._put(inside.reshape(seeds * texts, 1, 1, longest)),
            places=self._put(places),
            stretches=stretches[stretches > 0].tolist(),
            real=_counted(lengths, sizes),
        )

    def filled(self, chosen: np.ndarray, sizes: np.ndarray | None = None, multiple: int = 1) -> Filled:
        """Gather texts for attention in half precision; arguments as of `batch`.

        Each seed has some padding, since a text without tokens is none.
        """
        seeds = len(chosen)
        lengths = self.lengths[chosen]
        tokens = (int(lengths.sum(axis=1).max()) // multiple + 1) * multiple
        ids, positions, first, _ = self._packed(chosen, tokens)
        padding = np.arange(seeds) * tokens + lengths.sum(axis=1)
        first = np.column_stack((first, padding))
        return Filled(
            ids=self._put(ids),
            positions=self._put(positions),
            first=self._put(first),
            starts=self._put(np.append(first, seeds * tokens).astype(np.int32)),
            real=_counted(lengths, sizes),
        )

    def _packed(self, chosen: np.ndarray, tokens: int) -> tuple[np.ndarray, ...]:
        """The texts of each seed one after another, filled up to a number of tokens.

        Returns:
            Token ids and positions, (seeds, tokens); place of each text's first token among the tokens of all
            seeds, (seeds, texts); and the place of each token of a text there, in order.
        """
        seeds = len(chosen)
        lengths = self.lengths[chosen]
        first = np.arange(seeds)[:, None] * tokens + lengths.cumsum(axis=1) - lengths
        counts = lengths.ravel()
        within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        where = np.repeat(first.ravel(), counts) + within
        ids = np.full(seeds * tokens, PAD, dtype=np.int64)
        ids[where] = self._flat[np.repeat(self._starts[chosen].ravel(), counts) + within]
        positions = np.zeros(seeds * tokens, dtype=np.int64)
        positions[where] = within
        return ids.reshape(seeds, tokens), positions.reshape(seeds, tokens), first, where

    def _put(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self._device, non_blocking=True)


def _counted(lengths: np.ndarray, sizes: np.ndarray | None) -> list[int]:
    """Number of tokens of each seed's texts that count; lengths are (seeds, texts)."""
    texts = lengths.shape[1] if sizes is None else sizes[:, None]
    return (lengths * (np.arange(lengths.shape[1]) < texts)).sum(axis=1).tolist()
