"""The texts of a batch as rows of tokens, (tokens, channels), and attention within each text.

`Packed` texts are concatenated without padding. Reviews of CLS-Books average 122 tokens, and the longest of a
random eight 235, so a padded batch wastes half of its computation. On a CPU that is half of the time; a GPU
mostly waits for the next kernel and is faster with few large ones.

`Padded` texts have one length, so that the computation depends only on shapes. So it does for `Filled` texts,
which are packed and then filled up to one of few numbers of tokens, half as many as padded texts have.

Each framework has a module that computes its encoder on these rows (`fairseq.packed`,
`transformers.packed_batches`, `fused.model`), since modules, norms and dropouts differ; the common attention
is here.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Packed:
    """Concatenated texts.

    Attributes:
        ids: token ids of all texts, (tokens,), int64.
        positions: place of each token in its text, from 0, (tokens,), int64.
        lengths: number of tokens of each text.
        first: place of each text's first token, (texts,), int64.
        types: type of each token, (tokens,), int64; None: all are of one type.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    lengths: list[int]
    first: torch.Tensor
    types: torch.Tensor | None = None

    rows = 1  # of tokens, in which `attention` sees the texts

    def attention(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout: float, scale: float | None
    ) -> torch.Tensor:
        """Attention (see `attention` below) of all tokens or, if `query` has fewer, of one per text."""
        asked = self.lengths if query.shape == key.shape else [1] * len(self.lengths)
        return attention(query, key, value, self.lengths, dropout, scale, asked)


@dataclass(frozen=True)
class Padded:
    """Texts padded to one length.

    Attributes:
        ids: token ids of all rows, (texts * length,), int64.
        positions: place of each token in its text, from 0, (texts * length,), int64; any value for padding.
        kept: whether a token is not padding, (texts, 1, 1, length).
        first: place of each text's first token, (texts,), int64.
        types: type of each token, (texts * length,), int64; None: all are of one type.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    kept: torch.Tensor
    first: torch.Tensor
    types: torch.Tensor | None = None

    @property
    def rows(self) -> int:
        """Number of rows of tokens, one per text."""
        return len(self.kept)

    def attention(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout: float, scale: float | None
    ) -> torch.Tensor:
        """Attention as of packed texts, on tensors (texts, heads, tokens, head size)."""
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=self.kept, dropout_p=dropout, scale=scale
        )


@dataclass(frozen=True)
class Filled:
    """Concatenated texts, filled up to a number of tokens, for a GPU in half precision.

    The padding is a text of its own, the last one, so that the kernel leaves no token's gradient unwritten.

    Attributes:
        ids: token ids of all texts, (tokens,), int64.
        positions: place of each token in its text, from 0, (tokens,), int64; 0 for padding.
        starts: place of each text's first token, and the number of tokens, (texts + 1,), int32.
        longest: no text has more tokens.
        types: types of the tokens, (tokens,), int64; None if the model reads none.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    starts: torch.Tensor
    longest: int
    types: torch.Tensor | None = None

    rows = 1  # of tokens, in which `attention` sees the texts

    @property
    def first(self) -> torch.Tensor:
        """Place of each text's first token, (texts,), int64."""
        return self.starts[:-1].long()

    def attention(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout: float, scale: float | None
    ) -> torch.Tensor:
        """Attention as of packed texts, by a kernel that reads the texts' places from the GPU."""
        alone = query.shape != key.shape
        asked = torch.arange(len(self.starts), dtype=torch.int32, device=query.device)
        found = flash(
            *(part[0].transpose(0, 1) for part in (query, key, value)),
            *(asked if alone else self.starts, self.starts),
            *(1 if alone else self.longest, self.longest),
            dropout,
            scale,
        )
        return found.transpose(0, 1)[None]


def flash(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    asked: torch.Tensor,
    starts: torch.Tensor,
    longest_asked: int,
    longest: int,
    dropout: float = 0.0,
    scale: float | None = None,
) -> torch.Tensor:
    """FlashAttention within each text, in half precision on a GPU; elsewhere the same by `attention`.

    Args:
        query: (asked tokens, heads, head size).
        key, value: (tokens, heads, head size).
        asked: place of each text's first token in `query`, and the number of these, (texts + 1,), int32.
        starts: the same for `key`.
        longest_asked, longest: no text has more tokens in `query` and `key`.
        dropout, scale: as in `attention`.

    Returns:
        Tensor of the shape of `query`.
    """
    if not query.is_cuda:
        parts = (part.transpose(0, 1)[None] for part in (query, key, value))
        lengths, asks = starts.diff().tolist(), asked.diff().tolist()
        return attention(*parts, lengths, dropout, scale, asks)[0].transpose(0, 1)
    size = query.shape[-1]
    room = -size % 8  # the kernel takes no other sizes of heads
    padded_parts = (F.pad(part, (0, room)) for part in (query, key, value)) if room else (query, key, value)
    # what scaled_dot_product_attention calls for nested tensors, whose lengths it would read on the CPU
    found = torch.ops.aten._flash_attention_forward(
        *padded_parts,
        *(asked, starts, longest_asked, longest),
        *(dropout, False, False),
        scale=size**-0.5 if scale is None else scale,
    )
    return found[0][..., :size]


MULTIPLE_OF_TOKENS = 128  # of `Filled` texts: 8 reviews of CLS-Books have 976 on average
Texts = Packed | Padded | Filled


def is_used_on(device: torch.device) -> bool:
    """Whether batches are packed on the device instead of padded: only on a CPU, see above."""
    return device.type == "cpu"


def can_fill(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether `flash` can be used: in half precision since Ampere, unless numbers must be repeatable."""
    if device.type != "cuda" or dtype == torch.float32 or torch.are_deterministic_algorithms_enabled():
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


def pack(batch: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None = None) -> Packed:
    """Concatenate the texts of a batch, and the types of their tokens; none may be empty."""
    lengths = [len(ids) for ids in batch]
    return Packed(
        ids=_concatenated(batch),
        positions=torch.cat([torch.arange(length) for length in lengths]),
        lengths=lengths,
        first=torch.tensor([0, *lengths[:-1]], dtype=torch.int64).cumsum(0),
        types=None if types is None else _concatenated(types),
    )


def filled(packed: Packed, padding: int) -> Filled:
    """Packed texts, filled up to a multiple of MULTIPLE_OF_TOKENS with padding; on the CPU."""
    tokens = len(packed.ids)
    room = MULTIPLE_OF_TOKENS - tokens % MULTIPLE_OF_TOKENS
    return Filled(
        ids=F.pad(packed.ids, (0, room), value=padding),
        positions=F.pad(packed.positions, (0, room)),
        starts=torch.tensor([*packed.first.tolist(), tokens, tokens + room], dtype=torch.int32),
        longest=max(*packed.lengths, room),
        types=None if packed.types is None else F.pad(packed.types, (0, room)),
    )


def _concatenated(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    return torch.tensor([number for row in rows for number in row], dtype=torch.int64)


def padded(ids: torch.Tensor, padding: int, types: torch.Tensor | None = None) -> Padded:
    """A padded batch from token ids and types, (texts, length); it reads no values, as graphs require."""
    kept = ids.ne(padding)
    texts, length = ids.shape
    begins = torch.arange(texts, device=ids.device) * length
    return Padded(
        ids=ids.flatten(),
        positions=(kept.cumsum(1) - 1).clamp(min=0).flatten(),
        kept=kept[:, None, None],
        first=begins + kept.long().argmax(1),
        types=None if types is None else types.flatten(),
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
    """Scaled dot-product attention (Vaswani et al. 2017) within each text.

    Neighbours of one length are computed together, so texts sorted by length take the fewest calls.

    Args:
        query, key, value: (1, heads, tokens, head size); `query` may have only some of the tokens.
        lengths: number of tokens of each text, in their order; the sum is `tokens`.
        dropout: probability of dropping an attention weight; 0 outside training.
        scale: factor of the products; None: 1 / sqrt(head size).
        asked: number of tokens of each text in `query`; None: all.

    Returns:
        Tensor of the shape of `query`.
    """
    counts = zip(lengths if asked is None else asked, lengths, strict=True)
    groups = [(ask, length, len(list(same))) for (ask, length), same in itertools.groupby(counts)]
    asked_tokens = [texts * ask for ask, _, texts in groups]
    tokens = [texts * length for _, length, texts in groups]
    # slices would have a gradient of all tokens each, which took 4% of an update of the demo
    shares = zip(query.split(asked_tokens, 2), key.split(tokens, 2), value.split(tokens, 2), strict=True)
    found = []
    for (_, _, texts), share in zip(groups, shares, strict=True):
        parts = (_by_text(part, texts) for part in share)
        out = F.scaled_dot_product_attention(*parts, dropout_p=dropout, scale=scale)
        found.append(out.transpose(1, 2).flatten(0, 1))
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
    """Attention on a layer's projections, (tokens, channels), with all heads side by side.

    Args:
        texts: the batch.
        query: of all tokens, or of one token of each text.
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
