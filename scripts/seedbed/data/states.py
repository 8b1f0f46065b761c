"""Read files of an encoder's states: two tensors of each split, SPLIT.first and SPLIT.mean."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from seedbed.core.errors import SeedbedError
from seedbed.core.splits import SPLITS
from seedbed.core.states import FIRST, KINDS


def read(path: Path, texts: Mapping[str, int]) -> dict[str, dict[str, np.ndarray]]:
    """The states of each kind and split, float32 of shape (examples, width).

    Args:
        path: the file.
        texts: number of texts of each split.

    Raises:
        SeedbedError: the file has another number of states.
    """
    stored = load_file(path)
    for split, number in texts.items():
        if (found := len(stored[f"{split}.{FIRST}"])) != number:
            raise SeedbedError(
                f"the number of states of the split {split!r} is not that of its texts",
                where=str(path),
                found=f"{found} states, {number} texts",
                hint="make them again: snakemake --forcerun encode_states",
            )
    return {kind: {split: stored[f"{split}.{kind}"] for split in SPLITS} for kind in KINDS}
