"""Bags of words on as many training texts as the runs of each size."""

from collections.abc import Sequence
from pathlib import Path

from seedbed.data.bags import KINDS, WORDS, features_of, inputs_of
from seedbed.data.baselines_of_sizes import Candidate, Sizes, Subset, write_baselines

COLUMNS = ("train_size", "data_seed", "features", "setting", "selected", "left_out")


def write_bags(bags: str | Path, predictions: str | Path, of: Sizes) -> None:
    """Train the bags of all sizes and data seeds, and of all training texts, and write two tables.

    The features are fitted on a bag's own training texts; whether they are of words or of characters, all
    training texts tell. Of bags that are equal on validation, that of the smallest C or alpha is selected.

    Args:
        bags: the table of bags, with COLUMNS: `features` unless these are words, `setting` is C or alpha, and
            `selected` its value.
        predictions: see `write_baselines`.
        of: what the bags are trained and evaluated on.
    """
    kind = KINDS[of.labels.task.outputs]
    features = features_of(of.splits["train"])
    common = {"features": None if features == WORDS else features, "setting": kind.setting}

    def candidates(subset: Subset) -> Sequence[Candidate]:
        inputs = inputs_of({**of.splits, "train": subset.examples}, features)
        models = kind.models(inputs["train"], subset.examples)
        return [Candidate({"selected": value}, model, inputs) for value, model in models.items()]

    write_baselines(bags, predictions, of, COLUMNS, common, candidates)
