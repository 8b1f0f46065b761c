"""Fonts for names that the default font cannot draw: Chinese, Japanese, Indian scripts, emoji.

matplotlib draws a character in the first of its families that has it; one that none has would be a box.
"""

import functools
import logging
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

import matplotlib.pyplot as plt
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

from seedbed.core.characters import is_invisible
from seedbed.core.words import join
from seedbed.figures.names import clean, word

log = logging.getLogger(__name__)

FAMILY = "DejaVu Sans"  # comes with matplotlib
BOXES = "Last Resort"  # so does this one, which has a box for every character
REGULAR = 400  # weight
LISTED = 5  # characters in a message


def use_fonts_for(texts: Iterable[str]) -> None:
    """Let matplotlib draw these texts with fonts of this machine that have their characters; log those that
    no font has."""
    plt.rcParams["font.family"] = [FAMILY]
    missing = _missing(texts)
    if not missing:
        return
    plt.rcParams["font.family"] = [FAMILY, *_families(missing)]
    if left := sorted(_missing(texts)):
        shown = [f"{sign} (U+{ord(sign):04X})" for sign in left[:LISTED]]
        more = [f"{len(left) - LISTED:,} more"] if len(left) > LISTED else []
        log.warning(
            "figures: no font of this machine has %s; install one that does, such as Noto Sans CJK for "
            "Chinese, Japanese and Korean",
            join([*shown, *more]),
        )


def drawable_names(names: Sequence[str]) -> tuple[list[str], bool]:
    """Names of classes that can be drawn, and whether some had to be changed for it.

    Signs that no font has, such as emoji, are left out of a name of which letters remain. Where a letter is
    missing, or two names would become equal, a class is called by its number: class 3.
    """
    drawn, changed = [], False
    for number, name in enumerate(names, 1):
        missing = _missing([name])
        rest = clean("".join(sign for sign in name if sign not in missing))
        spelt = not any(_is_letter(sign) for sign in missing) and any(map(_is_letter, rest))
        called = word("numbered_class", number=number)
        drawn.append(rest if spelt and missing else called if missing else name)
        changed |= bool(missing)
    if changed:
        counts = Counter(drawn)
        drawn = [
            word("numbered_class", number=number) if name != old and counts[name] > 1 else name
            for number, (name, old) in enumerate(zip(drawn, names, strict=True), 1)
        ]
    return drawn, changed


def _is_letter(sign: str) -> bool:
    return unicodedata.category(sign)[0] in "LNM"


def _missing(texts: Iterable[str]) -> set[str]:
    """The characters that no family in matplotlib's present settings has."""
    signs = {sign for text in texts for sign in text if not is_invisible(sign)}
    for family in plt.rcParams["font.family"]:
        signs -= {sign for sign in signs if ord(sign) in _characters(family)}
    return signs


@functools.cache
def _characters(family: str) -> frozenset[int]:
    """The characters of the font that matplotlib uses for a family."""
    found = font_manager.findfont(font_manager.FontProperties(family=[family]))  # not taken for a pattern
    return frozenset(FT2Font(found, face_index=found.face_index).get_charmap())


def _families(missing: set[str]) -> list[str]:
    """A few families that draw what can be drawn of these characters, chosen greedily."""
    wanted = {ord(sign) for sign in missing}
    known = {family: {code for code in wanted if _draws(font, code)} for family, font in _installed().items()}
    found: list[str] = []
    while known:
        best = max(
            sorted(known), key=lambda name: (len(wanted & known[name]), "Sans" in name, "Mono" not in name)
        )
        if not wanted & known[best]:
            break
        found.append(best)
        wanted -= known[best]
    return found


def _draws(font: FT2Font, code: int) -> bool:
    """Whether a font has an outline for a character; those of coloured emoji may have none."""
    if code not in font.get_charmap():
        return False
    glyph = font.load_char(code)
    return glyph.width > 0 and glyph.height > 0


@functools.cache
def _installed() -> dict[str, FT2Font]:
    """The upright font of each family of this machine whose weight is nearest to a regular one's; also of
    those that came after matplotlib made its list."""
    manager = font_manager.fontManager
    listed = {str(entry.fname) for entry in manager.ttflist}
    for path in sorted({*map(str, font_manager.findSystemFonts())} - listed):
        try:
            manager.addfont(path)
        except (OSError, RuntimeError):  # none that matplotlib can draw, such as one of bitmaps
            continue
    found: dict[str, FT2Font] = {}
    for entry in sorted(manager.ttflist, key=lambda entry: (abs(entry.weight - REGULAR), str(entry.fname))):
        if entry.style == "normal" and entry.name not in found and not entry.name.startswith(BOXES):
            try:
                found[entry.name] = FT2Font(entry.fname, face_index=entry.index)
            except (OSError, RuntimeError):  # it was there when the list was made
                continue
    return found
