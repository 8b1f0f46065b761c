"""Metrics counted again from predictions, for every kind of output."""

import itertools

import pytest
from synthetic import Synthetic, edit_csv, make_experiment, make_generation
from synthetic_label_sets import make_label_sets
from synthetic_values import make_values

from seedbed.analysis.recount import recount
from seedbed.analysis.runs import read_runs
from seedbed.analysis.table_rows import write_runs
from seedbed.core.errors import SeedbedError

RANDOM = "/small/transformers/random/lab/seed0"
CHOSEN = ("macro_f1", "accuracy", "balanced_accuracy", "mcc")
NUMBERS = ("pearson", "spearman", "mse")
# a maker's options, and the metrics that are counted
CASES = {
    "classes": (make_experiment, {}, ("accuracy",)),
    "a chosen metric": (make_experiment, {"metric": "macro_f1"}, CHOSEN),
    "a diverged run": (make_experiment, {"diverged": [f"reviews{RANDOM}"]}, ("accuracy",)),
    "sets of labels": (make_label_sets, {}, ("micro_f1", "macro_f1", "subset_accuracy")),
    "numbers": (make_values, {}, NUMBERS),
    "a diverged run of numbers": (make_values, {"diverged": [f"marks{RANDOM}"]}, NUMBERS),
    "answers": (make_generation, {}, ("loss", "perplexity", "token_accuracy", "exact_match", "f1")),
}  # fmt: skip


def finish(made: Synthetic) -> Synthetic:
    """The same with its table of runs."""
    reporting = made.plan.reporting()
    write_runs(made.experiment / "runs.csv", read_runs(made.folders, reporting, {}).rows, reporting)
    return made


@pytest.mark.parametrize("case", CASES)
def test_the_metrics_of_the_table_are_those_of_the_predictions(tmp_path, case):
    make, options, metrics = CASES[case]
    made = finish(make(tmp_path, sizes={"validation": 30, "test": 40}, **options))
    assert set(options.get("diverged", ())) <= {run.folder for run in made.plan.runs}
    found = recount(made.experiment)
    assert (found.runs, found.metrics) == (len(made.folders), metrics)
    path = made.experiment / "runs.csv"
    told = path.read_bytes()
    for split, metric in itertools.product(("validation", "test"), metrics):
        edit_csv(path, lambda rows, column=f"{split}_{metric}": rows[-1].update({column: "0.123456"}))
        with pytest.raises(SeedbedError, match="predictions of a run do not have the"):
            recount(made.experiment)
        path.write_bytes(told)
