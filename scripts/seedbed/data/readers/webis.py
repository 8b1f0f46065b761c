"""Read the XML of Webis-CLS-10: <items> of <item>, each a review with rating, text, summary and title.

The file is streamed through expat, since messages need each element's line, which ElementTree does not give.
A document type declaration is refused, and with it all entities that could grow or read other files. XML that
is not well-formed is an error: the published files of Webis-CLS-10 are well-formed.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn
from xml.parsers import expat

from seedbed.core.errors import SeedbedError
from seedbed.core.spelling import nearest
from seedbed.data.readers.files import Place, Record, SourceFile, named_columns, raise_first

log = logging.getLogger(__name__)

ROOT, ITEM, RATING = "items", "item", "rating"
NEUTRAL = 3.0
LOWEST, HIGHEST = 1.0, 5.0
POSITIVE, NEGATIVE = "1", "0"
BLOCK = 2**16
SHOWN = 12  # bytes on both sides of a fault, for messages


def read_webis(file: SourceFile, definition: Mapping[str, Any]) -> list[Record | None]:
    """Read the reviews of a file; label "1" for a rating above 3, "0" for one below, None if left out.

    Args:
        file: the XML file, in the encoding that it declares.
        definition: the dataset's block: columns.text names the elements of the text, in order (<summary> is
            the review's headline, <title> the product's); with neutral_ratings: drop, reviews with a rating
            of exactly 3 are dropped, otherwise they are an error.

    Raises:
        SeedbedError: the XML is truncated, not well-formed or declares entities; an element is missing,
            duplicate or nested; a rating is not a number from 1 to 5, or is 3 and not dropped.
    """
    columns = named_columns(definition)
    items = _parse(file, [*columns, RATING])
    _check_elements(file, items, [*columns, RATING])
    ratings = [_rating(item[RATING][1]) for _, item in items]
    wrong = [
        (Place(file, item[RATING][0]), repr(item[RATING][1]))
        for (_, item), rating in zip(items, ratings, strict=True)
        if rating is None
    ]
    raise_first("a rating is not a number from 1 to 5", wrong, "correct the rating, or delete the item")
    _check_neutral(file, items, ratings, definition["neutral_ratings"])
    label = definition["columns"]["label"]
    records: list[Record | None] = []
    for (line, item), rating in zip(items, ratings, strict=True):
        cells = {column: item[column][1] for column in columns}
        cells[label] = POSITIVE if rating > NEUTRAL else NEGATIVE
        records.append(None if rating == NEUTRAL else Record(Place(file, line), cells))
    return records


def _check_neutral(file: SourceFile, items: list["_Item"], ratings: list[float], policy: str) -> None:
    neutral = [
        (Place(file, item[RATING][0]), item[RATING][1])
        for (_, item), rating in zip(items, ratings, strict=True)
        if rating == NEUTRAL
    ]
    if policy == "error":
        raise_first(
            "a rating of 3 is neither positive nor negative",
            neutral,
            "delete the item, or set neutral_ratings: drop for this dataset in the config",
        )
    elif neutral:
        log.warning("%s: dropped %d of %d reviews, rated 3", file.path, len(neutral), len(items))


def _rating(text: str) -> float | None:
    try:
        rating = float(text)
    except ValueError:
        return None
    return rating if math.isfinite(rating) and LOWEST <= rating <= HIGHEST else None


def _check_elements(file: SourceFile, items: list["_Item"], wanted: Sequence[str]) -> None:
    for name in wanted:
        missing = [(line, ", ".join(f"<{key}>" for key in item) or "nothing") for line, item in items]
        missing = [place for place, (_, item) in zip(missing, items, strict=True) if name not in item]
        if missing:
            found = missing[0][1]
            known = [element for _, item in items for element in item]
            key = "" if name == RATING else ", or columns.text of the dataset in the config"
            raise_first(
                f"an item has no element <{name}>",
                [(Place(file, line), f"an item with {elements}") for line, elements in missing],
                f"{nearest(name, set(known)) if found else ''}correct the item{key}",
            )


# --- parsing ----------------------------------------------------------------------------------------------

# line of the item, and line and text (empty unless wanted) of each of its elements
_Item = tuple[int, dict[str, tuple[int, str]]]


class _Handler:
    """Collects the items from expat's events."""

    def __init__(self, file: SourceFile, wanted: Sequence[str], parser: Any):
        self.file, self.wanted, self.parser = file, frozenset(wanted), parser
        self.items: list[_Item] = []
        self.open: list[str] = []  # names of the open elements
        self.line = 0  # of the current item
        self.element_line = 0
        self.item: dict[str, tuple[int, str]] = {}
        self.parts: list[str] = []
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self.start, self.end
        parser.CharacterDataHandler = self.characters
        parser.StartDoctypeDeclHandler = self.doctype

    def start(self, name: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        depth = len(self.open)
        if depth < 2 and name != (ROOT, ITEM)[depth]:
            self.refuse(line, f"an element <{name}> where <{(ROOT, ITEM)[depth]}> is expected")
        if depth == 1:
            self.line, self.item = line, {}
        elif depth == 2:
            if name in self.item and name in self.wanted:
                self.refuse(line, f"a second <{name}> in the item of line {self.line}")
            self.element_line, self.parts = line, []
        elif depth == 3 and self.open[2] in self.wanted:
            self.refuse(line, f"an element <{name}> inside <{self.open[2]}>")
        self.open.append(name)

    def end(self, name: str) -> None:
        self.open.pop()
        depth = len(self.open)
        if depth == 2:
            self.item[name] = (self.element_line, "".join(self.parts) if name in self.wanted else "")
        elif depth == 1:
            self.items.append((self.line, self.item))

    def characters(self, data: str) -> None:
        if len(self.open) == 3 and self.open[2] in self.wanted:
            self.parts.append(data)

    def doctype(self, name: str, system_id: str | None, public_id: str | None, has_subset: bool) -> NoReturn:
        raise SeedbedError(
            "a document type declaration is refused: its entities could fill the memory or read other files",
            where=self.file.at(self.parser.CurrentLineNumber),
            found=f"<!DOCTYPE {name} ...>",
            hint="Webis-CLS-10 has none; remove it, and write out its entities",
        )

    def refuse(self, line: int, found: str) -> NoReturn:
        raise SeedbedError(
            "the XML does not have the layout of Webis-CLS-10",
            where=self.file.at(line),
            found=found,
            hint="<items><item><rating>4.0</rating><text>...</text>...</item>...</items>",
        )


def _parse(file: SourceFile, wanted: Sequence[str]) -> list[_Item]:
    parser = expat.ParserCreate()
    handler = _Handler(file, wanted, parser)
    ended = False
    try:
        with file.open() as stream:
            while not ended:
                block = stream.read(BLOCK)
                ended = not block
                parser.Parse(block, ended)
    except expat.ExpatError as error:
        raise _not_well_formed(file, handler, error, ended) from None
    except (LookupError, ValueError) as error:  # an unknown encoding, or a multi-byte one
        raise SeedbedError(
            "the XML declares an encoding that cannot be read",
            where=file.at(1),
            found=error,
            hint="convert the file to UTF-8, and declare UTF-8",
        ) from None
    return handler.items


def _not_well_formed(file: SourceFile, handler: _Handler, error: Any, ended: bool) -> SeedbedError:
    reason = expat.ErrorString(error.code)
    complete = f"{len(handler.items):,} items before it are complete"
    if ended:
        inside = f"; the item of line {handler.line} is not" if len(handler.open) > 1 else ""
        return SeedbedError(
            "the XML is truncated",
            where=file.at(error.lineno),
            found=f"{reason}; {complete}{inside}",
            hint="fetch the source again, or close the open elements: </item>, </items>",
        )
    with file.open() as stream:
        # expat may stop a few bytes after the fault
        stream.seek(max(0, handler.parser.ErrorByteIndex - SHOWN))
        shown = stream.read(2 * SHOWN)
    return SeedbedError(
        "the XML is not well-formed",
        where=f"{file.at(error.lineno)}, column {error.offset + 1}",
        found=f"{reason}: {shown!r}; {complete}",
        hint="write a stray & or < as &amp; or &lt;, and letters directly, not as &eacute;; XML allows no "
        "control characters, and the bytes must be in the encoding declared in the first line",
    )
