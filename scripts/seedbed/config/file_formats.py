"""The formats of a dataset's files: one table for the config, the search for files, and the readers.

`seedbed.data.readers` has a module for each format.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seedbed.core.tasks import ANSWERS, CLASSES, LABEL_SETS, VALUES

STATE = "state.json"  # in each split's folder written by datasets.save_to_disk
# keys of a dataset that say how its files are read, with the value that changes nothing
OPTIONS = {
    "delimiter": None, "encoding": None, "header": None, "quoting": "standard", "records": None,
    "sheet": None,
}  # fmt: skip
TEXT = ("encoding",)
LINES = (*TEXT, "header", "quoting")
ALL = (CLASSES, LABEL_SETS, VALUES, ANSWERS)


@dataclass(frozen=True)
class Format:
    """A format of files.

    Attributes:
        about: what it is, for the reference.
        outputs: the kinds of outputs whose datasets may have it.
        options: those of OPTIONS that it takes.
        endings: of training files whose format need not be named.
        suffixes: for each file of a split, the ending that its path in the config leaves out; none if the
            path is a folder.
        is_folder: whether a split is a whole folder.
        without_columns: why the format has no further columns, of a second text or of clusters; empty if it
            may have them.
        unit: what a place in a file counts, for messages.
    """

    about: str
    outputs: tuple[str, ...] = ALL
    options: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ("",)
    is_folder: bool = False
    without_columns: str = ""
    unit: str = "line"

    @property
    def is_text(self) -> bool:
        """Whether its files are text, which may be compressed with gzip and have another encoding."""
        return "encoding" in self.options


FORMATS = {
    "lab": Format(
        "NAME.review and NAME.label, one example per line",
        outputs=(CLASSES,),
        options=TEXT,
        suffixes=(".review", ".label"),
        without_columns="its files have a text and a label on each line, nothing else: write them as csv, "
        "tsv or jsonl",
    ),
    "csv": Format(
        "named columns; cells may have several lines", options=("delimiter", *LINES), endings=("csv",)
    ),
    "tsv": Format("named columns, separated by tabs; one row per line", options=LINES, endings=("tsv",)),
    "jsonl": Format("one JSON object per line", options=TEXT, endings=("jsonl", "ndjson")),
    "json": Format(
        'a list of JSON objects, or {"data": list}, or a list at the path in records',
        options=(*TEXT, "records"),
        endings=("json",),
        unit="item",
    ),
    "parquet": Format(
        "Parquet; files may name splits as on the Hugging Face hub (train for data/train-*.parquet)",
        endings=("parquet",),
        unit="row",
    ),
    "excel": Format(
        "a sheet of an .xlsx workbook", options=("header", "sheet"), endings=("xlsx",), unit="row"
    ),
    "folders": Format(
        "one folder per class with a .txt file per text: train/CLASS/*.txt",
        outputs=(CLASSES,),
        options=TEXT,
        suffixes=(),
        is_folder=True,
        without_columns="a text's class is the name of its folder, and it has no other columns: write the "
        "texts as csv, tsv or jsonl",
    ),
    "webis_cls": Format(
        "the XML of Webis-CLS-10, label 1 for ratings above 3, else 0",
        outputs=(CLASSES,),
        without_columns="its elements are read for text and rating alone: write the reviews as csv, tsv or "
        "jsonl",
    ),
    "huggingface": Format(
        "a dataset written by datasets.save_to_disk, files name its splits",
        outputs=(CLASSES, LABEL_SETS, VALUES),
        suffixes=(f"/{STATE}",),
        is_folder=True,
        unit="row",
    ),
}


def formats_of(outputs: str) -> tuple[str, ...]:
    """The formats of datasets with outputs of a kind."""
    return tuple(name for name, form in FORMATS.items() if outputs in form.outputs)


def describe(outputs: str) -> str:
    """These formats, for the reference."""
    return "; ".join(f"{name}: {FORMATS[name].about}" for name in formats_of(outputs))


def format_by_ending(path: str, outputs: str) -> str | None:
    """The format that a file's ending tells, also before .gz; None if it tells none."""
    ending = path.lower().removesuffix(".gz").rpartition(".")[2]
    return next((name for name in formats_of(outputs) if ending in FORMATS[name].endings), None)


def known_endings(outputs: str) -> list[str]:
    """The endings that tell a format, with their dots."""
    return [f".{ending}" for name in formats_of(outputs) for ending in FORMATS[name].endings]


def wanted_columns(definition: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The columns of a dataset: the key under `columns` of each, and its name."""
    return [
        (key, name)
        for key, names in definition["columns"].items()
        for name in ([names] if isinstance(names, str) else names or ())
    ]
