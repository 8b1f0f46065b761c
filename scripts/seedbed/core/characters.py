"""Kinds of characters: invisible ones, and letters of scripts without spaces."""

import re
import unicodedata

# Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties.txt) without format characters, which have a
# category: joiners, fillers, variation selectors and code points reserved for more of them
IGNORABLE = frozenset(
    [
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xFFF0, 0xFFF9),
        *range(0xE0000, 0xE1000),
    ]
)
BLANKS = frozenset("\u2800")  # the Braille pattern without dots

# Letters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, Chinese characters
UNSPACED = re.compile(
    "[\u0e01-\u0edf\u1000-\u109f\u1780-\u17d3\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)


def is_invisible(character: str) -> bool:
    """Whether a character is invisible.

    These are white space, controls, format characters (soft hyphen, zero-width spaces and joiners, marks of
    direction, byte order mark) and characters that renderers ignore by Unicode's rules.
    """
    return (
        character.isspace()
        or unicodedata.category(character) in ("Cc", "Cf")
        or ord(character) in IGNORABLE
        or character in BLANKS
    )


def is_blank(text: str) -> bool:
    """Whether a text is empty or all its characters are invisible."""
    return all(map(is_invisible, text))


def escaped(text: str) -> str:
    """A text with its invisible characters, spaces excepted, escaped as in Python: \\u200b."""
    return "".join(
        sign if sign == " " or not is_invisible(sign) else sign.encode("unicode_escape").decode()
        for sign in text
    )
