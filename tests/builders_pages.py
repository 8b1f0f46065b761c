"""The blocks of code on Markdown pages, for tests."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "docs").rglob("*.md")))


class Block(NamedTuple):
    """A fenced block: its language, its text, and the line of the page where it begins."""

    language: str
    text: str
    line: int

    @property
    def title(self) -> str:
        """The comment on its first line."""
        return self.text.partition("\n")[0].removeprefix("# ")

    @property
    def file(self) -> str:
        """The file that the title names first."""
        return self.title.partition(",")[0]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(each[1], each[2], text.count("\n", 0, each.start()) + 1) for each in found]


def configs() -> list[tuple[str, Block]]:
    """Every block of YAML, with its place."""
    named = ((str(page.relative_to(ROOT)), block) for page in PAGES for block in blocks(page))
    return [(f"{page}:{block.line}", block) for page, block in named if block.language == "yaml"]
