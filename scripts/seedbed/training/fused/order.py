"""The order of training examples in each framework's run of a seed."""

from collections.abc import Iterator

import numpy as np
import torch
from torch.utils.data import RandomSampler

Batches = list[list[int]]


def orders(framework: str, examples: int, batch_size: int, data_seed: int) -> Iterator[Batches]:
    """Batches of indices of each epoch, endlessly, as in a separate run with this data seed.

    Args:
        framework: `fairseq` or `transformers`.
        examples: size of the training split.
        batch_size: examples per update; the last batch of an epoch may be smaller.
        data_seed: the run's data seed.
    """
    return ORDERS[framework](examples, batch_size, data_seed)


def _transformers(examples: int, batch_size: int, data_seed: int) -> Iterator[Batches]:
    """One stream of random numbers draws a permutation for each epoch."""
    sampler = RandomSampler(range(examples), generator=torch.Generator().manual_seed(data_seed))
    while True:
        yield _cut(list(sampler), batch_size)


def _fairseq(examples: int, batch_size: int, data_seed: int) -> Iterator[Batches]:
    """Batches are drawn once, their order in each epoch (task sentence_prediction, EpochBatchIterator)."""
    rank = np.random.RandomState(data_seed).permutation(examples)
    batches = _cut(np.argsort(rank).tolist(), batch_size)
    epoch = 0
    while True:
        epoch += 1
        shuffled = list(batches)
        np.random.RandomState(data_seed + epoch).shuffle(shuffled)
        yield shuffled


def _cut(indices: list[int], size: int) -> Batches:
    return [indices[start : start + size] for start in range(0, len(indices), size)]


ORDERS = {"fairseq": _fairseq, "transformers": _transformers}
