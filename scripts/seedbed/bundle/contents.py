"""What belongs into a bundle: what a reviewer reads, and what `seedbed compare` and `seedbed verify` need.

Logs, measurements of jobs, event files, weights and adapters stay behind. Texts of the data do, too, unless
they are asked for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from seedbed.analysis.finished import check_finished
from seedbed.analysis.table_rows import RunRow
from seedbed.core import checksums
from seedbed.core.errors import SeedbedError
from seedbed.core.run_folder import work_folders
from seedbed.core.tasks import ANSWERS, task_of
from seedbed.data.audit import read_audit, warnings, without_texts
from seedbed.sources import source_lock

RESULTS = "results"  # folder of a bundle, whatever the results are called where it is made
CONFIG, REPORT, AUDIT = "config.yaml", "report.html", "data_audit.csv"
# without one of these, the experiment's last rules have not run
LAST = ("runs.csv", "summary.csv", "contrasts.csv", AUDIT, "summary.md", REPORT, CONFIG)
OF_EXPERIMENT = (
    *("*.csv", "*.json", "*.md", REPORT, CONFIG, "tables/*", "figures/*"),
    *("bags_of_words/**/*.csv", "linear_probes/**/*.csv"),
)
OF_RUN = ("run.json", "metrics.csv", "predictions.csv")
OF_DATASET = ("*.json", "*.csv")
OF_TEXTS = ("*.jsonl",)
OF_PAIR = ("parity.json",)  # of a dataset and a model
OF_MODEL = ("model.json", "parameters.csv", "architecture_*.txt")
WARNING = ("summary.md", "summary.json")  # what shows the audit's warnings


@dataclass(frozen=True)
class Contents:
    """What a bundle of an experiment holds.

    Attributes:
        experiment: its name.
        files: by name in the bundle, in the order of names.
        lock: the entries of its sources in the lock file.
        unlocked: its sources that have no entry there.
        texts: whether files may hold texts of the data.
        left_out: files of the experiment that quote texts, and are left out for it.
    """

    experiment: str
    files: Mapping[str, Path]
    lock: Mapping[str, Any]
    unlocked: Sequence[str]
    texts: bool
    left_out: Sequence[str]


def find(folder: Path, lock: Path, texts: bool) -> Contents:
    """What a bundle of a finished experiment holds, each file checked against the record of its rule.

    Args:
        folder: of the experiment, such as results/demo.
        lock: the lock file of sources.
        texts: whether to take texts of the data, and files that quote them.

    Raises:
        SeedbedError: the experiment is not finished, a file has changed since its rule wrote it, its
            predictions hold texts that were not asked for, or the lock file cannot be read.
    """
    folder = folder.resolve()
    check_finished(folder)
    runs = RunRow.read(folder / "runs.csv")
    _check_all_made(folder, runs)
    checksums.compare([folder / CONFIG])
    config = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
    left_out = [] if texts else _quoting_texts(folder, config)
    paths = [
        path
        for path in [*_of_experiment(folder, runs), *_of_shared(folder.parent, runs, texts)]
        if path.parent != folder or path.name not in left_out
    ]
    checksums.compare(paths)
    entries, unlocked = _locked(config["sources"], lock)
    names = {f"{RESULTS}/{path.relative_to(folder.parent).as_posix()}": path for path in paths}
    return Contents(folder.name, dict(sorted(names.items())), entries, unlocked, texts, left_out)


def _check_all_made(folder: Path, runs: Sequence[RunRow]) -> None:
    finish = "let Snakemake finish it: run the same command as before"
    of_runs = [folder / "runs" / run.folder / name for run in runs for name in OF_RUN]
    missing = [path for path in [*(folder / name for name in LAST), *of_runs] if not path.is_file()]
    if missing:
        raise SeedbedError(
            "the experiment is not finished",
            where=str(missing[0]),
            found="no such file" + (f", nor {len(missing) - 1} more" if missing[1:] else ""),
            hint=finish,
        )
    if at_work := sorted(work_folders(folder)):
        raise SeedbedError(
            "the experiment is not finished",
            where=str(at_work[0]),
            found=f"unfinished runs: {len(at_work)}",
            hint=f"{finish}; or remove {folder / 'work'} if these runs are not wanted any more",
        )


def _of_experiment(folder: Path, runs: Iterable[RunRow]) -> Iterator[Path]:
    yield from _matching(folder, OF_EXPERIMENT)
    for run in runs:
        yield from _matching(folder / "runs" / run.folder, OF_RUN)


def _of_shared(results: Path, runs: Sequence[RunRow], texts: bool) -> Iterator[Path]:
    """What the experiment shares with others: of its datasets and models."""
    for dataset in {run.dataset for run in runs}:
        yield from _matching(results / "data" / dataset, (*OF_DATASET, *(OF_TEXTS if texts else ())))
    for dataset, model in {(run.dataset, run.model) for run in runs}:
        yield from _matching(results / "data" / dataset / model, OF_PAIR)
    for model in {run.model for run in runs}:
        yield from _matching(results / "models" / model, OF_MODEL)


def _matching(folder: Path, patterns: Iterable[str]) -> Iterator[Path]:
    """The files below a folder that match a pattern; hidden ones are Snakemake's and records of rules."""
    for pattern in patterns:
        for path in folder.glob(pattern):
            if path.is_file() and not path.name.startswith("."):
                yield path


def _quoting_texts(folder: Path, config: Mapping[str, Any]) -> list[str]:
    """The files beside the runs that quote texts of the data.

    Raises:
        SeedbedError: predictions hold texts, without which there is nothing to verify.
    """
    if task_of(config).outputs == ANSWERS:
        raise SeedbedError(
            "the predictions of this task hold texts: answers, and those of the dataset",
            where=str(folder / "runs"),
            hint="add --texts if whoever gets the bundle may read them (make bundle ... TEXTS=1)",
        )
    report = [REPORT] if config["report"]["texts"] else []
    audit = read_audit(folder / AUDIT)
    anonymous = without_texts(audit)
    quoted = [AUDIT] if anonymous != audit else []
    return [*report, *quoted, *(WARNING if warnings(anonymous) != warnings(audit) else ())]


def _locked(sources: Mapping[str, Any], lock: Path) -> tuple[dict[str, Any], list[str]]:
    """The entries of sources in the lock file, and the names of those without one."""
    entries, unlocked = {}, []
    for name, block in sorted(sources.items()):
        version = block.get("version")
        entry = source_lock.find(lock, name, version)
        if entry is None:
            unlocked.append(name)
        else:
            entries[source_lock.key(name, version)] = entry
    return entries, unlocked


def experiment_of(results: Path) -> Path:
    """The folder of the experiment in an unpacked bundle's results: the one with a table of runs.

    Raises:
        SeedbedError: there is none, or several.
    """
    found = sorted(path.parent for path in results.glob("*/runs.csv"))
    if len(found) != 1:
        raise SeedbedError(
            "a bundle holds one experiment",
            where=str(results),
            found=f"{len(found)} tables of runs",
            hint="name a file that `seedbed bundle` wrote",
        )
    return found[0]
