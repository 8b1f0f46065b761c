"""The command as a module: python -m seedbed."""

import sys

from seedbed.commands import main

if __name__ == "__main__":
    sys.exit(main())
