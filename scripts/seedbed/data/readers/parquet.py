"""Read Parquet files, also those that the Hugging Face hub has of a dataset."""

from collections.abc import Mapping
from typing import Any

from seedbed.data.readers.arrow_columns import records_of, top_columns
from seedbed.data.readers.files import Record, SourceFile, explaining


def read_parquet(file: SourceFile, definition: Mapping[str, Any]) -> list[Record]:
    """Read the columns of a Parquet file that the dataset names, also inside structs (`review.text`).

    A label is a string, a number, a boolean, a category, or a ClassLabel of the library `datasets`.

    Raises:
        SeedbedError: the file is damaged, or a column is missing or of another type.
    """
    import datasets
    import pyarrow as pa
    import pyarrow.parquet as pq

    remedy = "it may be truncated: fetch it again; or set format to what it is"
    with explaining(file, "the file cannot be read as Parquet", remedy):
        with file.open() as stream, pq.ParquetFile(stream) as opened:
            schema = opened.schema_arrow
            table = opened.read(columns=top_columns(schema.names, definition))
        for place, field in enumerate(table.schema):
            if pa.types.is_dictionary(field.type):  # pandas' categories
                values = table.column(place).cast(field.type.value_type)
                table = table.set_column(place, field.name, values)
        table.validate(full=True)  # offsets and UTF-8, as the files are untrusted
        features = dict.fromkeys(schema.names) | datasets.Features.from_arrow_schema(table.schema)
    return records_of(table, features, file, definition)
