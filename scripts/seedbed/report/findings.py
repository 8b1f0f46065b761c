"""Everything that an experiment found, read once for the summary and the report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbed.analysis.rows import TEST_SETS, Row, on_test_set, read_table
from seedbed.audit import read_audit
from seedbed.commits import git_commit
from seedbed.files import read_json
from seedbed.report.experiment import Experiment

TABLES = (
    "runs",
    "summary",
    "contrasts",
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
        experiment: runs, summary and contrasts on the whole test sets.
        without_leaks: the same without the leaked test examples.
        tables: the rows of TABLES by name.
        documents: run.json of every run.
        audit: rows of data_audit.csv.
        parity: (dataset, model, content of parity.json).
        parameters: rows of parameters.csv, by model.
        figures: names of the figures.
        captions: captions of figures by name; empty where not known.
        commit: of the code that makes summary and report; None outside a Git repository.
    """

    experiment: Experiment
    without_leaks: Experiment
    tables: Mapping[str, list[Row]]
    documents: Sequence[Row]
    audit: Sequence[Row]
    parity: Sequence[tuple[str, str, Row]]
    parameters: Mapping[str, list[Row]]
    figures: Sequence[str]
    captions: Mapping[str, str]
    commit: str | None

    @property
    def reporting(self) -> Mapping[str, Any]:
        """`Plan.reporting()`."""
        return self.experiment.reporting


def read_findings(
    inputs: Mapping[str, Any], reporting: Mapping[str, Any], captions: Mapping[str, str]
) -> Findings:
    """Read everything.

    Args:
        inputs: paths by name, as the rules name them: all TABLES; audit (data_audit.csv); run_json of every
            run; parity of every dataset and model, .../DATASET/MODEL/parity.json; parameters of every model,
            .../MODEL/parameters.csv.
        reporting: `Plan.reporting()`.
        captions: the figures' captions by name, in the order of the report; empty where not known.
    """
    rows = {name: read_table(inputs[name]) for name in TABLES}
    experiment, without_leaks = (
        Experiment(
            rows["runs"],
            on_test_set(rows["summary"], test_set),
            on_test_set(rows["contrasts"], test_set),
            reporting,
        )
        for test_set in TEST_SETS
    )
    return Findings(
        experiment,
        without_leaks,
        rows,
        [read_json(path) for path in inputs["run_json"]],
        read_audit(inputs["audit"]),
        [(path.parts[-3], path.parts[-2], read_json(path)) for path in map(Path, inputs["parity"])],
        {Path(path).parent.name: read_table(path) for path in inputs["parameters"]},
        list(captions),
        captions,
        git_commit(Path(__file__).parent),
    )
