"""The command without an installation: python -m seedbed."""

import sys

from seedbed.commands import main

sys.exit(main())
