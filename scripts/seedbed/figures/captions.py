"""Captions of figures, in JSON files that the drawing rules write, and that summary and report read."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, write_json
from seedbed.core.wording import Words


@dataclass(frozen=True)
class Caption:
    """What stands below a figure.

    Attributes:
        text: at most two sentences: what is shown, its unit and the number of seeds.
        details: what marks, lines and bars mean, and what is left out; the report folds it away.
    """

    text: str
    details: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.details}".rstrip()


def make_caption(words: Words, macro: str, *values: Any, **more: Any) -> Caption:
    """A caption from the macros MACRO and MACRO_details of a template, which take the same values."""
    return Caption(words.say(macro, *values, **more), words.say(f"{macro}_details", *values, **more))


def write_captions(path: str | Path, captions: Mapping[str, Caption]) -> None:
    """Write captions by the name of their figure, atomically."""
    write_json(path, {name: asdict(found) for name, found in captions.items()})


def read_captions(paths: Sequence[str | Path], figures: Sequence[str | Path]) -> dict[str, Caption]:
    """The caption of each figure by its name, in the order of `figures`.

    Args:
        paths: files of `write_captions`.
        figures: .../NAME.svg.

    Raises:
        SeedbedError: a file is not one of captions, or no file has the caption of a figure.
    """
    known: dict[str, Caption] = {}
    for path in paths:
        known |= _read(path)
    names = [Path(figure).stem for figure in figures]
    missing = [name for name in names if name not in known or not known[name].text]
    if missing:
        raise SeedbedError(
            "figures without a caption",
            where=", ".join(map(str, paths)),
            found=f"no caption of {', '.join(missing)}",
            hint="remove these files and let Snakemake draw the figures again",
        )
    return {name: known[name] for name in names}


def _read(path: str | Path) -> dict[str, Caption]:
    try:
        found = read_json(path)
    except ValueError as error:
        problem = f"invalid JSON: {error}"
    else:
        try:
            return {
                name: Caption(**{key: str(text) for key, text in of.items()}) for name, of in found.items()
            }
        except (AttributeError, TypeError):
            problem = "no captions by the name of their figure"
    raise SeedbedError(
        "cannot read the captions of figures",
        where=str(path),
        found=problem,
        hint="remove the file and let Snakemake draw the figures again",
    )
