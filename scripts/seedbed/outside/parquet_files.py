"""Read Parquet in batches of rows: texts and integers become codes at once."""

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seedbed.core.errors import SeedbedError
from seedbed.outside.table_files import Batches, TableFile, truths, unreadable

MAGIC = b"PAR1"
ROWS = 2**18  # that are read at once


def open_parquet(path: Path) -> TableFile:
    """A Parquet file.

    Raises:
        SeedbedError: it is damaged; of `batches`: it is damaged further on, or a column is of a wrong type.
    """
    with _explaining(path):
        opened = pq.ParquetFile(path)
    return TableFile(opened.schema_arrow.names, opened.metadata.num_rows, 1, partial(_batches, path, opened))


def _batches(path: Path, opened: pq.ParquetFile, columns: Sequence[str], score: str | None) -> Batches:
    with _explaining(path), opened:
        for batch in opened.iter_batches(ROWS, columns=columns):
            yield {
                name: _as_scores(batch.column(name), name, path)
                if name == score
                else _as_codes(batch.column(name), name, path)
                for name in columns
            }


def _as_codes(array: pa.Array, name: str, path: Path) -> pa.DictionaryArray:
    """The values as text, and their codes; NaN, with which pandas writes no value, becomes null."""
    if pa.types.is_nested(array.type) or pa.types.is_null(array.type):
        raise _wrong_type(array, name, path, "text or an integer")
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), None, array)
    coded = array.dictionary_encode()
    names = coded.dictionary.cast(pa.string())
    names.validate(full=True)  # a damaged file may have bytes that are not UTF-8
    return pa.DictionaryArray.from_arrays(coded.indices, names)


def _as_scores(array: pa.Array, name: str, path: Path) -> pa.Array:
    """The values as float32; a bool, and the words true and false, as 1 and 0."""
    if pa.types.is_boolean(array.type) or pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        return array.cast(pa.float32(), safe=False)  # rounding a double is meant
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return truths(_as_codes(array, name, path))
    raise _wrong_type(array, name, path, "a number, or true and false")


def _wrong_type(array: pa.Array, name: str, path: Path, wanted: str) -> SeedbedError:
    return SeedbedError(
        f"the column {name!r} has a type that cannot be used",
        where=str(path),
        found=str(array.type),
        hint=f"write {wanted} into each cell",
    )


@contextlib.contextmanager
def _explaining(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        message = str(error).partition("\n")[0]
        raise unreadable(path, f"Parquet that is damaged or cut: {message}") from None
