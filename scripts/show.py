"""Print an experiment's answer and its test scores on the terminal: python scripts/show.py results/demo

It only imports light modules, so that it prints at once.
"""

import argparse
import contextlib
import shutil
import sys
from pathlib import Path

from seedbed.config.experiment_folder import folder_of
from seedbed.core import checksums
from seedbed.core.errors import SeedbedError, explaining_system_errors
from seedbed.core.files import read_json
from seedbed.core.printable import for_terminal
from seedbed.core.screen import screen


def show(experiment: str | Path, width: int = 100) -> str:
    """The text to print, one screen: the opening, the table of scores, and the places of other results.

    Args:
        experiment: the experiment's folder, such as results/demo.
        width: columns of the terminal.

    Raises:
        SeedbedError: the experiment has no summary yet, or the summary was changed since its rule wrote it.
    """
    folder = Path(experiment)
    facts = folder / "summary.json"
    if not facts.exists():
        raise SeedbedError(
            "this experiment has no summary yet",
            where=str(facts),
            hint="run it first: make demo, or snakemake --cores 2",
        )
    checksums.compare([facts])
    return screen(read_json(facts), places(folder), "summary.md", width)


def places(folder: Path) -> list[str]:
    """The places of report, summary and figures."""
    report = folder / "report.html"
    lines = [f"Summary: {folder / 'summary.md'}", f"Figures: {folder / 'figures'}"]
    return [f"Report:  {report} (opens in a browser)", *lines] if report.exists() else lines


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "experiment", type=Path, nargs="?", help="the experiment's folder, such as results/demo"
    )
    parser.add_argument("--configfile", type=Path, nargs="+", default=[], help="or its config files")
    asked = parser.parse_args()
    try:
        experiment = asked.experiment or folder_of(asked.configfile)
        with explaining_system_errors():
            told = show(experiment, min(100, shutil.get_terminal_size().columns))
        with contextlib.suppress(BrokenPipeError):  # of `| head`
            print(for_terminal(told), flush=True)
    except SeedbedError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
