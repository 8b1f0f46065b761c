"""Captions of figures: a JSON file that the rules which draw write, and that summary and report read."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, write_json


def write_captions(path: str | Path, captions: Mapping[str, str]) -> None:
    """Write captions by the name of their figure, atomically."""
    write_json(path, captions)


def read_captions(paths: Sequence[str | Path], figures: Sequence[str | Path]) -> dict[str, str]:
    """The caption of each figure by its name, in the order of `figures`.

    Args:
        paths: files of `write_captions`.
        figures: .../NAME.svg.

    Raises:
        SeedbedError: a file is not one of captions, or no file has the caption of a figure.
    """
    known: dict[str, str] = {}
    for path in paths:
        known |= _read(path)
    names = [Path(figure).stem for figure in figures]
    missing = [name for name in names if not known.get(name)]
    if missing:
        raise SeedbedError(
            "figures without a caption",
            where=", ".join(map(str, paths)),
            found=f"no caption of {', '.join(missing)}",
            hint="remove these files and let Snakemake draw the figures again",
        )
    return {name: known[name] for name in names}


def _read(path: str | Path) -> dict[str, str]:
    try:
        found = read_json(path)
    except ValueError as error:
        problem = f"invalid JSON: {error}"
    else:
        if isinstance(found, dict) and all(isinstance(caption, str) for caption in found.values()):
            return found
        problem = "no object of strings"
    raise SeedbedError(
        "cannot read the captions of figures",
        where=str(path),
        found=problem,
        hint="remove the file and let Snakemake draw the figures again",
    )
