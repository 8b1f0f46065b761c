"""EuroEval's euroeval_benchmark_results.jsonl: a line for each model and dataset.

Older versions write dataset, model and results: results.raw is a list of scores by iteration, or a mapping
with such a list as `test`; results.total has the metrics, the main one first. Newer ones write the schema
Every Eval Ever, with the same list as JSON text in eval_library.additional_details.raw_results, and the
metrics as evaluation_results.
Source: src/euroeval/eee_utils.py and src/euroeval/scores.py.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seedbed.core.errors import SeedbedError
from seedbed.outside.by_seed import Value, chosen_metric, number, results_of
from seedbed.outside.json_files import first_object, json_lines
from seedbed.outside.metrics import plain
from seedbed.outside.results import Results
from seedbed.outside.wanted import Wanted

NAME = "euroeval_benchmark_results.jsonl"
NOTE = (
    "EuroEval: a seed is an iteration, which draws its own bootstrap sample of the test set and its own "
    "training or few-shot examples, so that the spread over seeds has the chance of all three in it."
)


class Record(NamedTuple):
    """One line: what a model scored on a dataset.

    Attributes:
        raw: by iteration, values by metric (mcc or test_mcc).
        metrics: their names without test_, the main one first.
        variant: how the model was evaluated, where that differs from EuroEval's default.
    """

    dataset: str
    model: str
    raw: Sequence[Mapping[str, Any]]
    metrics: Sequence[str]
    variant: str
    place: str


def files_of(folder: Path) -> list[Path]:
    """EuroEval's files in a folder, in order."""
    return sorted(folder.rglob(NAME))


def fits(path: Path) -> bool:
    """Whether a file has EuroEval's records."""
    record = first_object(path) or {}
    library = record.get("eval_library")
    return (isinstance(library, dict) and library.get("name") == "euroeval") or (
        {"dataset", "model"} <= record.keys() and "raw" in (record.get("results") or {})
    )


def read(paths: Sequence[Path], wanted: Wanted) -> list[Results]:
    """The results of each dataset, a value for each iteration; without a metric, the first one of a record.

    Raises:
        SeedbedError: a file is damaged; a record is of another shape; and see `by_seed.results_of`.
    """
    records = [
        _record(content, f"{path}, line {line}") for path in paths for line, content in json_lines(path)
    ]
    if wanted.dataset is not None:
        records = [record for record in records if record.dataset == wanted.dataset] or records
    variants: dict[tuple[str, str], set[str]] = {}
    for record in records:
        variants.setdefault((record.dataset, record.model), set()).add(record.variant)
    values = []
    for record in records:
        several = len(variants[record.dataset, record.model]) > 1
        name = record.model + (record.variant if several else "")
        values += _values(record, name, wanted.metric)
    return results_of(values, wanted, paths, "euroeval", [NOTE])


def _record(content: Mapping[str, Any], place: str) -> Record:
    try:
        if "eval_library" in content:
            details = content["eval_library"]["additional_details"]
            evaluations = content["evaluation_results"]
            dataset = evaluations[0]["source_data"]["dataset_name"] if evaluations else details["dataset"]
            model, raw = content["model_info"]["name"], json.loads(details["raw_results"])
            metrics = [evaluation["evaluation_name"] for evaluation in evaluations]
        else:
            details, dataset, model = content, content["dataset"], content["model"]
            raw = content["results"]["raw"]
            raw = raw["test"] if isinstance(raw, dict) else raw
            metrics = [name for name in content["results"].get("total", raw[0]) if not name.endswith("_se")]
        if not raw or not all(isinstance(scores, dict) for scores in raw):
            raise ValueError("no list of scores")
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise SeedbedError(
            "a record of EuroEval without scores by iteration",
            where=place,
            found=f"{type(error).__name__}: {error}",
            hint="let EuroEval evaluate this model again, or delete the line",
        ) from None
    scored = {plain(name) for name, value in raw[0].items() if isinstance(value, (int, float))}
    names = [plain(name) for name in metrics if plain(name) in scored]
    return Record(str(dataset), str(model), raw, names, _variant(details), place)


def _variant(details: Mapping[str, Any]) -> str:
    """Newer versions write true and false as text."""
    few_shot, validation = (str(details.get(key)).lower() for key in ("few_shot", "validation_split"))
    return (" (zero-shot)" if few_shot == "false" else "") + (" (validation)" if validation == "true" else "")


def _values(record: Record, system: str, wanted: str | None) -> list[Value]:
    default = record.metrics[0] if record.metrics else None
    metric = chosen_metric(wanted and plain(wanted), record.metrics, default, record.place)
    values = [{plain(name): value for name, value in scores.items()}.get(metric) for scores in record.raw]
    return [
        Value(record.dataset, system, seed, metric, number(value, metric, record.place), record.place)
        for seed, value in enumerate(values)
    ]
