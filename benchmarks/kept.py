"""Tables and summaries of kept experiments, made again from their predictions, without GPU and texts.

    python benchmarks/kept.py check [NAME ...]   # compares; exit code 1 if a file differs
    python benchmarks/kept.py write [NAME ...]   # after a change of the statistics

benchmarks/results/paper_scale/NAME/runs.tar.xz holds run.json, metrics.csv and predictions.csv of every run,
and the baseline and the duplicates of every dataset.
"""

import argparse
import csv
import itertools
import math
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "benchmarks"))

from bench.workload import merged_configs  # noqa: E402

from seedbed.analysis import diagnostics, tables  # noqa: E402
from seedbed.analysis.experiment import Experiment  # noqa: E402
from seedbed.config.plan import Plan  # noqa: E402
from seedbed.core import files  # noqa: E402
from seedbed.report import sources, summary  # noqa: E402
from seedbed.report.documents.markdown import to_markdown  # noqa: E402
from seedbed.report.first_table import first_tables  # noqa: E402
from seedbed.report.opening import opening  # noqa: E402

KEPT = ROOT / "benchmarks" / "results" / "paper_scale"
CONFIGS = {
    "cls_books": ("cls_books", "seeds10"),
    "cls_books_lr": ("cls_books", "cls_books_lr", "seeds10"),
    "cls_all": ("cls_all", "seeds5"),
    "cls_books_lora": ("cls_books", "cls_books_lora", "seeds5"),
}
NAMES = ("runs", "curves", "summary", "contrasts", *diagnostics.COLUMNS)


def make_tables(name: str, folder: Path) -> Path:
    """Unpack the runs of a kept experiment below `folder`; the folder of tables and summary."""
    with tarfile.open(KEPT / name / "runs.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    configs = [ROOT / "experiments" / f"{part}.yaml" for part in CONFIGS[name]]
    plan = Plan(merged_configs(configs, {"results": str(folder)}))
    experiment = Path(plan.experiment_folder)
    paths = {table: experiment / f"{table}.csv" for table in NAMES}
    tables.aggregate(
        [Path(path).parent for path in plan.run_files("run.json")],
        plan.per_dataset("bag_of_words.csv"),
        plan.per_dataset("duplicates.csv"),
        plan.aggregation(),
        paths,
    )
    read = {**paths, "audit": KEPT / name / "data_audit.csv", "run_json": plan.run_files("run.json")}
    found, others = sources.read(read, plan.reporting(), {}, Experiment)
    warned = summary.warnings(found, others)
    blocks = summary.findings(found, opening(found), first_tables(found), warned)
    files.write_text(experiment / "summary.md", to_markdown(blocks))
    return experiment


def differing(name: str, *, write: bool = False) -> list[str]:
    """Names of the files that differ from the kept ones, which `write` replaces."""
    with tempfile.TemporaryDirectory() as folder:
        made = make_tables(name, Path(folder))
        found = []
        for table in [*(f"{table}.csv" for table in NAMES), "summary.md"]:
            new, kept = made / table, KEPT / name / table
            if not kept.exists() or not same_table(new, kept):
                found.append(table)
            if write:
                shutil.copyfile(new, kept)
    return found


def same_table(one: Path, other: Path) -> bool:
    """Whether two CSV files agree, numbers to nine digits: NumPy's sums differ between machines."""
    first, second = (list(csv.reader(path.read_text(encoding="utf-8").splitlines())) for path in (one, other))
    pairs = zip(itertools.chain(*first), itertools.chain(*second), strict=False)
    return [len(row) for row in first] == [len(row) for row in second] and all(
        a == b or _close(a, b) for a, b in pairs
    )


def _close(one: str, other: str) -> bool:
    try:
        return math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-12)
    except ValueError:
        return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("action", choices=["check", "write"])
    parser.add_argument("names", nargs="*", default=list(CONFIGS), metavar="NAME")
    asked = parser.parse_args(arguments)
    changed = False
    for name in asked.names:
        tables_of_name = differing(name, write=asked.action == "write")
        changed |= bool(tables_of_name)
        print(f"{name}: {', '.join(tables_of_name) or 'no file'} differs")
    return int(changed and asked.action == "check")


if __name__ == "__main__":
    sys.exit(main())
