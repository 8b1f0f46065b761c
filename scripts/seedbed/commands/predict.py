"""Predict new texts with a finished run, or with all seeds of a cell.

TEXTS is a file .csv, .tsv, .jsonl (one object a line) or .txt (one text a line), also with .gz, or - for
plain lines on standard input. OUTPUT gets a row for each text: its line, the text, the predicted label, the
probability of each label, and whether the text is longer than the run takes, so that its end was not read.

First, texts of the test set are predicted, which must come out as in the run's predictions.csv. A run whose
weights were not kept (keep_model) is trained again before that, once, and must predict its test set as it
did.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed import commands
from seedbed.core.words import count

if TYPE_CHECKING:
    from seedbed.prediction.classifiers import Predicted
    from seedbed.prediction.finished_runs import FinishedRun

ENDINGS = (".csv", ".jsonl")


def add_parser(subparsers: Any) -> None:
    """Add `seedbed predict`."""
    parser = subparsers.add_parser(
        "predict",
        help="predict new texts with a finished run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--run", type=Path, help="folder of a run, such as results/demo/runs/.../demo/seed0")
    source.add_argument("--cell", type=Path, help="the folder above, for means over all of its seeds")
    parser.add_argument("texts", help="file of the texts, or - for standard input")
    parser.add_argument("output", type=Path, help="FILE.csv or FILE.jsonl, which must not exist")
    parser.add_argument(
        "--column", nargs="+", default=["text"], help="of the texts; several are joined by a space (text)"
    )
    parser.add_argument("--pair", default="text_pair", help="of the second texts of pairs (text_pair)")
    commands.add_hardware(parser)


def run(options: argparse.Namespace) -> None:
    """Write the predictions.

    Raises:
        SeedbedError: see `finished_runs.read`, `new_texts.read` and `classifiers.opened`; or the output
            exists or cannot be written.
    """
    from seedbed.data import new_texts
    from seedbed.prediction import finished_runs

    commands.check_training_stack()
    commands.check_new(options.output, ENDINGS)
    runs = finished_runs.of_cell(options.cell) if options.cell else [finished_runs.read(options.run)]
    pair = options.pair if runs[0].takes_pairs else None
    examples = new_texts.read(options.texts, options.column, pair)
    predicted, difference = _predict(runs, examples, options)

    from seedbed.prediction import answers

    rows = answers.rows(runs[0], examples, predicted)
    answers.write(options.output, answers.columns(runs[0], len(runs)), rows)
    cut = sum(map(bool, predicted[0].cut))
    print(f"{options.output}: {count(len(examples), 'text')}, {cut:,} of them cut")
    print(f"Largest difference of a test prediction from predictions.csv: {difference:.1g}")


def _predict(
    runs: "Sequence[FinishedRun]", examples: Sequence[Mapping[str, Any]], options: argparse.Namespace
) -> "tuple[list[Predicted], float]":
    """The predictions of each run, and the largest difference of test predictions from predictions.csv."""
    from tqdm import tqdm

    from seedbed.prediction.classifiers import opened

    predicted, differences = [], []
    with tqdm(total=len(runs) * len(examples), unit=" texts", disable=None) as bar:  # on a terminal only
        for each in runs:
            classifier, difference = opened(each, options.device, options.threads, commands.tell)
            predicted.append(classifier.predict(examples, bar.update))
            differences.append(difference)
    return predicted, max(differences)
