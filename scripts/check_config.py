"""Check that config files can be read: python scripts/check_config.py FILE.yaml ...

Snakemake reads them before Seedbed can, and says of one that it cannot read neither file nor line.
"""

import sys

from seedbed.config.yaml_files import refuse_unreadable
from seedbed.core.errors import SeedbedError, explaining_system_errors


def main(paths: list[str]) -> int:
    """Exit code 1 and an error for the first file that cannot be read."""
    try:
        with explaining_system_errors():
            for path in paths:
                refuse_unreadable(path)
    except SeedbedError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
