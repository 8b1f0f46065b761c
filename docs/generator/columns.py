"""The page of all outputs: every file with its columns, their meaning and unit.

The meaning of a column is that of columns.yaml, or else of the docstring of its table's class. A column
without a meaning is an error, and so is a meaning without a column.
"""

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from seedbed.analysis.baselines import BASELINE_COLUMNS
from seedbed.analysis.contrasts import CONTRAST_COLUMNS
from seedbed.analysis.diagnostics import COLUMNS as DIAGNOSTICS
from seedbed.analysis.differences import Contrast, Difference
from seedbed.analysis.example_errors import COLUMNS as OF_EXAMPLES
from seedbed.analysis.label_plan import NEED_COLUMNS, NeedRow
from seedbed.analysis.label_worth_rows import WORTH_COLUMNS, WorthRow
from seedbed.analysis.learning_curves import CURVE_COLUMNS, CurveRow
from seedbed.analysis.seed_plan import SEED_PLAN_COLUMNS, SeedPlanRow
from seedbed.analysis.table_rows import LEAKLESS, SUMMARY_COLUMNS, RunRow, SummaryRow, run_columns
from seedbed.config.runs import RUN_KEYS
from seedbed.core.splits import PREDICTED
from seedbed.core.tasks import ANSWER_COLUMNS, METRIC_COLUMNS, METRICS, TASKS, VALUE_COLUMNS
from seedbed.data.audit import COLUMNS as AUDIT
from seedbed.data.bags_of_sizes import COLUMNS as BAGS_OF_SIZES
from seedbed.data.baselines_of_sizes import COLUMNS as PREDICTIONS_OF_SIZES
from seedbed.data.duplicates import COLUMNS as DUPLICATES
from seedbed.data.probes import ACCURACY_COLUMNS as PROBE_ACCURACY
from seedbed.data.probes import COLUMNS as PROBE
from seedbed.data.probes import TABLE_COLUMNS as PROBES
from seedbed.data.probes_of_sizes import COLUMNS as PROBES_OF_SIZES
from seedbed.models.parameters import COLUMNS as PARAMETERS
from seedbed.training.adapter_parameters import COLUMNS as TRAINABLE

WORDS = yaml.safe_load(Path(__file__).with_name("columns.yaml").read_text(encoding="utf-8"))
HEADER = "| column | unit | meaning |\n| --- | --- | --- |\n"


@dataclass(frozen=True)
class Table:
    """A CSV file.

    Attributes:
        columns: in the order of the file.
        classes: whose docstrings say what columns mean, the most special one first.
    """

    columns: tuple[str, ...]
    classes: tuple[type, ...] = ()


def tables() -> dict[str, Table]:
    """Every table with columns of its own, by its name in columns.yaml."""
    grids = (
        {"grid": {"datasets": ["it"]}, "datasets": {"it": {"task": task}}, "recipes": {}} for task in TASKS
    )
    runs = tuple(dict.fromkeys(name for grid in grids for name in run_columns(grid)))
    return {
        "runs": Table(runs, (RunRow,)),
        "curves": Table((*RUN_KEYS, *METRIC_COLUMNS)),
        "summary": Table((*SUMMARY_COLUMNS, *SummaryRow.OPTIONAL), (SummaryRow,)),
        "contrasts": Table(CONTRAST_COLUMNS, (Contrast, Difference)),
        **{name: Table(columns, (Contrast, Difference)) for name, columns in DIAGNOSTICS.items()},
        **{name: Table(columns) for name, columns in OF_EXAMPLES.items()},
        "learning_curves": Table((*CURVE_COLUMNS, *CurveRow.OPTIONAL), (CurveRow,)),
        "label_worth": Table(WORTH_COLUMNS, (WorthRow,)),
        "label_plan": Table(NEED_COLUMNS, (NeedRow,)),
        "seed_plan": Table(SEED_PLAN_COLUMNS, (SeedPlanRow,)),
        "data_audit": Table(AUDIT),
        "trainable_parameters": Table(TRAINABLE),
        "metrics": Table(METRIC_COLUMNS),
        "predictions": Table(("split", "example", "label", "prediction", "probability_CLASS")),
        "numbers": Table(VALUE_COLUMNS),
        "answers": Table(ANSWER_COLUMNS),
        "duplicates": Table(DUPLICATES),
        "bag_of_words": Table(BASELINE_COLUMNS),
        "bags_of_sizes": Table(BAGS_OF_SIZES),
        "probes_of_sizes": Table(PROBES_OF_SIZES),
        "baseline_predictions": Table((*PREDICTIONS_OF_SIZES, "probability_CLASS")),
        "probe": Table(PROBE),
        "probe_accuracy": Table(PROBE_ACCURACY),
        "probes": Table(PROBES),
        "parameters": Table(PARAMETERS),
    }


def page() -> str:
    """docs/reference/outputs.md"""
    found = tables()
    told = {column for table in found.values() for column in table.columns}
    if unused := sorted(set(WORDS["columns"]) - told):
        raise ValueError(f"columns.yaml has meanings of columns that no table has: {', '.join(unused)}")
    parts = [WORDS["introduction"].strip()]
    for section in WORDS["sections"]:
        parts.append(f"## {section['title']}\n\n{section['text'].strip()}")
        rows = "".join(f"| {_linked(each, found)} | {each['holds']} |\n" for each in section["files"])
        parts.append(f"| file | what it holds |\n| --- | --- |\n{rows}".rstrip())
    parts.append(f"## Columns\n\n{WORDS['about_columns'].strip()}")
    parts += [_columns(name, table) for name, table in found.items()]
    return "\n\n".join(parts) + "\n"


def _linked(file: Mapping[str, str], found: Mapping[str, Table]) -> str:
    names = [name for name in found if name in file.get("tables", [])]
    links = ", ".join(f"[columns of {name}](#{name})" for name in names)
    return f"`{file['name']}`" + (f" ({links})" if links else "")


def _columns(name: str, table: Table) -> str:
    documented = _attributes(table.classes)
    rows = []
    for column in table.columns:
        told = WORDS["columns"].get(column, {}).get("meaning") or documented.get(column) or _metric(column)
        text = WORDS["tables"].get(name, {}).get(column) or told
        if not text:
            raise ValueError(f"{name}.csv: no docstring and no entry of columns.yaml says what {column} is")
        rows.append(f"| `{column}` | {unit(column)} | {_in_cell(text)} |\n")
    return f'<a id="{name}"></a>\n\n### {name}\n\n{HEADER}{"".join(rows)}'.rstrip()


def _metric(column: str) -> str:
    """The meaning of a metric's column of runs.csv, SPLIT_METRIC; empty for other columns."""
    split, _, metric = column.removesuffix(LEAKLESS).partition("_")
    if split not in PREDICTED or metric not in METRICS:
        return ""
    without = ", without leaked test examples" if column.endswith(LEAKLESS) else ""
    return f"{METRICS[metric].words} on {split}, of the selected checkpoint{without}"


def unit(column: str) -> str:
    """The unit of a column by its name; empty for names, flags and what has none."""
    own = WORDS["columns"].get(column, {}).get("unit")
    if own is not None:
        return own
    return next((each["unit"] for each in WORDS["units"] if re.search(each["name"], column)), "")


def _attributes(classes: Iterable[type]) -> dict[str, str]:
    """The meaning of each attribute in the docstrings; the first class that has one counts."""
    found: dict[str, str] = {}
    for each in classes:
        text = inspect.getdoc(each).partition("Attributes:\n")[2].partition("\n\n")[0]
        for entry in re.split(r"\n(?=    \S)", text):
            names, _, meaning = " ".join(entry.split()).partition(": ")
            for name in names.split(", "):
                found.setdefault(name, meaning)
    return found


def _in_cell(text: str) -> str:
    """A meaning as a cell: None of Python is an empty cell of a table."""
    return (
        " ".join(text.split()).rstrip(".").replace("None", "empty").replace("|", "\\|").replace("<", "&lt;")
    )
