"""The texts of a batch as rows of tokens, (tokens, channels), and attention within each text.

`Packed` texts lie one behind another, without padding. Reviews of CLS-Books average 122 tokens and the
longest of a random eight 235, so half of what a padded batch computes is thrown away. On a CPU that is half
of the time; a GPU mostly waits for the next kernel and is faster with few large ones.

`Padded` texts are filled up to one length, so that shapes alone decide what is computed.

Each framework's encoder is computed on these rows by a module of its own (`fairseq.packed`,
`transformers.packed_batches`, `fused.model`): their modules, norms and dropouts differ, and attention, which
does not, is here.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Packed:
    """Texts one behind another.

    Attributes:
        ids: token ids of all texts, (tokens,), int64.
        positions: place of each token in its text, from 0, (tokens,), int64.
        lengths: tokens of each text.
        first: place of each text's first token, (texts,), int64.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    lengths: list[int]
    first: torch.Tensor

    rows = 1  # of tokens, in which `attention` sees the texts

    def attention(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout: float, scale: float | None
    ) -> torch.Tensor:
        """As `attention` below, of all tokens or, where `query` has fewer, of one of each text."""
        asked = self.lengths if query.shape == key.shape else [1] * len(self.lengths)
        return attention(query, key, value, self.lengths, dropout, scale, asked)


@dataclass(frozen=True)
class Padded:
    """Texts filled up to one length.

    Attributes:
        ids: token ids of all rows, (texts * length,), int64.
        positions: place of each token in its text, from 0, (texts * length,), int64; anything for padding.
        kept: whether a token is no padding, (texts, 1, 1, length).
        first: place of each text's first token, (texts,), int64.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    kept: torch.Tensor
    first: torch.Tensor

    @property
    def rows(self) -> int:
        """Rows of tokens, one a text."""
        return len(self.kept)

    def attention(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout: float, scale: float | None
    ) -> torch.Tensor:
        """As that of packed texts; (texts, heads, tokens, head size)."""
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=self.kept, dropout_p=dropout, scale=scale
        )


Texts = Packed | Padded


def is_used_on(device: torch.device) -> bool:
    """Whether batches are packed on the device, not padded: on a CPU, see above."""
    return device.type == "cpu"


def pack(batch: Sequence[Sequence[int]]) -> Packed:
    """Put the texts of a batch one behind another; none may be empty."""
    lengths = [len(ids) for ids in batch]
    return Packed(
        ids=torch.tensor([token for ids in batch for token in ids], dtype=torch.int64),
        positions=torch.cat([torch.arange(length) for length in lengths]),
        lengths=lengths,
        first=torch.tensor([0, *lengths[:-1]], dtype=torch.int64).cumsum(0),
    )


def padded(ids: torch.Tensor, padding: int) -> Padded:
    """A padded batch of token ids, (texts, length); looks at no value, so that a graph can be made of it."""
    kept = ids.ne(padding)
    texts, length = ids.shape
    begins = torch.arange(texts, device=ids.device) * length
    return Padded(
        ids=ids.flatten(),
        positions=(kept.cumsum(1) - 1).clamp(min=0).flatten(),
        kept=kept[:, None, None],
        first=begins + kept.long().argmax(1),
    )


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    lengths: Sequence[int],
    dropout: float = 0.0,
    scale: float | None = None,
    asked: Sequence[int] | None = None,
) -> torch.Tensor:
    """Scaled dot-product attention (Vaswani et al. 2017) of each text to itself alone.

    Neighbours of one length are computed together: texts in the order of their lengths take the fewest calls.

    Args:
        query, key, value: (1, heads, tokens, head size); of `query`, the tokens that are asked for.
        lengths: tokens of each text, in their order; they add up to `tokens`.
        dropout: probability with which an attention weight is dropped; 0 outside training.
        scale: factor of the products; None: 1 / sqrt(head size).
        asked: tokens of each text in `query`; None: all.

    Returns:
        Tensor of the shape of `query`.
    """
    counts = list(zip(lengths if asked is None else asked, lengths, strict=True))
    found, begin_asked, begin = [], 0, 0
    for (ask, length), same in itertools.groupby(counts):
        texts = len(list(same))
        end_asked, end = begin_asked + texts * ask, begin + texts * length
        parts = (
            _by_text(query[:, :, begin_asked:end_asked], texts),
            _by_text(key[:, :, begin:end], texts),
            _by_text(value[:, :, begin:end], texts),
        )
        out = F.scaled_dot_product_attention(*parts, dropout_p=dropout, scale=scale)
        found.append(out.transpose(1, 2).flatten(0, 1))
        begin_asked, begin = end_asked, end
    return torch.cat(found).transpose(0, 1)[None]


def attend(
    texts: Texts,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    heads: int,
    dropout: float = 0.0,
    scale: float | None = None,
) -> torch.Tensor:
    """Attention of what a layer's projections give, (tokens, channels), all heads side by side.

    Args:
        texts: the batch.
        query: of all tokens, or of one of each text.
        key, value: of all tokens.
        heads: number of heads, which share the channels.
        dropout, scale: as in `attention`.

    Returns:
        Tensor of the shape of `query`.
    """
    size = key.shape[1] // heads
    parts = (part.view(texts.rows, -1, heads, size).transpose(1, 2) for part in (query, key, value))
    return texts.attention(*parts, dropout, scale).transpose(1, 2).reshape(query.shape)


def _by_text(tensor: torch.Tensor, texts: int) -> torch.Tensor:
    """(1, heads, tokens, head size) of equally long texts as (texts, heads, tokens of a text, head size)."""
    return tensor[0].unflatten(1, (texts, -1)).transpose(0, 1)
