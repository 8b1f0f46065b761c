"""The package is also installed where Seedbed's other dependencies are not."""

import subprocess
import sys

from builders_pages import ROOT

MISSING = (
    "snakemake",
    "torch",
    "fairseq",
    "transformers",
    "datasets",
    "tokenizers",
    "sklearn",
    "pydantic",
    "peft",
)
PROGRAM = f"""
import sys
sys.modules.update(dict.fromkeys({MISSING}))  # each now looks uninstalled
sys.path.insert(0, sys.argv[1])
from seedbed.outside.read import read_results
print(read_results(sys.argv[2])[0].values["a"])
"""


def test_results_are_read_without_the_packages_that_train(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("system,example,score\na,0,0.5\nb,0,1\n", encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM, str(ROOT / "scripts"), str(table)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[0.5]\n"
