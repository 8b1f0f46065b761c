"""Compare two finished experiments: python scripts/compare.py results/x results/y [--output FILE]

Prints Markdown, or writes it to FILE.md or as a page to FILE.html: the differences with their intervals, and
what differs in recipes, software and hardware.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seedbed import comparison_document, files
from seedbed.comparison import Comparison, compare_experiments
from seedbed.config import SCHEMA_PATH
from seedbed.document import Heading
from seedbed.errors import SeedbedError
from seedbed.render_html import to_page
from seedbed.render_markdown import to_markdown


def defaults() -> Mapping[str, Any]:
    """The defaults of `statistics` in the schema of the config."""
    return files.read_json(SCHEMA_PATH)["properties"]["statistics"]["default"]


def render(comparison: Comparison, ending: str) -> str:
    """The comparison as Markdown (.md) or as one HTML page (.html)."""
    title = comparison_document.title(comparison)
    answer, body = comparison_document.answer(comparison), comparison_document.body(comparison)
    if ending == ".html":
        return to_page(title, body, {}, lead=answer)
    return to_markdown([Heading(title, 1), *answer, *body])


def check(settings: Mapping[str, Any], path: Path | None) -> None:
    """Refuse what cannot be done before anything is read.

    Raises:
        SeedbedError: a level outside (0, 1), fewer than 100 replicates, a file of another kind.
    """
    if not 0 < settings["confidence"] < 1 or settings["replicates"] < 100:
        raise SeedbedError(
            "no interval comes of this",
            where="--confidence, --replicates",
            found=f"{settings['confidence']} and {settings['replicates']}",
            hint="a confidence is between 0 and 1, such as 0.95; replicates are 100 or more",
        )
    if path is not None and path.suffix not in (".md", ".html"):
        raise SeedbedError(
            "a comparison is written as Markdown or as HTML",
            where="--output",
            found=str(path),
            hint="name a file that ends in .md or .html",
        )


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    preset = defaults()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("a", type=Path, help="folder of an experiment, such as results/x")
    parser.add_argument("b", type=Path, help="folder of the other one; differences are a minus b")
    parser.add_argument("--output", type=Path, help="write to FILE.md or FILE.html instead of printing")
    parser.add_argument("--confidence", type=float, default=preset["confidence"], help="level of intervals")
    parser.add_argument("--replicates", type=int, default=preset["replicates"], help="of the bootstrap")
    parser.add_argument("--bootstrap-seed", type=int, default=preset["bootstrap_seed"])
    options = parser.parse_args(arguments)
    settings = {key: getattr(options, key) for key in ("confidence", "replicates", "bootstrap_seed")}
    try:
        check(settings, options.output)
        comparison = compare_experiments(options.a, options.b, settings)
    except SeedbedError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    if options.output is None:
        print(render(comparison, ".md"), end="")
    else:
        files.write_text(options.output, render(comparison, options.output.suffix))
        print(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
