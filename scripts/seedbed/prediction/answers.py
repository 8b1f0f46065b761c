"""Predictions of new texts as rows: of one run, or the mean over the seeds of a cell."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seedbed.core.files import write_jsonl
from seedbed.core.rows import write_table
from seedbed.core.tasks import CLASSES, VALUES
from seedbed.data.texts import PARTS
from seedbed.prediction.classifiers import Predicted
from seedbed.prediction.finished_runs import FinishedRun

LINE, CUT = "line", "cut"
AGREEMENT, SD = "agreement", "sd_of_seeds"


def columns(run: FinishedRun, seeds: int) -> list[str]:
    """The columns of the rows of `rows`."""
    texts = PARTS if run.takes_pairs else PARTS[:1]
    probabilities = [] if run.task.outputs == VALUES else [f"probability_{name}" for name in run.labels]
    several = [] if seeds == 1 else [SD if run.task.outputs == VALUES else AGREEMENT]
    return [LINE, *texts, "prediction", *probabilities, *several, CUT]


def rows(
    run: FinishedRun, examples: Sequence[Mapping[str, Any]], of_seeds: Sequence[Predicted]
) -> Iterator[dict[str, Any]]:
    """A row for each example: line, text, prediction, probabilities, whether the text was cut.

    Values are means over the seeds. Of several seeds, `agreement` is the share that predict the same alone,
    and `sd_of_seeds` the standard deviation of their numbers.

    Args:
        run: one of the runs.
        examples: {"id": line, "text"}, and "text_pair" in pairs.
        of_seeds: predictions of the examples by each run.
    """
    values = np.stack([each.values for each in of_seeds])  # (seeds, texts, outputs)
    means, names = values.mean(axis=0), columns(run, len(of_seeds))
    texts = [part for part in PARTS if part in names]
    for index, example in enumerate(examples):
        row = {LINE: int(example["id"]), **{part: example[part] for part in texts}}
        row["prediction"] = prediction(run, means[index])
        for name, probability in zip(run.labels, means[index], strict=False):
            row[f"probability_{name}"] = _rounded(probability)
        if AGREEMENT in names:
            alone = [prediction(run, seed[index]) == row["prediction"] for seed in values]
            row[AGREEMENT] = _rounded(np.mean(alone))
        if SD in names:
            row[SD] = float(values[:, index, 0].std(ddof=1))
        yield {**row, CUT: bool(of_seeds[0].cut[index])}


def prediction(run: FinishedRun, values: np.ndarray) -> str | list[str] | float:
    """The prediction of a text from its values, (outputs,): a label, the labels that apply, or a number."""
    if run.task.outputs == VALUES:
        return float(values[0])
    if run.task.outputs == CLASSES:
        return run.labels[int(values.argmax())]
    return [name for name, probability in zip(run.labels, values, strict=True) if probability > 0.5]


def _rounded(share: Any) -> float:
    """As predictions.csv has it, with nine digits."""
    return float(f"{share:.9g}")


def write(output: Path, names: Sequence[str], written: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as CSV, with lists of labels as JSON, or as JSON lines; the file appears at once."""
    if output.suffix == ".jsonl":
        write_jsonl(output, written)
        return
    lists = ({**row, "prediction": _cell(row["prediction"])} for row in written)
    write_table(output, names, lists)


def _cell(predicted: Any) -> Any:
    return json.dumps(predicted, ensure_ascii=False) if isinstance(predicted, list) else predicted
