"""Go on with an experiment that grows in stages: python scripts/next_stages.py CONFIG ... -- COMMAND

Runs COMMAND, which makes one stage, until no question is open. Does nothing if none is, or if the experiment
does not grow. It only imports light modules, since `make run` ends with it.
"""

import signal
import subprocess
import sys
from pathlib import Path

from seedbed.config.experiment_folder import folder_of
from seedbed.config.stages import decided
from seedbed.core.errors import SeedbedError, explaining_system_errors


def made(experiment: Path) -> tuple[int, bool]:
    """The number of stages that were made, and whether the last one left a question open."""
    found = [content["finished"] for _, content in decided(experiment)]
    return len(found), bool(found) and not found[-1]


def run(command: list[str]) -> int:
    """The exit status of a command, to which SIGTERM is handed on; Ctrl-C reaches it by itself."""
    process = subprocess.Popen(command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: process.send_signal(number))
    status = process.wait()
    return status if status >= 0 else 128 - status


def main(arguments: list[str]) -> int:
    """Command line."""
    place = arguments.index("--")
    configs, command = [Path(path) for path in arguments[:place]], arguments[place + 1 :]
    try:
        with explaining_system_errors():
            experiment = folder_of(configs)
            stages, is_open = made(experiment)
            while is_open:
                if status := run(command):
                    return status
                before, (stages, is_open) = stages, made(experiment)
                # the stages are of a config that grew, and this one does not
                if stages == before:
                    break
    except SeedbedError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
