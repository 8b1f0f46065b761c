"""What summary and report read: the experiment's tables, and the other files that they tell of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from seedbed.analysis.example_errors import COLUMNS as OF_EXAMPLES
from seedbed.analysis.experiment import Experiment
from seedbed.analysis.sizes import TABLES as SIZES
from seedbed.core.commits import git_commit
from seedbed.core.files import read_json
from seedbed.core.methods import ADAPTERS
from seedbed.core.rows import Row, read_table
from seedbed.core.run_folder import name_of
from seedbed.data.audit import read_audit
from seedbed.figures import registry
from seedbed.figures.captions import Caption

ADAPTER = "adapter/adapter_model.safetensors"  # of a run folder
MIB = 2**20
E = TypeVar("E", bound=Experiment)
# the tables that documents read beside runs, summary and contrasts; figures have more
TABLES = ("pairs", "churn", "never_right", "calibration", "variance", "expected_validation")


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What summary and report read beside the experiment's tables.

    Attributes:
        documents: run.json of every run.
        folders: the run folders, in the order of `documents`.
        audit: rows of data_audit.csv.
        parity: (dataset, model, content of parity.json).
        parameters: rows of parameters.csv, by model.
        trainable: rows of trainable_parameters.csv; none where no recipe trains an adapter.
        captions: captions of the figures by name, in the order of the report; empty where not known.
        commit: of the code that makes summary and report; None outside a Git repository.
    """

    documents: Sequence[Row]
    folders: Sequence[Path]
    audit: Sequence[Row] = ()
    parity: Sequence[tuple[str, str, Row]] = ()
    parameters: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    trainable: Sequence[Row] = ()
    captions: Mapping[str, Caption] = field(default_factory=dict)
    commit: str | None = None

    @property
    def adapter_mib(self) -> dict[str, float]:
        """The size in MiB of the file of a run's adapter, by the run's folder; of the runs that have one."""
        return {
            name_of(folder): (folder / ADAPTER).stat().st_size / MIB
            for document, folder in zip(self.documents, self.folders, strict=True)
            if document["run"]["method"] in ADAPTERS and (folder / ADAPTER).exists()
        }


def read(
    inputs: Mapping[str, Any],
    reporting: Mapping[str, Any],
    captions: Mapping[str, Caption],
    kind: type[E],
) -> tuple[E, Sources]:
    """Read everything.

    Args:
        inputs: paths by name, as the rules name them: runs, summary, contrasts and all TABLES; where there
            are any, the tables of sizes of training, of examples and of figures; run_json of every run; and
            where the task has them audit (data_audit.csv); parity of every dataset and model,
            .../DATASET/MODEL/parity.json; parameters of every model, .../MODEL/parameters.csv; trainable
            (trainable_parameters.csv).
        reporting: `Plan.reporting()`.
        captions: the figures' captions by name, in the order of the report; empty where not known.
        kind: the class of the experiment, such as that of figures.

    Raises:
        SeedbedError: see `Experiment.read`.
    """
    sources = Sources(
        documents=[read_json(path) for path in inputs["run_json"]],
        folders=[Path(path).parent for path in inputs["run_json"]],
        audit=[row for path in _paths(inputs, "audit") for row in read_audit(path)],
        parity=[(path.parts[-3], path.parts[-2], read_json(path)) for path in _paths(inputs, "parity")],
        parameters={path.parent.name: read_table(path) for path in _paths(inputs, "parameters")},
        trainable=[row for path in _paths(inputs, "trainable") for row in read_table(path)],
        captions=captions,
        commit=git_commit(Path(__file__).parent),
    )
    read = {*registry.COMMON, "contrasts", *TABLES}
    more = dict.fromkeys((*SIZES, *OF_EXAMPLES, *registry.TABLES))
    tables = [*TABLES, *(name for name in more if name in inputs and name not in read)]
    return kind.read(inputs, reporting, tables, sources.adapter_mib), sources


def _paths(inputs: Mapping[str, Any], name: str) -> list[Path]:
    """The paths of an input, which an experiment of some tasks has not."""
    found = inputs.get(name) or []
    return [Path(path) for path in ([found] if isinstance(found, (str, Path)) else found)]
