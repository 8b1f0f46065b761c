"""Clean the texts of examples, normalise them for comparisons, and put questions into prompts.

An example of classification has a "text"; an example of a pair also has a "text_pair".
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from seedbed.core.characters import is_blank

# fairseq's text files have one text per line, and Python itself ends lines at more characters than "\n"
SEPARATORS = "\t\n\x0b\x0c\r\x1c-\x1e\x85\u2028\u2029"
# the other control characters of ASCII mean nothing in a text, and tokenizers disagree about them; those from
# U+0080 on stay, since they are signs of a wrong decoding, which the audit reports
CONTROLS = "\x00-\x08\x0e-\x1b\x1f\x7f"
SEPARATOR, CONTROL = re.compile(f"[{SEPARATORS}]"), re.compile(f"[{CONTROLS}]")
RUNS = re.compile(f" *(?:[{SEPARATORS}{CONTROLS}] *)+")
CR = re.compile(r"\r\n?")
# keys of an example's texts, and of their columns in the config
TEXT, TEXT_PAIR = PARTS = ("text", "text_pair")
BORDER = "\n"  # between the texts of a pair; a clean text has no line end


def clean_line(text: str) -> str:
    """A text on one line: each run of tabs, line ends and control characters becomes a space.

    Spaces and byte order marks at both ends are removed; joined files have such marks inside. A text of only
    invisible characters becomes empty.
    """
    return _stripped(RUNS.sub(" ", text))


def clean_lines(text: str) -> str:
    """A text with line ends as LF and each control character as a space; its ends as in `clean_line`."""
    return _stripped(CONTROL.sub(" ", CR.sub("\n", text)))


def _stripped(text: str) -> str:
    stripped = text.strip().strip("\ufeff").strip()
    return "" if is_blank(stripped) else stripped


def normalise(text: str) -> str:
    """The text in the form for comparisons: NFKC, case folded, white space merged and stripped."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def parts(example: Mapping[str, Any]) -> list[str]:
    """The text of an example, or both texts of a pair."""
    return [example[part] for part in PARTS if part in example]


def whole(example: Mapping[str, Any]) -> str:
    """The text of an example; both texts of a pair, with BORDER between them."""
    return BORDER.join(parts(example))


def are_pairs(examples: Iterable[Mapping[str, Any]]) -> bool:
    """Whether examples are pairs of texts; those of a dataset are alike."""
    return any(TEXT_PAIR in example for example in examples)


def compared(example: Mapping[str, Any]) -> str:
    """The text in the form for comparisons; of a pair both texts in this form, with BORDER between them."""
    return BORDER.join(map(normalise, parts(example)))


def is_encodable(text: str) -> bool:
    """Whether a text can be written in UTF-8; half a surrogate pair, possible in JSON, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def fill_template(template: str, question: str, context: str | None) -> str:
    """The prompt of a question; a missing context is empty."""
    return template.format(question=question, context=context or "")
