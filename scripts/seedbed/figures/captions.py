"""Captions of figures, which lie in the metadata of their SVG; no drawing library is needed to read them."""

from pathlib import Path
from xml.etree import ElementTree

from seedbed.core.errors import SeedbedError

DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"


def read_caption(svg: str | Path) -> str:
    """The caption of a figure: the description in the metadata of its SVG.

    Raises:
        SeedbedError: the file is no whole SVG, or has no description.
    """
    try:
        # the metadata come first, and a figure of many runs is long
        for _, element in ElementTree.iterparse(svg, events=("end",)):
            if element.tag == DESCRIPTION and element.text:
                return element.text
    except ElementTree.ParseError as error:
        found = f"no XML: {error}"
    else:
        found = "no description in its metadata"
    raise SeedbedError(
        "a figure without a caption",
        where=str(svg),
        found=found,
        hint="remove it and let Snakemake draw it anew",
    )
