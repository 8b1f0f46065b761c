"""Say how far an experiment is, from its files alone: also of a workflow in another terminal or on Slurm.

Tells which runs are done, at work, waiting or failed, the mean seconds of a run, and how long the others will
take. Reads only, needs no workflow that works, and works on every host that sees the results. --watch shows
it in place, anew every second, and ends 30 s after the last workflow has ended, or when all runs are done.

The exit code is 1 if a run or another rule has failed, else 0.
"""

import argparse
import contextlib
import json
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core.errors import SeedbedError
from seedbed.core.printable import for_terminal

if TYPE_CHECKING:
    from seedbed.running.status import Status

PAUSE = 1.0  # seconds between two looks
SHARE = 0.1  # at most of the time of a core goes into looking
PATIENCE = 30.0  # seconds without a workflow: the next stage, or a restart, begins meanwhile
# ANSI: lines up; clear the rest of a line; clear what is below
UP, CLEAR, BELOW = "\x1b[{}F", "\x1b[K", "\x1b[J"


def add_parser(subparsers: Any) -> None:
    """Add `seedbed status`."""
    parser = subparsers.add_parser(
        "status",
        help="say how far an experiment is",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("experiment", type=Path, nargs="?", help="its folder, such as results/demo")
    place.add_argument("--configfile", type=Path, nargs="+", help="or its config files")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--watch", action="store_true", help="show it anew every second until the workflow ends")
    how.add_argument("--json", action="store_true", help="for programs: every run, with times in seconds")


def run(options: argparse.Namespace) -> int:
    """Print the status; the exit code is 1 if a run or another rule has failed.

    Raises:
        SeedbedError: see `running.status.status`; a config file cannot be read; --watch has no terminal.
    """
    from seedbed.config.experiment_folder import folder_of
    from seedbed.running.status import status
    from seedbed.running.status_lines import for_programs, lines_of

    experiment = options.experiment or folder_of(options.configfile)
    if options.watch:
        found = _watch(experiment)
    else:
        found = status(experiment)
        lines = [json.dumps(for_programs(found), indent=2)] if options.json else lines_of(found, time.time())
        with contextlib.suppress(BrokenPipeError):  # of `| head`
            print("\n".join(map(for_terminal, lines)), flush=True)
    return 1 if found.has_failed else 0


def _watch(experiment: Path) -> "Status":
    """Show the status in place until no workflow works; the last one."""
    from seedbed.running.status import status

    if not sys.stdout.isatty():
        raise SeedbedError(
            "only a terminal can show a status in place",
            where="--watch",
            hint="leave --watch out, and call the command again when you want to know",
        )
    found, shown, seen, pause = status(experiment), 0, time.monotonic(), PAUSE
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            shown = _show(found, shown)
            seen = time.monotonic() if found.works else seen
            if found.is_finished or time.monotonic() - seen > PATIENCE:
                break
            time.sleep(pause)
            began = time.monotonic()
            found = status(experiment)
            pause = max(PAUSE, (time.monotonic() - began) / SHARE)
    return found


def _show(found: "Status", shown: int) -> int:
    """Print a status over the `shown` lines of the last one; returns the number of lines."""
    from seedbed.running.status_lines import lines_of

    width, height = shutil.get_terminal_size()
    # a line that wraps, or a screen that scrolls, could not be overwritten
    lines = [for_terminal(line)[: width - 1] for line in lines_of(found, time.time())][: height - 1]
    up = UP.format(shown) if shown else ""
    sys.stdout.write(up + "".join(f"{line}{CLEAR}\n" for line in lines) + BELOW)
    sys.stdout.flush()
    return len(lines)
