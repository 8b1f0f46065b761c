"""Characters that a reader does not see."""

import unicodedata

# Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties.txt) beyond the format characters, which
# Python knows by category: joiners, fillers, variation selectors and code points kept for more of the kind
IGNORABLE = frozenset(
    [
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xFFF0, 0xFFF9),
        *range(0xE0000, 0xE1000),
    ]
)
BLANKS = frozenset("\u2800")  # the Braille pattern without dots, which is drawn and shows nothing


def is_invisible(character: str) -> bool:
    """Whether a character shows nothing: white space, controls, format characters (soft hyphen, zero-width
    spaces and joiners, marks of direction, byte order mark) and what Unicode has renderers ignore."""
    return (
        character.isspace()
        or unicodedata.category(character) in ("Cc", "Cf")
        or ord(character) in IGNORABLE
        or character in BLANKS
    )


def is_blank(text: str) -> bool:
    """Whether a text shows nothing, as it is empty or all its characters are invisible."""
    return all(map(is_invisible, text))
