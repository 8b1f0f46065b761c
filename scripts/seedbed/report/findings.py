"""Everything that an experiment found, read once for the summary and the report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbed.analysis.experiment import Experiment
from seedbed.core.commits import git_commit
from seedbed.core.files import read_json
from seedbed.core.methods import ADAPTERS
from seedbed.core.rows import Row, read_table
from seedbed.core.run_folder import name_of
from seedbed.data.audit import read_audit

ADAPTER = "adapter/adapter_model.safetensors"  # of a run folder
MIB = 2**20
TABLES = (
    "pairs",
    "churn",
    "never_right",
    "calibration",
    "variance",
    "expected_validation",
)


@dataclass(frozen=True)
class Findings:
    """Everything that summary and report are made from.

    Args:
        experiment: its tables, with those of TABLES.
        documents: run.json of every run.
        audit: rows of data_audit.csv.
        parity: (dataset, model, content of parity.json).
        parameters: rows of parameters.csv, by model.
        figures: names of the figures.
        captions: captions of figures by name; empty where not known.
        commit: of the code that makes summary and report; None outside a Git repository.
        trainable: rows of trainable_parameters.csv; none where no recipe trains an adapter.
        folders: the run folders, in the order of `documents`.
    """

    experiment: Experiment
    documents: Sequence[Row]
    audit: Sequence[Row]
    parity: Sequence[tuple[str, str, Row]]
    parameters: Mapping[str, Sequence[Row]]
    figures: Sequence[str]
    captions: Mapping[str, str]
    commit: str | None
    trainable: Sequence[Row] = ()
    folders: Sequence[Path] = ()

    @property
    def reporting(self) -> Mapping[str, Any]:
        """`Plan.reporting()`."""
        return self.experiment.reporting


def read_findings(
    inputs: Mapping[str, Any], reporting: Mapping[str, Any], captions: Mapping[str, str]
) -> Findings:
    """Read everything.

    Args:
        inputs: paths by name, as the rules name them: runs, summary, contrasts and all TABLES;
            run_json of every run; and where the task has them audit (data_audit.csv); parity of every dataset
            and model, .../DATASET/MODEL/parity.json; parameters of every model, .../MODEL/parameters.csv;
            trainable (trainable_parameters.csv).
        reporting: `Plan.reporting()`.
        captions: the figures' captions by name, in the order of the report; empty where not known.

    Raises:
        SeedbedError: a table that is none, or is from before there were all columns of today.
    """
    documents = [read_json(path) for path in inputs["run_json"]]
    folders = [Path(path).parent for path in inputs["run_json"]]
    adapters = _adapter_sizes(documents, folders)
    return Findings(
        Experiment.read(inputs, reporting, TABLES, adapters),
        documents,
        [row for path in _paths(inputs, "audit") for row in read_audit(path)],
        [(path.parts[-3], path.parts[-2], read_json(path)) for path in _paths(inputs, "parity")],
        {path.parent.name: read_table(path) for path in _paths(inputs, "parameters")},
        list(captions),
        captions,
        git_commit(Path(__file__).parent),
        [row for path in _paths(inputs, "trainable") for row in read_table(path)],
        folders,
    )


def _adapter_sizes(documents: Sequence[Row], folders: Sequence[Path]) -> dict[str, float]:
    """The size in MiB of the file of a run's adapter, by the run's folder; of the runs that have one."""
    return {
        name_of(folder): (folder / ADAPTER).stat().st_size / MIB
        for document, folder in zip(documents, folders, strict=True)
        if document["run"]["method"] in ADAPTERS and (folder / ADAPTER).exists()
    }


def _paths(inputs: Mapping[str, Any], name: str) -> list[Path]:
    """The paths of an input, which an experiment of some tasks has not."""
    found = inputs.get(name) or []
    return [Path(path) for path in ([found] if isinstance(found, (str, Path)) else found)]
