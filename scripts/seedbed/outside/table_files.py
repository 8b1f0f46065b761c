"""What files of tables have in common, CSV and Parquet: opening them, and errors of reading them."""

import contextlib
import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seedbed.core.errors import SeedbedError

GZIP = b"\x1f\x8b"
SAMPLE = 2**20  # bytes from which delimiter, length of rows and kind of scores are taken
AGAIN = "copy the file again; if it is damaged there, too, write it anew"
CODES = pa.dictionary(pa.int32(), pa.string())
TRUTHS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "1": 1.0, "0": 0.0}

Batches = Iterator[Mapping[str, pa.Array]]  # by column: `CODES`, or float32 of scores


@dataclass(frozen=True)
class TableFile:
    """A file whose columns are known and whose rows are not read yet.

    Attributes:
        header: the names of the columns.
        rows: their number, estimated where the file does not tell it.
        first_number: what people call the first row: 2 below a header, else 1.
        batches: the rows of some columns, with the one of scores (or None) as float32.
    """

    header: Sequence[str]
    rows: int
    first_number: int
    batches: Callable[[Sequence[str], str | None], Batches]


def first_bytes(path: Path) -> bytes:
    """The first bytes of a file, decompressed if it is gzip, at most `SAMPLE`.

    Raises:
        SeedbedError: it is a folder, empty or damaged.
    """
    if path.is_dir():
        raise SeedbedError(
            "a folder, where a file of results is meant",
            where=str(path),
            found=", ".join(sorted(item.name for item in path.iterdir())[:5]) or "an empty folder",
            hint="name the files in it",
        )
    with explaining_damage(path), opened(path) as stream:
        sample = stream.read(SAMPLE)
    if not sample.strip():
        raise unreadable(path, "an empty file")
    return sample


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A stream of the bytes of a file, decompressed if it is gzip."""
    with open(path, "rb") as stream:
        packed = stream.read(len(GZIP)) == GZIP
        stream.seek(0)
        if packed:
            with gzip.open(stream) as unpacked:
                yield unpacked
        else:
            yield stream


@contextlib.contextmanager
def explaining_damage(path: Path) -> Iterator[None]:
    """Errors of decompression as SeedbedError."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise unreadable(path, f"compressed data that are damaged or cut: {error}") from None


def unreadable(path: Path, found: str, hint: str = AGAIN) -> SeedbedError:
    """The error of a file that is damaged or no table."""
    return SeedbedError(
        "the file cannot be read as a table",
        where=str(path),
        found=found,
        hint=hint,
    )


def truths(words: pa.DictionaryArray) -> pa.Array:
    """1 and 0 for true and false, float32; NaN for anything else."""
    values = [TRUTHS.get((word or "").strip().casefold(), np.nan) for word in words.dictionary.to_pylist()]
    return pc.take(pa.array(values, pa.float32()), words.indices)
