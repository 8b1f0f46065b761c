"""EuroEval's euroeval_benchmark_results.jsonl: a line for each model and dataset.

Older versions write dataset, model and results: results.raw is a list of scores by iteration, or a mapping
with such a list as `test`; results.total has the metrics, the main one first. Newer ones write the schema
Every Eval Ever, with the same list as JSON text in eval_library.additional_details.raw_results, and the
metrics as evaluation_results.
Source: src/euroeval/eee_utils.py and src/euroeval/scores.py.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seedbed.core.errors import SeedbedError
from seedbed.outside.by_seed import Value, chosen_metric, number, results_of
from seedbed.outside.json_files import field, first_object, json_lines, objects, parsed
from seedbed.outside.metrics import plain
from seedbed.outside.results import Results
from seedbed.outside.wanted import Wanted

NAME = "euroeval_benchmark_results.jsonl"
NOTE = (
    "EuroEval: a seed is an iteration, which draws its own bootstrap sample of the test set and its own "
    "training or few-shot examples, so that the spread over seeds has the chance of all three in it."
)
# dataset, model, metrics, values by iteration, and the options of the evaluation
Shape = tuple[str, str, Sequence[str], Sequence[Mapping[str, Any]], Mapping[str, Any]]


class Record(NamedTuple):
    """One line: what a model scored on a dataset.

    Attributes:
        metrics: their names, without test_ before them, the main one first.
        raw: by iteration, values by metric.
        variant: how the model was evaluated, where that differs from EuroEval's default.
    """

    dataset: str
    model: str
    metrics: Sequence[str]
    raw: Sequence[Mapping[str, Any]]
    variant: str
    place: str


def files_of(folder: Path) -> list[Path]:
    """EuroEval's files in a folder, in order."""
    return sorted(folder.rglob(NAME))


def fits(path: Path) -> bool:
    """Whether a file has EuroEval's records."""
    record = first_object(path) or {}
    library, results = record.get("eval_library"), record.get("results")
    if isinstance(library, dict):
        return library.get("name") == "euroeval"
    return {"dataset", "model"} <= record.keys() and isinstance(results, dict) and "raw" in results


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
    dataset, model, metrics, raw, details = (_newer if "eval_library" in content else _older)(content, place)
    if not raw:
        raise SeedbedError(
            "a record of EuroEval without scores by iteration",
            where=place,
            found=f"{model} on {dataset}",
            hint="let EuroEval evaluate this model again, or delete the line",
        )
    by_name = [{plain(name): value for name, value in scores.items()} for scores in raw]
    scored = [plain(name) for name in metrics if isinstance(by_name[0].get(plain(name)), (int, float))]
    return Record(dataset, model, scored, by_name, _variant(details), place)


def _newer(content: Mapping[str, Any], place: str) -> Shape:
    details = field(field(content, "eval_library", dict, place), "additional_details", dict, place)
    evaluations = objects(content, "evaluation_results", place)
    metrics = [field(evaluation, "evaluation_name", str, place) for evaluation in evaluations]
    named = [field(evaluation, "source_data", dict, place) for evaluation in evaluations[:1]]
    dataset = field(named[0], "dataset_name", str, place) if named else field(details, "dataset", str, place)
    model = field(field(content, "model_info", dict, place), "name", str, place)
    raw = parsed(field(details, "raw_results", str, place), f"{place}, raw_results")
    return dataset, model, metrics, objects({"raw_results": raw}, "raw_results", place), details


def _older(content: Mapping[str, Any], place: str) -> Shape:
    results = field(content, "results", dict, place)
    by_split = results.get("raw")
    raw = objects(by_split, "test", place) if isinstance(by_split, dict) else objects(results, "raw", place)
    metrics = list(field(results, "total", dict, place, raw[0] if raw else {}))
    return field(content, "dataset", str, place), field(content, "model", str, place), metrics, raw, content


def _variant(details: Mapping[str, Any]) -> str:
    """Newer versions write true and false as text."""
    few_shot, validation = (str(details.get(key)).lower() for key in ("few_shot", "validation_split"))
    return (" (zero-shot)" if few_shot == "false" else "") + (" (validation)" if validation == "true" else "")


def _values(record: Record, system: str, wanted: str | None) -> list[Value]:
    default = record.metrics[0] if record.metrics else None
    metric = chosen_metric(wanted and plain(wanted), record.metrics, default, record.place)
    return [
        Value(
            record.dataset,
            system,
            seed,
            metric,
            number(scores.get(metric), metric, record.place),
            record.place,
        )
        for seed, scores in enumerate(record.raw)
    ]
