"""What Snakemake plans behind an `ancient` input whose own job is to run."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "scripts"
# a gate as the parity check is one of training: `run` needs it, and does not run again because it did
SNAKEFILE = f"""
import sys
sys.path.insert(0, {str(SCRIPTS)!r})
from snakemake.dag import DAG
from seedbed.running import ancient_inputs
ancient_inputs.mend(DAG)

rule all:
    input: "table.txt"

rule gate:
    output: "gate.txt"
    shell: "echo open > {{output}}"

rule run:
    input: gate=ancient("gate.txt"), data="data.txt"
    output: "run{{n}}.txt"
    shell: "cat {{input.data}} > {{output}}"

rule table:
    input: "run0.txt", "run1.txt"
    output: "table.txt"
    shell: "cat {{input}} > {{output}}"
"""


def snakemake(folder: Path, *arguments: str) -> set[str]:
    """The jobs that Snakemake ran, or would run in a dry run: rules, those of runs with their number."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=True)
    jobs, lines = set(), iter((done.stdout + done.stderr).splitlines())
    for line in lines:
        if line.startswith(("rule ", "localrule ")):
            jobs.add(line.split()[-1].rstrip(":"))
        elif line.strip().startswith("wildcards: n="):
            jobs.add(f"run{line.strip()[-1]}")
    return jobs - {"run"}


@pytest.fixture
def finished(tmp_path) -> Path:
    """A folder in which everything is made."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "data.txt").write_text("data\n")
    assert snakemake(tmp_path) == {"gate", "run0", "run1", "table", "all"}
    return tmp_path


def test_a_gate_that_is_made_again_has_nothing_else_made(finished):
    assert snakemake(finished, "--forcerun", "gate", "-n") == {"gate"}


def test_what_is_missing_behind_a_gate_that_is_made_again_is_made(finished):
    """Its dependants are made as well, and the workflow does not end without them."""
    (finished / "run1.txt").unlink()
    (finished / "table.txt").unlink()
    assert snakemake(finished, "--forcerun", "gate") == {"gate", "run1", "table", "all"}
    assert (finished / "table.txt").read_text() == "data\ndata\n"


def test_what_is_outdated_behind_a_gate_that_is_made_again_is_made(finished):
    (finished / "data.txt").write_text("other data\n")
    assert snakemake(finished, "--forcerun", "gate") == {"gate", "run0", "run1", "table", "all"}
    assert (finished / "table.txt").read_text() == "other data\nother data\n"
