"""`make bench`: the lab's way and Seedbed side by side; see `python benchmarks/bench --help`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
